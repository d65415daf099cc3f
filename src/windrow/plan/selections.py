"""What a selection from Python means: by label (``sel``), by number of the cell (``isel``), or by what is unmistakable.

A selection becomes conditions on dimensions, as text would state them, so that both ways mean the same. Ranges are
pairs of ends, both of which are inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import numpy as np

from windrow.errors import DataError
from windrow.expressions.nodes import Between, Call, Column, Comparison, Literal, Node
from windrow.model.coordinates import GridCoordinate
from windrow.model.units import period
from windrow.plan.conditions import joined
from windrow.plan.scopes import Along, CellScope

Ends = tuple[object, object]
"""The first and the last of a range, None for an open end."""

_RANGE = "A range has two ends, both inside, as in (1, 10)"


def by_label(scope: CellScope, selection: Mapping[str, object], nearest: bool = False) -> Node | None:
    """The condition that cells have these labels, or those nearest to them."""
    return _all_of(scope, selection, lambda along, wanted: _labelled(along, wanted, nearest))


def by_cell(scope: CellScope, selection: Mapping[str, object]) -> Node | None:
    """The condition that cells have these numbers."""
    return _all_of(scope, selection, _numbered)


def by_either(scope: CellScope, selection: Mapping[str, object]) -> Node | None:
    """What is unmistakable: text, dates and floats are labels, integers are cells unless the labels are numbers."""
    return _all_of(scope, selection, _unmistakable)


def _all_of(
    scope: CellScope, selection: Mapping[str, object], condition: Callable[[Along, object], Node | None]
) -> Node | None:
    found = []
    for name, wanted in selection.items():
        scope.schema.axis(name)  # says which dimensions there are
        along = scope.look_up(Column(name))
        assert isinstance(along, Along)
        found.append(condition(along, wanted))
    conditions = [node for node in found if node is not None]
    return joined(conditions) if conditions else None


def _unmistakable(along: Along, wanted: object) -> Node | None:
    ends = _ends(along, wanted)
    given = [end for end in ends if end is not None]
    whole = [end for end in given if _is_whole(end)]
    if not whole:
        return _labelled(along, wanted, False)
    labels_are_numbers = along.coordinate is not None and along.coordinate.type.is_number
    if labels_are_numbers or len(whole) < len(given):
        name = along.column.name
        shown = f"{name}={wanted!r}"
        raise DataError(
            f"the selection of {name} may mean labels or numbers of cells",
            got=shown,
            hint=f"By label: sel({shown}). By cell: isel({shown})",
        )
    return _numbered(along, wanted)


# By label


def _labelled(along: Along, wanted: object, nearest: bool) -> Node | None:
    name, ends = along.column.name, _ends(along, wanted)
    given = [end for end in ends if end is not None]
    if not given:
        return None
    if along.coordinate is None:
        if not all(map(_is_whole, given)):
            what = f"dimension {name} has no labels to select by"
            raise DataError(what, got=repr(wanted), hint=f"Select by index. {_present(along)}")
        return _numbered(along, wanted)
    if along.coordinate.type.name == "datetime" and any(map(_is_number, given)):
        hint = f"Labels are dates, as in '2012-07'; by cell: isel({name}={wanted!r})"
        raise DataError(f"the labels of {name} are times", got=repr(wanted), hint=hint)
    first, last = (None if end is None else _constant(name, end) for end in ends)
    if nearest:
        first, last = (None if end is None else _nearest(along, end) for end in (first, last))
    return _condition(along.column, first, last)


def _nearest(along: Along, wanted: Any) -> Any:
    """The label that is nearest to a value."""
    if isinstance(along.coordinate, GridCoordinate) or along.coordinate is None:
        return wanted  # the cell that holds the value is the nearest
    found = along.coordinate.nearest(wanted)
    return _constant(along.column.name, found)


def _constant(name: str, value: Any) -> Any:
    """A label as text can state it: a day, month or year stands for all of it."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, np.datetime64 | date) or hasattr(value, "to_datetime64"):
        found = period(value)
        if found.first == found.last:
            return np.datetime64(found.first, "us").item()
        return value.isoformat() if isinstance(value, date) else str(value)
    if _is_number(value) and value == value:
        return value.item() if isinstance(value, np.generic) else value
    raise DataError(
        f"not a selection of {name}",
        got=repr(value),
        hint="Give a label, as in 12.5 or '2012-01', or a range of them, as in ('2012-01-01', '2012-01-31')",
    )


# By number


def _numbered(along: Along, wanted: object) -> Node | None:
    name, (first, last) = along.column.name, _ends(along, wanted)
    for end in (first, last):
        if end is not None and not _is_whole(end):
            what = f"the cells of {name} are numbered"
            raise DataError(what, got=repr(end), hint=f"{_present(along)}. By label: sel({name}={wanted!r})")
    if isinstance(wanted, slice) and (first, last) != (None, None):
        hint = f"As in ({wanted.start}, {wanted.stop}), both inside: a slice of cells would leave its end out elsewhere"
        raise DataError(f"a range of cells of {name} is a pair", got=repr(wanted), hint=hint)
    if first is None and last is None:
        return None
    lo, hi = (at if end is None else int(end) for end, at in zip((first, last), along.span, strict=True))  # type: ignore[call-overload]
    shown = str(lo) if lo == hi else f"{lo} to {hi}"
    if not (along.span[0] <= lo <= along.span[1] and along.span[0] <= hi <= along.span[1]):
        raise DataError(f"the selection of {name} is outside the array", got=shown, hint=_present(along))
    if lo > hi:
        raise DataError(f"the range of {name} ends before it starts", got=shown, hint=_present(along))
    return _condition(Call("cell", (along.column,)), lo, hi)


# Both


def _ends(along: Along, wanted: object) -> Ends:
    """The ends of what is wanted; those of a single value are the same."""
    name = along.column.name
    if isinstance(wanted, range):
        if wanted.step != 1 or not len(wanted):
            raise DataError(f"the range of {name} needs cells one by one", got=repr(wanted), hint=_RANGE)
        return wanted.start, wanted.stop - 1
    if isinstance(wanted, slice):
        if wanted.step is not None:
            raise DataError(f"a selection of {name} cannot skip cells", got=repr(wanted), hint="Leave the step out")
        return wanted.start, wanted.stop
    if isinstance(wanted, tuple):
        if len(wanted) != 2:
            raise DataError(f"a range of {name} has two ends", got=repr(wanted), hint=_RANGE)
        return wanted[0], wanted[1]
    if isinstance(wanted, bool | np.bool_ | list | set | dict | np.ndarray) or wanted is None:
        raise DataError(f"not a selection of {name}", got=repr(wanted), hint=f"Give one cell or a range. {_RANGE}")
    return wanted, wanted


def _condition(operand: Node, first: Any, last: Any) -> Node:
    low, high = Literal(first), Literal(last)
    if low == high:
        return Comparison("=", operand, low)
    if first is None or last is None:
        return Comparison(">=", operand, low) if last is None else Comparison("<=", operand, high)
    return Between(operand, low, high)


def _present(along: Along) -> str:
    first, last = along.span
    return "There are no cells yet" if last < first else f"The cells go from {first} to {last}"


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


def _is_number(value: object) -> bool:
    return _is_whole(value) or isinstance(value, float | np.floating)
