"""Values of attributes that cells are grouped by: those that occur are looked up when a query is bound.

The values become a dimension of the result, called after the attribute, in their order. A dense result has them as
labels. A sparse one numbers its cells by the values themselves where these are whole numbers, and has labels where they
are texts or times. A cell without a value is in no group, for no cell of a result could be called by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, SchemaError
from windrow.model.labels import Labels
from windrow.model.schema import MOST_CELLS, Attribute, Dimension
from windrow.plan.bound import Bound

Int64Array = npt.NDArray[np.int64]
Values = Callable[[Bound, str], Any]
"""Reads the values that an attribute of a step has, each once, in order, without missing ones: an Arrow array."""

NOWHERE = -1
"""The axis of what lies along none."""

FEW = 2**16
"""Whole numbers close to one another, whose places are looked up in a table."""


def no_values(bound: Bound, name: str) -> Any:
    """What reads values where nothing may be read."""
    raise values_refused(name)


def values_refused(name: str) -> SchemaError:
    """A view's dimensions are stated once and for all."""
    hint = "Keep the result with into, or make a view by dimensions"
    return SchemaError("a view cannot be grouped by values of attributes", got=repr(name), hint=hint)


@dataclass(frozen=True)
class ValuePart:
    """An attribute that cells are grouped by: the values that it has, and the cells of the result they stand for."""

    name: str
    found: Labels
    """The values, in order."""
    numbers_cells: bool
    """Whether values are themselves the numbers of the result's cells."""
    can_be_missing: bool

    @property
    def dimension(self) -> Dimension:
        lo, hi = self.ends
        return Dimension(self.name, lo, max(lo, hi))

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last cell of the result; the last is before the first if there are none."""
        values = self.found.values
        return (int(values[0]), int(values[-1])) if self.numbers_cells and len(values) else (0, len(values) - 1)

    @property
    def labels(self) -> Labels | None:
        return None if self.numbers_cells else self.found

    def places(self, codes: Int64Array) -> Int64Array:
        """The cells of the result that values stand for, by the values' places among all."""
        return self.found.values[codes] if self.numbers_cells else codes

    def codes(self, column: Any) -> Int64Array:
        """The place among all values of each of a column; -1 for what is missing, or is none of them."""
        if self._table is not None:
            return self._looked_up(column, *self._table)
        import pyarrow.compute as pc

        from windrow.model.arrow import block_to_arrow

        known = block_to_arrow(self.found.values).cast(column.type)
        found: Int64Array = pc.fill_null(pc.index_in(column, value_set=known), -1).to_numpy().astype(np.int64)
        return found

    @cached_property
    def _table(self) -> tuple[int, Int64Array] | None:
        """The least value, and the place of each whole number from it on, where these are few."""
        values = self.found.values
        if values.dtype != np.int64 or not len(values) or int(values[-1]) - int(values[0]) >= FEW:
            return None
        table = np.full(int(values[-1] - values[0]) + 1, -1, np.int64)
        table[values - values[0]] = np.arange(len(values))
        return int(values[0]), table

    def _looked_up(self, column: Any, least: int, table: Int64Array) -> Int64Array:
        from windrow.model.arrow import arrow_to_block

        values, valid = arrow_to_block(column)
        there = (values >= least) & (values <= least + len(table) - 1)
        there = there if valid is None else there & valid
        found: Int64Array = np.where(there, table[np.where(there, values, least).astype(np.int64) - least], -1)
        return found


def value_part(attribute: Attribute, source: Bound, values: Values, extents: Sequence[int]) -> ValuePart:
    """The groups that an attribute makes; ``extents`` are those of the result's other dimensions."""
    name = attribute.name
    if attribute.type.is_float:
        hint = f"Round it first: select cast(floor({name}) as int64) as k, … in parentheses after from"
        raise SchemaError("cells cannot be grouped by floats, of which hardly two are equal", got=repr(name), hint=hint)
    found = values(source, name)
    labels = _labels(name, found)
    whole = labels.values.dtype == np.int64 and attribute.type.dtype.kind in "iub"
    fits = source.schema.sparse and whole and _fits(labels.values, extents)
    return ValuePart(name, labels, fits, attribute.can_be_missing)


def _labels(name: str, found: Any) -> Labels:
    from windrow.model.arrow import arrow_to_block

    values = arrow_to_block(found)[0]
    if values.dtype.kind == "u" and len(values) and int(values[-1]) > np.iinfo(np.int64).max:
        hint = f"Make texts of them: select cast({name} as string) as k, … in parentheses after from"
        raise DataError("groups are called by numbers below 2^63", got=f"{values[-1]} in {name}", hint=hint)
    return Labels(values.astype(np.int64) if values.dtype.kind in "iub" else values)


def _fits(values: Int64Array, extents: Sequence[int]) -> bool:
    """Whether an array can have cells of these numbers, besides its other dimensions."""
    if not len(values):
        return True
    low, high = int(values[0]), int(values[-1])
    places = (high - low + 1) * math.prod(max(1, extent) for extent in extents)
    return max(abs(low), abs(high)) < MOST_CELLS and places < MOST_CELLS
