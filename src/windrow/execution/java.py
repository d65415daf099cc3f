"""Finding a Java that Spark can run on.

Standard library only: set-up runs this file before anything is installed,
``PYTHONPATH=src python3 -P src/windrow/execution/java.py``, and the package asks the same ``find_java``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from windrow.errors import MachineError

OLDEST = 17
# Spark opens this module at start; runtimes reduced with jlink often lack it.
VECTOR_MODULE = "jdk.incubator.vector"
INSTALLED = ("/usr/lib/jvm/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home")
ANSWER_SECONDS = 20.0


@dataclass(frozen=True)
class JavaHome:
    """A Java that will do, and why each place looked at before it did not."""

    path: Path
    version: str
    passed_over: tuple[str, ...] = ()

    @property
    def executable(self) -> Path:
        return self.path / "bin" / "java"

    @property
    def major(self) -> int:
        return major_version(self.version)


@dataclass(frozen=True)
class _Runtime:
    home: Path
    version: str
    modules: frozenset[str]


class _UnusableError(Exception):
    """Why one candidate will not do; the search goes on."""


def find_java(environment: Mapping[str, str] | None = None, installed: Sequence[str] = INSTALLED) -> JavaHome:
    """The first usable Java of ``JAVA_HOME``, ``PATH`` and the machine's usual folders.

    A ``JAVA_HOME`` that will not do does not end the search; it is mentioned in ``passed_over``.
    """
    passed_over: list[str] = []
    seen: set[Path] = set()
    for origin, executable in _candidates(os.environ if environment is None else environment, installed):
        resolved = executable.resolve()
        if resolved in seen:
            continue
        seen.add(resolved)
        try:
            runtime = _check_usable(executable)
        except _UnusableError as reason:
            passed_over.append(f"{origin} {reason}")
        else:
            return JavaHome(runtime.home, runtime.version, tuple(passed_over))
    raise MachineError(
        f"Spark needs Java {OLDEST} or newer with the module {VECTOR_MODULE}",
        got="; ".join(passed_over) or "no Java at all",
        hint=(
            f"On Debian or Ubuntu run 'apt-get install openjdk-{OLDEST}-jre-headless' as root; "
            "elsewhere install a full Java and set JAVA_HOME to its folder"
        ),
    )


def major_version(version: str) -> int:
    """The number Java's makers call the version.

    >>> [major_version(text) for text in ("17.0.15", "21", "1.8.0_292", "22-ea")]
    [17, 21, 8, 22]
    """
    found = re.match(r"(?:1\.)?(\d+)", version.strip())
    if found is None:
        raise MachineError(
            "a Java version starts with a number", got=repr(version), hint="Such as 17.0.15 or 1.8.0_292"
        )
    return int(found[1])


def _candidates(environment: Mapping[str, str], installed: Sequence[str]) -> Iterator[tuple[str, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield f"JAVA_HOME={home}", Path(home, "bin", "java")
    if on_path := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield on_path, Path(on_path)
    for pattern in installed:
        root = Path(Path(pattern).anchor)
        homes = sorted(root.glob(str(Path(pattern).relative_to(root))), key=_oldest_first)
        yield from ((str(home), home / "bin" / "java") for home in homes if (home / "bin" / "java").exists())


def _oldest_first(home: Path) -> tuple[int, str]:
    # The oldest that will do is the one Spark's own tests cover best.
    try:
        return major_version(_release(home).get("JAVA_VERSION", "")), home.name
    except MachineError:
        return sys.maxsize, home.name


def _check_usable(executable: Path) -> _Runtime:
    if not executable.exists():
        raise _UnusableError("has no bin/java")
    if not os.access(executable, os.X_OK):
        raise _UnusableError("has a bin/java that may not be executed")
    runtime = _read_description(executable) or _ask_java(executable)
    try:
        major = major_version(runtime.version)
    except MachineError:
        raise _UnusableError(f"calls itself version {runtime.version!r}") from None
    if major < OLDEST:
        raise _UnusableError(f"is version {runtime.version}")
    if VECTOR_MODULE not in runtime.modules:
        raise _UnusableError(f"is version {runtime.version} without {VECTOR_MODULE}")
    return runtime


def _read_description(executable: Path) -> _Runtime | None:
    """What the ``release`` file beside a Java says of it, which costs no JVM start; None if it says too little."""
    home = executable.resolve().parent.parent
    release = _release(home)
    version = release.get("JAVA_VERSION", "")
    too_old = version.startswith("1.")  # before Java 9 there were no modules to list
    if not version or not ("MODULES" in release or too_old):
        return None
    return _Runtime(home, version, frozenset(release.get("MODULES", "").split()))


def _release(home: Path) -> dict[str, str]:
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    lines = (line.partition("=") for line in text.splitlines())
    return {key.strip(): value.strip().strip('"') for key, equals, value in lines if equals}


def _ask_java(executable: Path) -> _Runtime:
    """What a Java says of itself, in one start."""
    # The settings name the true home, which the executable's place does not when it is a version manager's shim.
    command = [str(executable), "-XshowSettings:properties", "--list-modules"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=ANSWER_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise _UnusableError(f"gave no answer within {ANSWER_SECONDS:g} s") from None
    except OSError as error:
        raise _UnusableError(f"cannot be started: {error.strerror or error}") from None
    if answer.returncode != 0:
        said = (answer.stderr or answer.stdout).strip().splitlines()
        raise _UnusableError(f"cannot list its modules: {said[0] if said else f'exit code {answer.returncode}'}")
    modules = dict(re.findall(r"^([\w.]+)(?:@(\S+))?", answer.stdout, re.MULTILINE))
    home = re.search(r"^\s*java\.home = (.+?)\s*$", answer.stderr, re.MULTILINE)
    return _Runtime(
        Path(home[1]) if home else executable.resolve().parent.parent, modules.get("java.base", ""), frozenset(modules)
    )


def main() -> int:
    """Print the home of the Java that windrow will use, or why there is none."""
    try:
        java = find_java()
    except MachineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for reason in java.passed_over:
        print(f"passed over: {reason}", file=sys.stderr)
    print(java.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
