"""How far what a view holds may lie from what its definition gives, result by result.

Sums are taken in another order when a view is patched, and are measured by the absolute values of their own rows. What
steps above make of that is tried out: they are given the results with the most that each may be off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.rounding import Rounding, Size
from windrow.execution.engine import Engine
from windrow.expressions.nodes import Binary, Call, Cast, Column, Node
from windrow.kernels.sparse.matching import match_cells
from windrow.model.arrow import arrow_to_block
from windrow.model.schema import Attribute
from windrow.model.types import TYPES
from windrow.plan.bound import Bound, BoundColumns, BoundHeld, BoundJoined, BoundTotals, BoundWindow
from windrow.plan.operators import BoundOperated
from windrow.storage.cells import coordinates
from windrow.views.evaluate import all_cells
from windrow.views.rules.choose import core_of
from windrow.views.steps import put_on

Float64Array = npt.NDArray[np.float64]
Tolerances = Mapping[str, Float64Array]
"""For each attribute that may be off, by how much, one number for each result."""

OF_STEPS = 1e-9
"""What results may be off, of themselves, where values below are rounded sums or those of a user's operator."""

PREFIX = "__windrow_size_"
"""No attribute of a query is called so."""

AggregateStep = BoundWindow | BoundTotals | BoundJoined


def result_tolerances(engine: Engine, bound: Bound, results: pa.Table) -> Tolerances:
    """How far the results of a view's query, which are given, may be off."""
    core = core_of(bound)
    if core is bound:
        return core_tolerances(engine, core, results)
    found = all_cells(engine, core)
    allowed = core_tolerances(engine, core, found)
    if not any(tolerance.any() for tolerance in allowed.values()):
        return {}
    return _carried(engine, bound, results, [_moved(core, found, allowed, sign) for sign in (-1.0, 1.0)])


def core_tolerances(engine: Engine, core: Bound, results: pa.Table) -> Tolerances:
    """The same for the step whose results are kept."""
    rounded_below = any(_rounds(step) for step in core.walk() if step is not core) or isinstance(core, BoundOperated)
    roundings = _roundings(core)
    sizes = _sizes(engine, core, roundings, results)
    found = {}
    for attribute in core.schema.attributes:
        rounding = roundings.get(attribute.name)
        if not attribute.type.is_float or (rounding is None and not rounded_below):
            continue
        values = _reals(results, attribute.name)
        tolerance = np.zeros(len(values))
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            if rounding is not None:
                own = [sizes[_named(attribute.name, number)] for number in range(len(rounding.sizes))]
                tolerance = rounding.allow(values, own)
            if rounded_below:
                tolerance = np.maximum(tolerance * (OF_STEPS / 4e-12), OF_STEPS * np.abs(values))
        found[attribute.name] = np.where(np.isfinite(tolerance), tolerance, 0.0)
    return found


def _rounds(step: Bound) -> bool:
    return isinstance(step, BoundOperated) or bool(_roundings(step))


def _roundings(step: Bound) -> dict[str, Rounding]:
    """The aggregates of a step that round, by name."""
    if not isinstance(step, AggregateStep):
        return {}
    floats = {attribute.name for attribute in step.schema.attributes if attribute.type.is_float}
    known = ((name, aggregate.definition.rounding) for name, aggregate in _aggregates(step) if name in floats)
    return {name: rounding for name, rounding in known if rounding is not None}


def _aggregates(step: AggregateStep) -> tuple[tuple[str, Aggregate], ...]:
    return step.plan.aggregates if isinstance(step, BoundWindow) else step.aggregates


