"""Aggregates from folds: what is counted, added and compared while values pass by, whatever then becomes of it.

A fold keeps, for each group, some of the primitives of the kernels. An aggregate that is one of these primitives is
finished from it; one whose parts are such is joined from the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column, Result
from windrow.aggregates.parts import join_parts
from windrow.kernels.contract.outcomes import NO_VALUES, Outcome
from windrow.model.types import TYPES, DataType

COUNT, SUM, SQUARES, MIN, MAX = "count", "sum", "squares", "min", "max"
FOLDED = frozenset({COUNT, SUM, SQUARES, MIN, MAX})
"""The primitives that a fold can keep."""

Primitive = tuple[str | None, str]
"""An argument, None for the cells themselves, and what is kept of it."""
CELLS: frozenset[Primitive] = frozenset({(None, COUNT)})
"""How many cells a group has."""
Outcomes = Callable[[str | None, str], Outcome]


def folded_parts(aggregate: Aggregate) -> tuple[Aggregate, ...] | None:
    """The aggregates that a fold has to give for this one: itself, or its parts; None if a fold cannot."""
    if aggregate.definition.operation in FOLDED:
        return (aggregate,)
    parts = tuple(aggregate.parts().values()) if aggregate.definition.join is not None else ()
    if parts and all(part.definition.operation in FOLDED for part in parts):
        return parts
    return None


def primitives_of(aggregates: Iterable[Aggregate]) -> set[Primitive]:
    """What has to be kept for aggregates that can be folded."""
    found: set[Primitive] = set()
    for aggregate in aggregates:
        for part in folded_parts(aggregate) or ():
            found.add((part.attribute, str(part.definition.operation)))
    return found


def finish_fold(aggregate: Aggregate, outcomes: Outcomes, types: Mapping[str, DataType]) -> Result:
    """An aggregate of every group, from what was kept."""
    if aggregate.definition.operation in FOLDED:
        return _finish(aggregate, outcomes, types)
    columns = {name: _column(_finish(part, outcomes, types)) for name, part in aggregate.parts().items()}
    groups = len(next(iter(columns.values())).values)
    return join_parts(aggregate, columns, np.arange(groups + 1))


def finish_rank(aggregate: Aggregate, outcome: Outcome, found: DataType) -> Result:
    """An order statistic of every group."""
    return _judge(aggregate, outcome, found)


def _finish(aggregate: Aggregate, outcomes: Outcomes, types: Mapping[str, DataType]) -> Result:
    outcome = outcomes(aggregate.attribute, str(aggregate.definition.operation))
    return _judge(aggregate, outcome, TYPES["int64"] if aggregate.attribute is None else types[aggregate.attribute])


def _judge(aggregate: Aggregate, outcome: Outcome, found: DataType) -> Result:
    definition = aggregate.definition
    assert definition.finish is not None
    assert outcome.counts is not None
    with np.errstate(invalid="ignore", over="ignore"):
        values = definition.finish(outcome, found)
    missing = outcome.counts < definition.least if definition.least else None
    return Result(values, missing if missing is not None and missing.any() else None)


def _column(result: Result) -> Column:
    return Column(result.values, None if result.missing is None else ~result.missing)


def outcome_of_sums(counts: np.ndarray, high: np.ndarray, low: np.ndarray) -> Outcome:
    """Double-double sums; a sum that met an infinity is what it became, its rounding means nothing."""
    with np.errstate(invalid="ignore", over="ignore"):
        reals = np.where(np.isfinite(high), high + low, high)
    return Outcome(reals, NO_VALUES, counts)
