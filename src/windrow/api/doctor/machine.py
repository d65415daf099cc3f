"""What the doctor looks at on the machine: Java, Spark, packages, memory, disk."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import psutil
from packaging.requirements import Requirement

import windrow
from windrow.api.describe import human_bytes
from windrow.api.doctor.findings import Finding, State
from windrow.errors import Error, MachineError
from windrow.execution.engine import Engine, default_memory
from windrow.execution.executor import Job
from windrow.execution.java import find_java
from windrow.execution.progress import progress_reporter

LITTLE_MEMORY = 2 * 10**9
LITTLE_DISK = 2 * 10**9
NO_DISK = 100 * 10**6
EXTRAS = {
    "netcdf": "reads and writes NetCDF",
    "grib": "reads GRIB",
    "fits": "reads and writes FITS tables",
    "plot": "draws maps and curves",
}


def check_java() -> Iterator[Finding]:
    try:
        java = find_java()
    except MachineError as error:
        yield Finding("Java", State.PROBLEM, f"{error.what}, got {error.got}", error.hint)
        return
    yield Finding("Java", State.OK, f"{java.version} at {java.path}")
    for reason in java.passed_over:
        stated = reason.startswith("JAVA_HOME")
        mend = "Set JAVA_HOME to a Java that will do, or unset it" if stated else None
        yield Finding("Java", State.WARNING if stated else State.OK, f"passed over: {reason}", mend)


def check_spark() -> Iterator[Finding]:
    """Start a session and let its Python workers do something."""
    engine = Engine("spark", None, None, None, progress_reporter(False))
    began = time.perf_counter()
    try:
        executor = engine.spark()
        started = time.perf_counter()
        answers = executor.run(Job("a first job", square, list(range(executor.workers))))
        ended = time.perf_counter()
        if answers != [square(number) for number in range(executor.workers)]:
            raise MachineError("Spark's workers cannot calculate", got=answers)
        version = executor.session.version
    except Error as error:
        got = "" if error.got is None else f", got {error.got}"
        yield Finding("Spark", State.PROBLEM, f"{error.what}{got}", _spark_mend(error))
        return
    finally:
        engine.close()
    took = f"started in {started - began:.1f} s, first Python job in {ended - started:.1f} s"
    yield Finding("Spark", State.OK, f"{version} with {executor.workers} workers, {took}")


def _spark_mend(error: Error) -> str:
    if error.hint is not None and "windrow doctor" not in error.hint:
        return error.hint
    return "See the lines on Java and on packages; a proxy or a full temporary folder can also be the reason"


def square(number: int) -> int:
    """A job small enough to show that workers start at all."""
    return number * number


def check_packages() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", State.OK, f"{version}, windrow {windrow.__version__}")
    requirements = _requirements()
    if not requirements:
        mend = "Install windrow with pip"
        yield Finding("packages", State.WARNING, "windrow is not installed, so what it needs is not known", mend)
        return
    needed = [one for one in requirements if one.marker is None or one.marker.evaluate({"extra": ""})]
    wrong = [(one, reason) for one in needed if (reason := _unmet(one)) is not None]
    for requirement, reason in wrong:
        mend = f"pip install '{requirement.name}{requirement.specifier}'"
        yield Finding("packages", State.PROBLEM, f"{requirement.name}: {reason}", mend)
    if not wrong:
        yield Finding("packages", State.OK, ", ".join(f"{one.name} {metadata.version(one.name)}" for one in needed))
    for extra, purpose in EXTRAS.items():
        yield from _check_extra(extra, purpose, [one for one in requirements if one not in needed])


def _check_extra(extra: str, purpose: str, optional: list[Requirement]) -> Iterator[Finding]:
    chosen = [one for one in optional if one.marker is not None and one.marker.evaluate({"extra": extra})]
    reasons = {one.name: _unmet(one) for one in chosen}
    unmet = [f"{name} {reason}" for name, reason in reasons.items() if reason is not None]
    if unmet:
        mend = f"To have it: pip install 'windrow[{extra}]'"
        yield Finding("extra", State.OK, f"{extra}, which {purpose}, is not there: {', '.join(unmet)}", mend)
    else:
        yield Finding("extra", State.OK, f"{extra}, which {purpose}")


def _requirements() -> list[Requirement]:
    """What windrow says that it needs: as installed, or in the source tree it runs from."""
    try:
        return [Requirement(text) for text in metadata.requires("windrow") or ()]
    except metadata.PackageNotFoundError:
        project = Path(windrow.__file__).parents[2] / "pyproject.toml"
    try:
        stated = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    except (OSError, KeyError, ValueError):
        return []
    needed = [Requirement(text) for text in stated["dependencies"]]
    for extra, texts in stated.get("optional-dependencies", {}).items():
        needed += [Requirement(f'{text}; extra == "{extra}"') for text in texts]
    return needed


def _unmet(requirement: Requirement) -> str | None:
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return "is not installed"
    if requirement.specifier.contains(version, prereleases=True):
        return None
    return f"is {version}, and windrow needs {requirement.specifier}"


def check_memory() -> Iterator[Finding]:
    memory = psutil.virtual_memory()
    cores = len(os.sched_getaffinity(0))
    text = (
        f"{human_bytes(memory.available)} available of {human_bytes(memory.total)}, "
        f"of which windrow uses up to {human_bytes(default_memory())}; {cores} core{'s' if cores != 1 else ''}"
    )
    if min(memory.available, default_memory()) < LITTLE_MEMORY:
        mend = f"Spark and its workers want {human_bytes(LITTLE_MEMORY)}; close other programs, or use engine='local'"
        yield Finding("memory", State.WARNING, text, mend)
    else:
        yield Finding("memory", State.OK, text)


def check_temporary() -> Iterator[Finding]:
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        mend = "Free or permit that folder, or set TMPDIR to another"
        yield Finding("temporary", State.PROBLEM, f"{folder} cannot be written: {error.strerror}", mend)
        return
    yield _space("temporary", folder, "set TMPDIR to a folder with more")


def check_disk(warehouse: str) -> Iterator[Finding]:
    place = Path(warehouse).expanduser().absolute()
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK):
        yield Finding("disk", State.PROBLEM, f"{place} may not be written", "Check its owner, or choose another --db")
        return
    yield _space("disk", str(place), "choose another --db, or run: windrow collect-garbage")


def _space(subject: str, folder: str, otherwise: str) -> Finding:
    free = shutil.disk_usage(folder).free
    text = f"{human_bytes(free)} free at {folder}"
    if free >= LITTLE_DISK:
        return Finding(subject, State.OK, text)
    return Finding(subject, State.PROBLEM if free < NO_DISK else State.WARNING, text, f"Free some, {otherwise}")
