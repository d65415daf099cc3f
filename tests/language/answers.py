"""Answers as text, one way only, so that files of questions and answers can be read and compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import windrow as wr
from windrow.api.describe import Description
from windrow.operations.query.explain import QueryExplanation
from windrow.views.explain import ViewExplanation

CHANGING = ("created", "bytes")
"""Columns of listings that differ from run to run."""

MEASURED = ("time", "why", "planned", "touched", "pairs", "chunks", "seconds", "phases")
"""The same of a view's history, and what follows from how it was planned."""


@dataclass(frozen=True)
class Case:
    line: int
    statement: str
    twin: str
    """SQL that another database gives the same answer to."""
    answer: str


def cases(path: Path) -> Iterator[Case]:
    """A statement begins with ``> `` and goes on with ``. ``; its answer ends at a blank line; # is a remark.

    Lines that begin with ``= `` are SQL with the same answer.
    """
    blocks: list[tuple[int, list[str]]] = []
    for number, text in enumerate([*path.read_text().splitlines(), ""], 1):
        if text.startswith("#"):
            continue
        if text.startswith("> "):
            blocks.append((number, []))
        if blocks and text.strip():
            blocks[-1][1].append(text)
    for number, lines in blocks:
        asked = [line[2:] for line in lines if line[:2] in ("> ", ". ")]
        twin = [line[2:] for line in lines if line[:2] == "= "]
        answered = [line for line in lines if line[:2] not in ("> ", ". ", "= ")]
        yield Case(number, *map("\n".join, (asked, twin, answered)))


def answer(database: Any, statement: str) -> str:
    """What a statement gives, or the first line of its mistake."""
    try:
        return "\n".join(line.rstrip() for line in _shown(database.query(statement)))
    except wr.Error as error:
        return f"error: {str(error).splitlines()[0]}"


def _shown(found: Any) -> Iterator[str]:
    if isinstance(found, wr.Query):
        found = found.compute()
    if isinstance(found, pa.Table):
        yield from _table(found)
    elif hasattr(found, "data_vars"):
        yield from _dataset(found)
    elif isinstance(found, wr.Report):
        steps = [f"{change.operation} {change.array}: {change.cells}" for change in found.changes]
        versions = [f"{name}@{number}" for name, number in found.versions.items()]
        again = [] if found.applied else ["applied before"]
        yield "; ".join([*steps, *versions, *again])
    elif isinstance(found, Description):
        yield from (f"{name}: {text}" for name, text in found.facts if name in ("schema", "kind", "cells"))
    elif isinstance(found, ViewExplanation):
        yield from (f"{part.what}: {part.way}" for part in found.parts)
    elif isinstance(found, QueryExplanation):
        yield from ("  " * step.depth + step.text for step in found.steps)
        yield from (f"rule: {name}" for name, _ in found.rules)
        yield f"reads {found.cells_read}" + ("" if found.results is None else f", gave {found.results}")
    else:
        yield from str(found).splitlines()[:2]


def _table(table: pa.Table) -> Iterator[str]:
    changing = (*CHANGING, *MEASURED) if "phases" in table.column_names else CHANGING
    shown = table.drop_columns([name for name in changing if name in table.column_names])
    yield " ".join(shown.column_names)
    for row in shown.to_pylist():
        yield " ".join(_text(value) for value in row.values())


def _dataset(found: Any) -> Iterator[str]:
    for name, variable in found.data_vars.items():
        if name.endswith("__valid"):
            continue
        values = np.asarray(variable.values).astype(object)
        if f"{name}__valid" in found:
            values = np.where(found[f"{name}__valid"].values, values, None)
        if values.ndim < 2:
            yield f"{name}: " + " ".join(_text(value) for value in np.atleast_1d(values))
            continue
        yield f"{name}:"
        for row in values.reshape(-1, values.shape[-1]) if values.size else ():
            yield "  " + " ".join(_text(value) for value in row)


def _text(value: Any) -> str:
    if value is None or value != value:
        return "null"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)
