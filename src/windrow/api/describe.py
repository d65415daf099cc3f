"""How arrays look: one line for a prompt, a page for ``describe``, HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.views.definition import CHOICES
from windrow.views.location import Location, RepeatedLocation

if TYPE_CHECKING:
    from windrow.api.array import Array
    from windrow.api.views import View

RECENT = 5


@dataclass(frozen=True)
class Description:
    """Facts about an array, in the order they are shown."""

    title: str
    facts: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.facts)
        lines = [self.title]
        for name, text in self.facts:
            first, *rest = text.splitlines() or [""]
            lines.append(f"  {name:<{width}}  {first}")
            lines += [f"  {'':<{width}}  {line}" for line in rest]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left;vertical-align:top'>{html.escape(name)}</th>"
            f"<td style='text-align:left'><pre style='margin:0'>{html.escape(text)}</pre></td></tr>"
            for name, text in self.facts
        )
        return f"<div><b>{html.escape(self.title)}</b><table>{rows}</table></div>"


def one_line(array: Array) -> str:
    version = array._version()
    kind = "sparse" if array.sparse else "dense"
    return f"<windrow.Array {array.name}@{version.number} {kind} {version.schema}: {counted(version.cells, 'cell')}>"


def describe(array: Array) -> Description:
    version = array._version()
    schema = version.schema
    chunks, where = array.chunks(), array.location(version.number)
    facts = [
        ("schema", str(schema)),
        ("kind", "sparse" if array.sparse else "dense"),
        ("version", f"{version.number}, {version.operation}, {version.created:%Y-%m-%d %H:%M:%S} UTC"),
        ("cells", f"{_cells(where, version.cells)} in {version.box}"),
        ("stored", f"{human_bytes(version.bytes)} in {counted(len(chunks), 'chunk')} of {schema.grid.chunk}"),
    ]
    if isinstance(where, RepeatedLocation):
        facts.append(("stored by", f"({', '.join(where.shared)}), and shown at every cell that lies there"))
    for axis in schema.numbering:
        numbered = "tells cells apart that share all other coordinates; any number is near unless a query names it"
        facts.append(("numbering", f"{schema.dimension_names[axis]} {numbered}"))
    for name, labels in sorted(array.labels.items()):
        facts.append((f"labels of {name}", _labels(labels.values, labels.attributes.get("units"))))
    if array.gridding is not None:
        facts.append(("grid", "\n".join(map(str, array.gridding.axes))))
    facts.append(("history", "\n".join(_history(array))))
    facts.append(("location", str(where)))
    return Description(f"{array.name}", tuple(facts))


def _cells(where: Location, stored: int) -> str:
    return f"results of {counted(stored, 'position')}" if isinstance(where, RepeatedLocation) else f"{stored:,}"


def describe_view(view: View) -> Description:
    """An array's facts, with those that a view has besides: its query, and how it is kept up to date."""
    settings = ", ".join(f"{name} = {value}" for name, value in view.settings.items() if name in CHOICES)
    facts = [
        ("query", view.definition),
        ("status", view.status if view.reason is None else f"{view.status}: {view.reason}"),
        ("holds for", versions_text(view.bases)),
        ("follows", "by refresh alone" if view.deferred else "with every batch"),
        ("settings", settings),
        ("parts", _parts(view)),
        ("last", _last(view)),
    ]
    return Description(view.name, (*facts, *describe(view).facts))


def _parts(view: View) -> str:
    """How each part of a view is kept up to date."""
    found = view._database.explain_view(view.definition, **view.settings)
    return "\n".join(f"{part.what}: {part.way}, {part.why}" for part in found.parts)


def _last(view: View) -> str:
    """What was done to a view last, and why."""
    history = view.history()
    last = history.slice(history.num_rows - 1).to_pylist()[0]
    return f"{last['way']}, {last['time']:%Y-%m-%d %H:%M:%S} UTC, {last['why']}"


def versions_text(versions: Mapping[str, int]) -> str:
    """Versions of arrays as they are asked for: ``A@3, B@2``."""
    return ", ".join(f"{name}@{number}" for name, number in versions.items())


def _labels(values: object, units: str | None) -> str:
    listed = list(values)  # type: ignore[call-overload]
    if not listed:
        return "none yet"
    text = f"{listed[0]} to {listed[-1]}, {len(listed):,} of them"
    return text if units is None else f"{text}, {units}"


def _history(array: Array) -> list[str]:
    versions = array.versions()
    lines = []
    for version in reversed(versions[-RECENT:]):
        batch = "" if version.batch is None else f", batch {version.batch!r}"
        when = f"{version.created:%Y-%m-%d %H:%M:%S}"
        lines.append(f"{version.number}: {version.operation}, {when}, {counted(version.cells, 'cell')}{batch}")
    if len(versions) > RECENT:
        lines.append(f"and {len(versions) - RECENT} earlier")
    return lines


def counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def human_bytes(size: int) -> str:
    """A size as people say it."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