def _sizes(engine: Engine, core: Bound, roundings: Mapping[str, Rounding], results: pa.Table) -> Tolerances:
    """How large the values of each result are: the same query, of absolute values."""
    asked: list[tuple[str, Aggregate]] = []
    arguments: dict[Node, str] = {}
    if isinstance(core, AggregateStep):
        nodes = dict(core.arguments) if isinstance(core, BoundJoined) else None
        for name, aggregate in _aggregates(core):
            of = [Column(one) if nodes is None else nodes[one] for one in aggregate.attributes]
            for number, size in enumerate(roundings[name].sizes if name in roundings else ()):
                node = _product(size, of)
                argument = arguments.setdefault(node, f"{PREFIX}{len(arguments)}")
                asked.append((_named(name, number), Aggregate(size.aggregate, argument)))
    if not asked or not isinstance(core, AggregateStep):
        return {}
    found = all_cells(engine, _with_aggregates(core, tuple(asked), tuple((n, node) for node, n in arguments.items())))
    place = match_cells(coordinates(results, core.schema), coordinates(found, core.schema))
    reals = ((name, _reals(found, name)) for name, _ in asked)
    return {name: np.where(place < 0, np.nan, np.append(values, np.nan)[place]) for name, values in reals}


def _named(attribute: str, number: int) -> str:
    return f"{PREFIX}{attribute}_{number}"


def _product(size: Size, arguments: list[Node]) -> Node:
    factors = []
    for node, power in zip(arguments, size.powers, strict=True):
        real: Node = Cast(node, TYPES["float64"])
        factors += [real if size.signed else Call("abs", (real,))] * power
    product = factors[0]
    for factor in factors[1:]:
        product = Binary("*", product, factor)
    return product


def _with_aggregates(
    core: AggregateStep, aggregates: tuple[tuple[str, Aggregate], ...], arguments: tuple[tuple[str, Node], ...]
) -> Bound:
    """The same step, computing other aggregates of other arguments."""
    real = TYPES["float64"]
    schema = replace(core.schema, attributes=tuple(Attribute(name, real) for name, _ in aggregates))
    if isinstance(core, BoundJoined):
        return replace(core, schema=schema, aggregates=aggregates, arguments=arguments)
    below = core.source
    columns = BoundColumns(
        schema=replace(below.schema, attributes=tuple(Attribute(name, real) for name, _ in arguments)),
        box=below.box,
        labels=below.labels,
        gridding=below.gridding,
        source=below,
        outputs=arguments,
    )
    if isinstance(core, BoundTotals):
        return replace(core, schema=schema, source=columns, aggregates=aggregates)
    attributes = columns.schema.attributes
    plan = replace(core.plan, schema=replace(core.plan.schema, attributes=attributes), aggregates=aggregates)
    return replace(core, schema=schema, source=columns, plan=plan)


def _moved(core: Bound, results: pa.Table, allowed: Tolerances, sign: float) -> BoundHeld:
    """The results with the most that each may be off, in one direction."""
    for name, tolerance in allowed.items():
        place, column = results.schema.get_field_index(name), results.column(name)
        moved = pa.array(_reals(results, name) + sign * tolerance, mask=column.is_null().to_numpy())
        results = results.set_column(place, results.schema.field(name), moved.cast(column.type))
    return BoundHeld(
        schema=core.schema, box=core.box, labels=core.labels, gridding=core.gridding, table=results.combine_chunks()
    )


def _carried(engine: Engine, bound: Bound, results: pa.Table, moved: list[BoundHeld]) -> Tolerances:
    """What the steps above make of that: twice as much is allowed as they show, for they may bend."""
    at, core = coordinates(results, bound.schema), core_of(bound)
    names = [attribute.name for attribute in bound.schema.attributes if attribute.type.is_float]
    wanted = {name: _reals(results, name) for name in names}
    found = {name: 4 * np.finfo(np.float64).eps * np.abs(values) for name, values in wanted.items()}
    for held in moved:
        other = all_cells(engine, put_on(bound, core, held))
        place = match_cells(at, coordinates(other, bound.schema))
        for name, values in wanted.items():
            with np.errstate(invalid="ignore", over="ignore"):
                apart = 2 * np.abs(np.append(_reals(other, name), np.nan)[place] - values)
            found[name] = np.fmax(found[name], np.where(np.isfinite(apart), apart, 0.0))
    return {name: np.where(np.isnan(values), 0.0, values) for name, values in found.items()}


def _reals(table: pa.Table, name: str) -> Float64Array:
    """A column as floats, NaN where it is missing."""
    values, present = arrow_to_block(table.column(name))
    reals = np.asarray(values, np.float64)
    return reals if present is None else np.where(present, reals, np.nan)
