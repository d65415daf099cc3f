"""A view compared with its definition, evaluated from scratch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.execution.engine import Engine
from windrow.kernels.sparse.matching import found_in, match_cells
from windrow.kernels.sparse.order import coordinate_order
from windrow.model.arrow import arrow_to_block
from windrow.model.schema import Schema
from windrow.plan.bound import Bound, BoundJoined
from windrow.storage.cells import cell_fields, coordinates
from windrow.views.changes import same_values
from windrow.views.evaluate import all_cells
from windrow.views.rules.choose import kept_step, state_layout_of
from windrow.views.tolerance import Float64Array, Tolerances, core_tolerances, result_tolerances

CHANGE = "change"


def find_differences(engine: Engine, stored: Bound, expected: Bound) -> tuple[int, pa.Table]:
    """How many cells a view has; and those that it should not have ("left"), and that it should have ("came")."""
    there, wanted = all_cells(engine, stored), all_cells(engine, expected)
    schema = stored.schema
    allowed = result_tolerances(engine, expected, wanted)
    wanted = wanted.cast(cell_fields(schema))
    return there.num_rows, tell_apart(schema, *_unlike(schema, there, wanted, allowed))


def count_damaged_states(engine: Engine, states: Bound, expected: Bound) -> int:
    """How many of the states kept for patching lead to other results than those that the definition gives."""
    layout, core = state_layout_of(expected), kept_step(expected)
    kept = all_cells(engine, states)
    if layout is None or not kept.num_rows:
        return int(kept.num_rows)
    if states.schema.attributes != layout.attributes:
        return 0  # of another windrow: they are made anew when they are needed
    least = core.min_count if isinstance(core, BoundJoined) else 0
    finished = layout.finish(layout.from_arrow(kept), least)
    results = all_cells(engine, core)
    allowed = core_tolerances(engine, core, results)
    place = match_cells(coordinates(kept, states.schema), coordinates(results, core.schema))
    wrong = place < 0
    for attribute in core.schema.attributes:
        values, missing, recompute = finished[attribute.name]
        wanted, present = arrow_to_block(results.column(attribute.name).take(pa.array(np.maximum(place, 0))))
        lacking = np.zeros(len(values), bool) if present is None else ~present
        if attribute.type.is_float:  # a result that is no number, as that of opposite infinities, is missing
            missing = missing | np.isnan(values)
            lacking |= np.isnan(wanted)
        alike = np.asarray(values == wanted)
        if attribute.name in allowed:
            alike |= _close(values, wanted, allowed[attribute.name][np.maximum(place, 0)])
        wrong |= ~recompute & (missing != lacking)
        wrong |= ~recompute & ~missing & ~lacking & ~alike
    return int(wrong.sum())


def tell_apart(schema: Schema, left: pa.Table, came: pa.Table) -> pa.Table:
    """Both as one table: coordinates, which of the two, attributes."""
    names = cell_fields(schema).names
    fields = pa.schema(
        [*(cell_fields(schema).field(name) for name in schema.dimension_names), pa.field(CHANGE, pa.string())]
        + [cell_fields(schema).field(name).with_nullable(True) for name in schema.attribute_names]
    )
    pieces = []
    for said, table in (("left", left), ("came", came)):
        marked = table.select(names).append_column(CHANGE, pa.array([said] * table.num_rows, pa.string()))
        pieces.append(marked.select(fields.names).cast(fields))
    both = pa.concat_tables(pieces)
    order = coordinate_order(coordinates(both, schema))  # stable: what left comes before what came
    return both.take(pa.array(order)).combine_chunks()


def _unlike(schema: Schema, one: pa.Table, other: pa.Table, allowed: Tolerances) -> tuple[pa.Table, pa.Table]:
    """The rows of each that the other does not have, where floats may be off by as much as is allowed of the other."""
    at = [coordinates(table, schema) for table in (one, other)]
    common = [found_in(at[0], at[1]), found_in(at[1], at[0])]
    kept = [np.flatnonzero(mask) for mask in common]
    kept = [rows[coordinate_order([c[rows] for c in columns])] for rows, columns in zip(kept, at, strict=True)]
    pair = [table.take(pa.array(rows)) for table, rows in zip((one, other), kept, strict=True)]
    same = np.ones(len(kept[0]), bool)
    for attribute in schema.attributes:
        alone = schema.select([attribute.name])
        alike = same_values(alone, *(table.select(cell_fields(alone).names) for table in pair))
        if attribute.name in allowed:
            floats = [arrow_to_block(table.column(attribute.name))[0] for table in pair]
            alike |= _close(floats[0], floats[1], allowed[attribute.name][kept[1]])
        same &= alike
    unlike = []
    for table, mask, rows in zip((one, other), common, kept, strict=True):
        chosen = ~mask
        chosen[rows[~same]] = True
        unlike.append(table.filter(pa.array(chosen)))
    return unlike[0], unlike[1]


def _close(one: npt.NDArray[Any], other: npt.NDArray[Any], tolerance: Float64Array) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(one) & np.isfinite(other)
        return np.asarray(finite & (np.abs(one - other) <= tolerance))
