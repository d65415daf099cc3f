"""Aggregates over the shapes around the cells of one dense block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column, Result
from windrow.aggregates.definition import Int64Array
from windrow.aggregates.windows import METHODS, Array, Asked, Evaluation, Mask, refuse_strategy
from windrow.errors import DataError
from windrow.kernels.choose import AUTO
from windrow.kernels.contract.listing import in_shares
from windrow.kernels.contract.outcomes import NO_VALUES, Outcome
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.shapes.problems import Runs, ShapeProblem, shape_problem
from windrow.kernels.shapes.strategies import choose_shapes
from windrow.model.types import data_type_of


class ShapeEvaluation(Evaluation):
    """As Evaluation, over the cells at the offsets in ``runs`` from where ``sweeps`` say that results stand."""

    def __init__(
        self,
        columns: Mapping[str, Column],
        shape: tuple[int, ...],
        sweeps: Sequence[Sweep],
        runs: Runs,
        method: str = "auto",
        min_count: int = 0,
        out: Array | None = None,
        strategy: str = AUTO,
    ) -> None:
        if method not in METHODS:
            raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method))
        self._places = tuple(sweeps)
        self._runs = runs
        super().__init__(columns, shape, self._places, method, min_count, out=out, strategy=strategy)

    @cached_property
    def _problem(self) -> ShapeProblem:
        return shape_problem("count", self.shape, np.int8, self._places, self._runs)

    def _most_cells(self) -> int:
        return self._problem.cells

    def _extents(self) -> Int64Array:
        from windrow.kernels.shapes.scan import extents

        return extents(self._problem)

    def _average(self, aggregate: Aggregate, column: Column) -> Result:
        column = self._roomy(column)
        outcome = self._outcome(aggregate, column)
        outcome = outcome._replace(counts=self._counts(aggregate, outcome))
        definition, found = aggregate.definition, data_type_of(column.values.dtype)
        return self._masked(self._finished(definition, outcome, found), outcome, definition.least, aggregate)

    def _run(self, operation: str, column: Column, ranks: RankTable | None, asked: Asked) -> Outcome:
        values, present = np.ascontiguousarray(column.values), column.present
        if self.method == "auto":
            choice = choose_shapes(
                operation, values.shape, values.dtype, self._places, self._runs, ranks, asked.strategy
            )
            outcome: Outcome = choice.run(values, present, asked.out)
            return outcome
        problem = self._problem.asking(operation, values.dtype, ranks)
        if self.method == "naive":
            from windrow.kernels.shapes.naive import naive_shapes

            return naive_shapes(problem, values, present)
        from windrow.kernels.shapes.incremental import incremental_shapes

        return incremental_shapes(problem, values, present)

    def _user_outcome(self, aggregate: Aggregate, column: Column) -> Outcome:
        from windrow.kernels.shapes.user import user_shapes

        refuse_strategy(self.strategy, aggregate)
        user = aggregate.user
        found = user_shapes(
            user.functions, self._problem, column.values, column.present, user.result.dtype, self.method
        )
        return Outcome(NO_VALUES, *found)

    def lists(self, wanted: Mask) -> Iterator[tuple[Int64Array, Int64Array, Int64Array]]:
        """Some neighbourhoods cell by cell."""
        from windrow.kernels.shapes.tiny import cells_of

        outputs = np.flatnonzero(wanted.reshape(-1))
        size = max(1, int(self._problem.runs.lengths.sum()))
        for begin, end in in_shares(np.full(len(outputs), size)):
            place, inside = cells_of(self._problem, outputs[begin:end])
            starts = np.concatenate([[0], np.cumsum(inside.sum(1))])
            yield outputs[begin:end], place[inside], starts
