"""What a benchmark found: measurements with their targets, as text, Markdown, JSON and bars."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import psutil

Show = Callable[[str], None]
Bound = Literal["at least", "at most"]
_PACKAGES = ("pyspark", "zarr", "icechunk", "deltalake", "pyarrow", "numpy")


@dataclass(frozen=True)
class Measurement:
    """One line of a report: a value (NaN if it could not be measured), and the target it is held against, if any."""

    subject: str
    what: str
    value: float
    unit: str
    target: float | None = None
    bound: Bound = "at least"
    detail: str = ""

    @property
    def met(self) -> bool | None:
        if self.target is None or math.isnan(self.value):
            return None
        return self.value >= self.target if self.bound == "at least" else self.value <= self.target

    @property
    def verdict(self) -> str:
        unknown = "not measured" if math.isnan(self.value) else ""
        return {True: "met", False: "not met", None: unknown}[self.met]

    @property
    def margin(self) -> float | None:
        """How many times better than its target the value is: 1 just meets it."""
        if self.target is None or self.met is None or not self.value:
            return None
        return self.value / self.target if self.bound == "at least" else self.target / self.value

    @property
    def shown_value(self) -> str:
        return _shown(self.value, self.unit)

    @property
    def shown_target(self) -> str:
        if self.target is None:
            return ""
        return f"{'≥' if self.bound == 'at least' else '≤'} {_shown(self.target, self.unit)}"

    def __str__(self) -> str:
        target = f"target {self.shown_target}: {self.verdict}" if self.target is not None else ""
        return f"{self.subject:<8} {self.what:<44} {self.shown_value:>10}  {target:<28} {self.detail}".rstrip()


def _shown(value: float, unit: str) -> str:
    if math.isnan(value):
        return "–"
    number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{number}{unit}" if unit in ("×", "") else f"{number} {unit}"


@dataclass(frozen=True)
class Report:
    """All measurements of one run, and the machine they were made on."""

    title: str
    rows: tuple[Measurement, ...]
    machine: Mapping[str, str] = field(default_factory=lambda: machine())

    @property
    def missed(self) -> tuple[Measurement, ...]:
        return tuple(row for row in self.rows if row.met is False)

    @property
    def summary(self) -> str:
        judged = [row for row in self.rows if row.met is not None]
        return f"{len(judged) - len(self.missed)} of {len(judged)} targets met"

    def to_json(self) -> str:
        rows = [
            asdict(row) | {"value": None if math.isnan(row.value) else row.value, "met": row.met} for row in self.rows
        ]
        content = {"title": self.title, "machine": dict(self.machine), "rows": rows}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    def to_markdown(self) -> str:
        lines = [f"# {self.title}", "", f"{self.summary}.", ""]
        lines += ["| subject | what | value | target | verdict | detail |", "|---|---|---|---|---|---|"]
        for row in self.rows:
            cells = (row.subject, row.what, row.shown_value, row.shown_target, row.verdict, row.detail)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines += ["", *(f"- {name}: {value}" for name, value in self.machine.items()), ""]
        return "\n".join(lines)

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """report.json, report.md and, where matplotlib is installed, report.png; returns what was written."""
        return write_report(self, folder, self.to_json(), self.to_markdown())

    def __str__(self) -> str:
        return "\n".join([self.title, *map(str, self.rows), self.summary])


def write_report(targets: Report, folder: str | os.PathLike[str], as_json: str, as_markdown: str) -> list[Path]:
    """report.json, report.md and, where there is something to draw, report.png."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    written = [place / "report.json", place / "report.md"]
    written[0].write_text(as_json, encoding="utf-8")
    written[1].write_text(as_markdown, encoding="utf-8")
    judged = [row for row in targets.rows if row.margin is not None]
    if judged and draw_bars(judged, targets.title, place / "report.png"):
        written.append(place / "report.png")
    return written


def draw_bars(rows: Sequence[Measurement], title: str, path: Path) -> bool:
    """A bar per measurement, as long as it is many times better than its target; False without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(9, 1.2 + 0.36 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    margins = [row.margin or 0.0 for row in rows]
    axes.barh(range(len(rows)), margins, color=["#3b7a57" if row.met else "#b5473c" for row in rows])
    axes.set_yticks(range(len(rows)), [f"{row.subject}: {row.what}" for row in rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("times better than the target (log scale)")
    axes.set_title(title)
    for place, row in enumerate(rows):
        axes.annotate(row.shown_value, (margins[place], place), (4, 0), textcoords="offset points", va="center")
    axes.margins(x=0.25)
    figure.savefig(path, dpi=120)
    return True


def machine() -> dict[str, str]:
    """What the figures depend on: processor, memory, versions, and how busy the machine is."""
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GB",
        "load": f"{os.getloadavg()[0]:.1f} (runnable tasks, average of the last minute)",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        **versions,
    }
