"""Typing in a dense array: ``load A`` asks for its rows, as a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from windrow.console.commands.exits import explain
from windrow.errors import DataError, Error

if TYPE_CHECKING:
    from windrow import Schema
    from windrow.api.array import Array

Read = Callable[[str], str]
"""Reads a line after a prompt; raises EOFError where there are no more."""


def ask_rows(array: Array, read: Read, say: Callable[[str], None]) -> list[Any]:
    """The rows that are typed for an array. They end when the array is full, or with an empty line."""
    if array.sparse:
        raise DataError(f"array {array.name} is sparse", got="load", hint="Use insert into … values (…)")
    names, wanted = " ".join(array.schema.attribute_names), _values_wanted(array.schema)
    shape = " × ".join("any" if d.hi is None else str(d.extent) for d in array.schema.dimensions)
    say(f"Type the rows of {array.name} ({shape} cells, {names} in each); an empty line ends them, Ctrl-C gives up.")
    rows: list[Any] = []
    typed = 0
    while wanted is None or typed < wanted:
        line = _line(read, f"{typed} of {wanted} values> " if wanted is not None else f"{typed} values> ")
        values = line.strip().rstrip(";").strip()
        if values:
            row = _row(array.name, values)
            typed += sum(map(len, row))
            rows += row
        if not values or line.rstrip().endswith(";"):
            break
    if not rows:
        raise DataError("no rows were typed", hint=f"As in 1 2 3 for the first row of {array.name}")
    return rows


def _values_wanted(schema: Schema) -> int | None:
    """How many values fill an array; None for one that grows with them."""
    extents = [d.extent for d in schema.dimensions if d.extent is not None]
    return None if schema.growing else math.prod(extents) * len(schema.attributes)


def _line(read: Read, prompt: str) -> str:
    try:
        return read(prompt)
    except EOFError:
        return ""


def _row(array: str, line: str) -> list[Any]:
    """The values of a line; one that cannot be read is explained, and may be typed again."""
    from windrow.api.session.script import read_rows

    try:
        return read_rows(array, line)
    except Error as error:
        explain(error, debug=False)
        return []
