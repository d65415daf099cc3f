"""What benchmarks in sections find: tables of times with their ratios, and the targets, as text, Markdown and JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from windrow.bench.plots import draw_panels
from windrow.bench.race import METHODS, Result
from windrow.bench.report import Report, write_report
from windrow.bench.timing import duration

BEST_PEER = "best peer"


@dataclass(frozen=True)
class Ratio:
    """A column: how many times as long ``slower`` takes as ``faster``."""

    title: str
    slower: str
    faster: str


SPEED_UP = Ratio("naive / incremental", "naive", "incremental")
METHOD_RATIOS = (
    SPEED_UP,
    Ratio("naive / auto", "naive", "auto"),
    Ratio("best peer / auto", BEST_PEER, "auto"),
)


@dataclass(frozen=True)
class Line:
    """One case of a table: seconds by contender, and the speed-up that a paper states for it."""

    case: str
    width: int
    result: Result
    paper: float | None = None

    def seconds(self, name: str) -> float | None:
        if name == BEST_PEER:
            return min((took for peer, took in self.result.seconds.items() if peer not in METHODS), default=None)
        return self.result.seconds.get(name)

    def ratio(self, ratio: Ratio) -> float | None:
        slower, faster = self.seconds(ratio.slower), self.seconds(ratio.faster)
        return None if slower is None or not faster else slower / faster


@dataclass(frozen=True)
class Table:
    """Cases of one series. A paper's speed-up stands beside the first ratio."""

    section: str
    title: str
    about: str
    lines: tuple[Line, ...]
    ratios: tuple[Ratio, ...] = METHOD_RATIOS
    across: str = "width"
    """What a line's ``width`` is, where it is not that of a window."""

    @property
    def contenders(self) -> list[str]:
        return list(dict.fromkeys(name for line in self.lines for name in line.result.seconds))

    @property
    def shown_ratios(self) -> list[Ratio]:
        return [ratio for ratio in self.ratios if any(line.ratio(ratio) for line in self.lines)]

    def to_markdown(self) -> str:
        ratios, states = self.shown_ratios, any(line.paper for line in self.lines)
        header = ["case", *self.contenders, *(ratio.title for ratio in ratios)]
        if states and ratios:
            header.insert(len(self.contenders) + 2, "the paper's")
        rows = []
        for line in self.lines:
            cells = [line.case, *(self._time(line, name) for name in self.contenders)]
            shown = [_times(line.ratio(ratio)) for ratio in ratios]
            if states and ratios:
                shown.insert(1, _times(line.paper))
            rows.append(cells + shown)
        notes = [note for note in (self.about, self._sampling(), self._compiling()) if note]
        return "\n".join([f"### {self.title}", "", *align_columns(header, rows), "", *notes])

    def _time(self, line: Line, name: str) -> str:
        took = line.result.seconds.get(name)
        if took is None:
            return ""
        return ("~" if name in line.result.factors else "") + duration(took)

    def _sampling(self) -> str:
        largest: dict[str, float] = {}
        for line in self.lines:
            for name, factor in line.result.factors.items():
                largest[name] = max(largest.get(name, 1.0), factor)
        shares = ", ".join(f"{name} 1/{factor:.3g}" for name, factor in largest.items())
        return f"~: measured on a part of the array and scaled; the smallest part: {shares}." if shares else ""

    def _compiling(self) -> str:
        longest: dict[str, float] = {}
        for line in self.lines:
            for name in METHODS:
                if name in line.result.compiling:
                    longest[name] = max(longest.get(name, 0.0), line.result.compiling[name])
        said = ", ".join(f"{name} {duration(took)}" for name, took in longest.items())
        return f"Compiling or loading kernels, once and not counted above, at most: {said}." if said else ""

    def to_record(self) -> dict[str, object]:
        lines = [
            asdict(line) | {"ratios": {ratio.title: line.ratio(ratio) for ratio in self.ratios}} for line in self.lines
        ]
        return {"section": self.section, "title": self.title, "about": self.about, "lines": lines}


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}×" if value < 1000 else f"{value:,.0f}×"


def align_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table that also reads well as text."""
    widths = [max(3, *(len(row[column]) for row in [header, *rows])) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return [line(header), "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|", *map(line, rows)]


@dataclass(frozen=True)
class TableReport:
    """All tables and targets of one run, and which peers took part."""

    targets: Report
    tables: tuple[Table, ...]
    peers: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def missing_peers(self) -> list[str]:
        return [name for name, version in self.peers.items() if version is None]

    def target_table(self) -> list[str]:
        header = ["subject", "what", "target", "reached", "verdict"]
        rows = [(row.subject, row.what, row.shown_target, row.shown_value, row.verdict) for row in self.targets.rows]
        return align_columns(header, rows)

    def to_json(self) -> str:
        content = json.loads(self.targets.to_json())
        content |= {"peers": dict(self.peers), "tables": [table.to_record() for table in self.tables]}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    def to_markdown(self) -> str:
        peers = ", ".join(f"{name} {version or '(not installed)'}" for name, version in self.peers.items())
        parts = [self.targets.to_markdown().rstrip(), f"- peers: {peers}", ""]
        for section in dict.fromkeys(table.section for table in self.tables):
            parts += [f"## {section}", ""]
            if section in {table.section for table in self.tables if _has_curve(table)}:
                parts += [f"![times]({section}.png)", ""]
            parts += [table.to_markdown() + "\n" for table in self.tables if table.section == section]
        return "\n".join(parts)

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """report.json, report.md and, where matplotlib is installed, report.png and a plot of each section."""
        written = write_report(self.targets, folder, self.to_json(), self.to_markdown())
        for section in dict.fromkeys(table.section for table in self.tables):
            drawn = [table for table in self.tables if table.section == section and _has_curve(table)]
            panels = {(table.title, table.across): curves(table) for table in drawn}
            if panels and draw_panels(panels, section, Path(folder) / f"{section}.png"):
                written.append(Path(folder) / f"{section}.png")
        return written


def _has_curve(table: Table) -> bool:
    return len({line.width for line in table.lines}) > 1


def curves(table: Table) -> dict[str, list[tuple[int, float]]]:
    """Seconds by width for each contender."""
    return {
        name: [(line.width, line.result.seconds[name]) for line in table.lines if name in line.result.seconds]
        for name in table.contenders
    }
