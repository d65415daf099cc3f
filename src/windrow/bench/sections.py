"""What benchmarks in sections have in common: choosing them, running them, showing and writing what they find."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from windrow.bench.report import Measurement, Report, Show
from windrow.bench.timing import environment
from windrow.bench.windows_peers import ONE_THREAD
from windrow.bench.windows_report import Table, WindowsReport
from windrow.errors import MachineError, UnknownNameError
from windrow.execution.session import active_session

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


def run_sections(
    title: str, sections: Iterable[Callable[[AnyBench], Found]], bench: AnyBench, out: Path | None, show: Show
) -> WindowsReport:
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
    report = WindowsReport(Report(title, tuple(rows)), tuple(tables), versions)
    if report.missing_peers:
        show(f"not installed, and so not measured: {', '.join(report.missing_peers)}. pip install 'windrow[peers]'")
    show("\n".join(["", *report.target_table(), report.targets.summary]))
    if out is not None:
        show("written: " + ", ".join(str(path) for path in report.write(out)))
    return report
