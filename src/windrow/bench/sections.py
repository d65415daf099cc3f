"""What benchmarks in sections have in common: choosing them, running them, showing and writing what they find."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from windrow.bench.report import Measurement, Report, Show
from windrow.bench.tables import Table, TableReport
from windrow.bench.timing import environment
from windrow.errors import MachineError, StoreError, UnknownNameError
from windrow.execution.session import active_session

ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Must be in the environment before the packages are imported."""

Found = Iterator[Table | Measurement]


class Peer(Protocol):
    """Another package, as far as the report names it."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str | None: ...


class SectionedBench(Protocol):
    """What a section is given."""

    @property
    def peers(self) -> Iterable[Peer]: ...


AnyBench = TypeVar("AnyBench", bound=SectionedBench)
AnyScale = TypeVar("AnyScale")


def choose(sections: Mapping[str, Any], only: Sequence[str], on_spark: Sequence[str], command: str) -> list[str]:
    """The sections that are asked for, all if none are named."""
    unknown = [name for name in only if name not in sections]
    if unknown:
        raise UnknownNameError("no such section", got=unknown[0], hint="There are " + ", ".join(sections))
    chosen = [name for name in sections if not only or name in only]
    if active_session() is not None and any(name in on_spark for name in chosen):
        raise MachineError(
            "a Spark session runs in this process, and the benchmark needs its own",
            hint=f"Run it in a fresh process: {command}",
        )
    return chosen


@contextmanager
def temporary_folder(out: Path | None) -> Iterator[Path]:
    """A folder for data, inside ``out`` or else where the system keeps temporary files; it is removed at the end."""
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="windrow-bench-", dir=out))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_disk(folder: Path, needed: int) -> None:
    """Refuse to begin what would fill the disk."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StoreError(
            f"the benchmark needs {needed / 1e9:.0f} GB of disk for a while",
            got=f"{free / 1e9:.1f} GB free in {folder.parent}",
            hint="Choose another folder with --out or TMPDIR, or run with --quick",
        )


def run_sections(
    title: str, sections: Iterable[Callable[[AnyBench], Found]], bench: AnyBench, out: Path | None, show: Show
) -> TableReport:
    """Measure, showing each table as it is found; the report goes into ``out``."""
    tables: list[Table] = []
    rows: list[Measurement] = []
    with environment(ONE_THREAD):
        for section in sections:
            for found in section(bench):
                if isinstance(found, Table):
                    tables.append(found)
                    show(found.to_markdown() + "\n")
                else:
                    rows.append(found)
                    show(f"{found}\n")
    versions = {peer.name: peer.version for peer in bench.peers}
    report = TableReport(Report(title, tuple(rows)), tuple(tables), versions)
    if report.missing_peers:
        show(f"not installed, and so not measured: {', '.join(report.missing_peers)}. pip install 'windrow[peers]'")
    show("\n".join(["", *report.target_table(), report.targets.summary]))
    if out is not None:
        show("written: " + ", ".join(str(path) for path in report.write(out)))
    return report


@dataclass(frozen=True)
class Suite(Generic[AnyBench, AnyScale]):
    """The sections of one command, and its two sizes.

    ``make`` gives what sections are given: of a scale, and of a folder for what is stored meanwhile. ``prepare``
    refuses what cannot run, and does what no section is to be charged for.
    """

    command: str
    sections: Mapping[str, Callable[[AnyBench], Found]]
    full: AnyScale
    quick: AnyScale
    make: Callable[[AnyScale, Path], AnyBench]
    on_spark: Sequence[str] = ()
    prepare: Callable[[AnyScale, Path, Sequence[str]], None] | None = None

    def run(
        self, quick: bool = False, out: Path | None = None, only: Sequence[str] = (), show: Show = print
    ) -> TableReport:
        """Measure, showing each table as it is found; ``out`` is a folder for the report and its plots.

        ``only`` names the sections to measure. Temporary data, removed at the end, goes into ``out`` or else where the
        system keeps temporary files (TMPDIR).
        """
        return self.run_at(self.quick if quick else self.full, out, only, show)

    def run_at(self, scale: AnyScale, out: Path | None, only: Sequence[str], show: Show) -> TableReport:
        """The same at any size."""
        chosen = choose(self.sections, only, self.on_spark, self.command)
        with temporary_folder(out) as folder:
            if self.prepare is not None:
                self.prepare(scale, folder, chosen)
            sections = (self.sections[name] for name in chosen)
            return run_sections(self.command, sections, self.make(scale, folder), out, show)
