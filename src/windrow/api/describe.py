"""How arrays look: one line for a prompt, a page for ``describe``, HTML for notebooks."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.api.array import Array

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
    chunks = array.chunks()
    facts = [
        ("schema", str(schema)),
        ("kind", "sparse" if array.sparse else "dense"),
        ("version", f"{version.number}, {version.operation}, {version.created:%Y-%m-%d %H:%M:%S} UTC"),
        ("cells", f"{version.cells:,} in {version.box}"),
        ("stored", f"{human_bytes(version.bytes)} in {counted(len(chunks), 'chunk')} of {schema.grid.chunk}"),
    ]
    for name, labels in sorted(array.labels.items()):
        facts.append((f"labels of {name}", _labels(labels.values, labels.attributes.get("units"))))
    if array.gridding is not None:
        facts.append(("grid", "\n".join(map(str, array.gridding.axes))))
    facts.append(("history", "\n".join(_history(array))))
    facts.append(("location", str(array.location(version.number))))
    return Description(f"{array.name}", tuple(facts))


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
