"""Aggregates over the frames of one sorted partition: ``evaluate_frames`` is the one entry for NumPy and for Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.columns import Column
from windrow.aggregates.definition import Compose, Definition, Float64Array
from windrow.aggregates.frame_values import MISSING, NANS, Coded, FrameValues, decimals, frame_values
from windrow.aggregates.windows import COUNT, USER, refuse_strategy
from windrow.errors import DataError, SchemaError
from windrow.kernels.choose import AUTO, check_strategy
from windrow.kernels.contract.listing import in_shares
from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.contract.ranks import RankTable
from windrow.kernels.frames.methods import METHODS, TAU, check_method, frame_outcome
from windrow.kernels.frames.spans import Int64Array, Mask, Spans, spans_of
from windrow.kernels.frames.strategies import NAMES
from windrow.kernels.frames.sums import may_overflow
from windrow.model.frame import check_exclude
from windrow.model.types import TYPES, DataType

Array = npt.NDArray[Any]

__all__ = ["METHODS", "TAU", "Coded", "Column", "FrameEvaluation", "Frames", "evaluate_frames"]

LIMB = 30
"""Bits of a decimal that are summed at a time: 2**33 rows of them fit 64 bits."""


@dataclass(frozen=True, eq=False)
class Frames:
    """Frame k has the rows ``lo[k] <= row < hi[k]``; those that end before they start are empty.

    ``exclude`` is as in SQL. It is about the row ``current[k]`` (by default row k) and, for group and ties, about its
    peers: the rows from ``peers[0][k]`` to before ``peers[1][k]``.
    """

    lo: Int64Array
    hi: Int64Array
    exclude: str = "no others"
    peers: tuple[Int64Array, Int64Array] | None = None
    current: Int64Array | None = None

    def spans(self, rows: int) -> Spans:
        """The frames as ranges of a partition of ``rows`` rows."""
        check_exclude(self.exclude)
        for bound in (self.lo, self.hi):
            if np.asarray(bound).dtype.kind not in "iu":
                raise DataError("the bounds of frames must be whole numbers", got=np.asarray(bound).dtype)
        if self.exclude == "no others":
            return spans_of(self.lo, self.hi, rows)
        current = self._current(rows)
        if self.exclude == "current row":
            return spans_of(self.lo, self.hi, rows, (current, current + 1))
        if self.peers is None:
            raise SchemaError(f"exclude {self.exclude} needs to know which rows are peers")
        if any(np.shape(side) != np.shape(self.lo) for side in self.peers):
            raise DataError("there must be one range of peers for each frame", got=[np.shape(s) for s in self.peers])
        return spans_of(self.lo, self.hi, rows, self.peers, current if self.exclude == "ties" else None)

    def _current(self, rows: int) -> Int64Array:
        if self.current is not None:
            if np.shape(self.current) != np.shape(self.lo):
                raise DataError("there must be one current row for each frame", got=np.shape(self.current))
            return np.asarray(self.current, np.int64)
        if len(self.lo) != rows:
            raise DataError(f"exclude {self.exclude} needs one frame for each of {rows} rows", got=len(self.lo))
        return np.arange(rows, dtype=np.int64)


def evaluate_frames(
    columns: Mapping[str, Column | Coded],
    frames: Frames,
    aggregate: Aggregate,
    *,
    method: str = "auto",
    keep: Mask | None = None,
    nan: str = MISSING,
    tau: float = TAU,
    strategy: str = AUTO,
) -> Column:
    """One aggregate in every frame; what is not ``present`` in the result is missing.

    ``keep`` is SQL's FILTER: other rows are passed over. ``nan`` says whether NaN is missing, as in arrays, or a value
    larger than all others, as on DataFrames. ``tau`` says when ``incremental`` distinct counts and modes flush their
    tables (003 §3.3). ``strategy`` forces one under method auto.
    """
    return FrameEvaluation(columns, frames, method, nan, tau, strategy).result(aggregate, keep)


@dataclass
class FrameEvaluation:
    """The frames of one partition; what several aggregates of one column need is worked out once."""

    columns: Mapping[str, Column | Coded]
    frames: Frames
    method: str = "auto"
    nan: str = MISSING
    tau: float = TAU
    strategy: str = AUTO
    _prepared: dict[tuple[str, int | None], tuple[FrameValues, Spans]] = field(default_factory=dict)
    _kept: list[Mask] = field(default_factory=list)  # keeps masks alive, so that their identities stay theirs

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise DataError("method must be one of " + ", ".join(METHODS), got=repr(self.method))
        if self.nan not in NANS:
            raise DataError("nan must be one of " + ", ".join(NANS), got=repr(self.nan))
        if not 0 <= self.tau <= 1:
            raise DataError("tau must be from 0 to 1", got=self.tau)
        check_strategy(self.method, self.strategy, NAMES)
        lengths = {name: _length(column) for name, column in self.columns.items()}
        if len(set(lengths.values())) != 1:
            raise DataError("columns must be of one length", got=lengths)

    @cached_property
    def rows(self) -> int:
        return _length(next(iter(self.columns.values())))

    @cached_property
    def _spans(self) -> Spans:
        return self.frames.spans(self.rows)

    def result(self, aggregate: Aggregate, keep: Mask | None = None) -> Column:
        """One aggregate in every frame, over the rows that ``keep`` marks."""
        if keep is not None:
            keep = np.asarray(keep)
            if keep.shape != (self.rows,) or keep.dtype != np.bool_:
                raise DataError(
                    f"a filter needs a boolean for each of {self.rows} rows", got=f"{keep.dtype} {keep.shape}"
                )
        if aggregate.attribute is None:
            return Column(self._spans.present(keep).sizes.copy())
        if aggregate.definition.names_a_row:
            return self._rows_named(aggregate.attribute, int(aggregate.constant or 0), keep)
        if aggregate.definition.compose is not None:
            return self._compose(aggregate, aggregate.definition.compose, keep)
        values, spans = self._values(aggregate.attribute, keep)
        aggregate.definition.check_type(values.type if values.numbers is None else TYPES["float64"])
        return _FrameResult(aggregate, values, spans, self.method, self.tau, self.strategy).column()

    def _compose(self, aggregate: Aggregate, compose: Compose, keep: Mask | None) -> Column:
        """An aggregate made of several primitives, over the rows in which all its arguments are present."""
        refuse_strategy(self.strategy, aggregate)
        for name in aggregate.attributes[1:] and aggregate.attributes:
            keep = self._values(name, keep)[0].there  # what one argument lacks, the others need not have
        arguments = [self._values(name, keep) for name in aggregate.attributes]
        for number, (values, _) in enumerate(arguments):
            found = values.type if values.numbers is None else TYPES["float64"]
            aggregate.definition.check_type(found, number)
        primitives = FramePrimitives([values for values, _ in arguments], arguments[0][1], self.method, self.tau)
        found_values, missing = compose(primitives)
        lacking = primitives.counts() < aggregate.definition.least
        if missing is not None:
            lacking = lacking | missing
        return Column(found_values, ~lacking if lacking.any() else None)

    def _rows_named(self, name: str, number: int, keep: Mask | None) -> Column:
        """The values of each frame's n-th row, which may itself be missing."""
        column = self.columns[name]
        if isinstance(column, Coded):
            column = Column(column.dictionary[column.codes], column.present)
        spans = self._spans.present(keep)
        rows = spans.rows_numbered(number - 1 if number > 0 else spans.sizes + number)
        if not spans.rows:
            return Column(np.zeros(len(rows), column.values.dtype), np.zeros(len(rows), bool))
        there = rows >= 0
        picked = rows if keep is None else np.flatnonzero(keep)[rows]
        if column.present is not None:
            there = there & column.present[picked]
        return Column(column.values[picked], None if there.all() else there)

    def _values(self, name: str, keep: Mask | None) -> tuple[FrameValues, Spans]:
        key = (name, None if keep is None else id(keep))
        if key not in self._prepared:
            if keep is not None:
                self._kept.append(keep)
            values = frame_values(self.columns[name], keep, self.nan)
            self._prepared[key] = (values, self._spans.present(values.there))
        return self._prepared[key]


@dataclass(frozen=True)
class _FrameResult:
    """One aggregate of one column's present rows."""

    aggregate: Aggregate
    values: FrameValues
    spans: Spans
    method: str
    tau: float
    strategy: str

    def column(self) -> Column:
        """The results in the type of the column's values, or of the aggregate."""
        definition = self.aggregate.definition
        present = None if self.spans.fewest >= definition.least else self.spans.sizes >= definition.least
        return Column(self._results(definition), present)

    def _results(self, definition: Definition) -> Array:
        values, operation = self.values, definition.operation
        assert operation is not None
        assert definition.finish is not None
        if operation == COUNT:
            return self.spans.sizes.copy()
        check_method(self.method, operation)
        if operation == USER:
            return self._by_user()
        ranks = self.aggregate.frame_ranks(self.spans)
        if definition.sums and values.unscaled is not None:
            return self._decimal_sums(*values.unscaled)
        if ranks is None and not definition.picks and not definition.tallies and values.numbers is not None:
            found = definition.finish(self._run(operation, values.numbers, None), TYPES["float64"])
            return self._spoilt(found)
        if ranks is not None and ranks.interpolates and values.numbers is not None:
            return self._between(ranks)
        numbers = values.values
        if definition.averages and numbers.dtype.kind != "f" and may_overflow(numbers, self.spans):
            numbers = numbers.astype(np.float64)
        outcome = self._run(operation, numbers, ranks)
        if definition.picks:
            return values.decode(outcome.exact)
        if definition.divides and not (definition.tallies and self.spans.fewest > 0):
            outcome = outcome._replace(counts=self.spans.sizes)
        return definition.finish(outcome, values.type)

    def _run(self, operation: str, values: Array, ranks: RankTable | None) -> Outcome:
        return frame_outcome(operation, values, self.spans, ranks, self.method, self.tau, self.strategy)

    def _spoilt(self, found: Array) -> Array:
        """Sums over frames that hold NaN are NaN."""
        if self.values.nans is None:
            return found
        nans = self.spans.present(self.values.nans).sizes
        return np.where(nans > 0, np.nan, found)

    def _between(self, ranks: RankTable) -> Array:
        """Between values that are numbered: both neighbours are found, then what lies between them."""
        low, high = (
            self.values.decode(self._run("select", self.values.values, ranks.picking(side)).exact).astype(np.float64)
            for side in (ranks.lower, ranks.upper)
        )
        weight = ranks.weights(self.spans.sizes)
        with np.errstate(invalid="ignore", over="ignore"):
            distance = high - low
            moved = np.where(np.isfinite(distance), low + weight * distance, low * (1 - weight) + high * weight)
        return np.where((weight == 0) | (low == high), low, moved)

    def _decimal_sums(self, unscaled: list[int], scale: int) -> Array:
        """Exact sums of whole numbers of any size, a few bits of all of them at a time."""
        totals = np.zeros(self.spans.count, object)
        rest, shift = unscaled, 0
        while any(rest):
            limb = np.array([number & (2**LIMB - 1) if number >= 0 else -(-number & (2**LIMB - 1)) for number in rest])
            totals += self._run("sum", limb.astype(np.int64), None).exact.astype(object) << shift
            rest = [number >> LIMB if number >= 0 else -(-number >> LIMB) for number in rest]
            shift += LIMB
        return decimals(totals, scale)

    def _by_user(self) -> Array:
        from windrow.kernels.user.frames import user_frames

        refuse_strategy(self.strategy, self.aggregate)
        user = self.aggregate.user
        values = self.values.values if self.values.numbers is None else self.values.numbers
        plain = values.astype(self.values.type.dtype, copy=False) if self.values.type.dtype.kind != "M" else values
        return user_frames(user.functions, plain, self.spans, user.result.dtype, self.method)


class FramePrimitives:
    """Primitives over frames, of the rows in which all arguments are present."""

    def __init__(self, arguments: Sequence[FrameValues], spans: Spans, method: str, tau: float) -> None:
        self.method = method
        self._arguments, self._spans, self._tau = arguments, spans, tau
        self._sums: dict[str, Float64Array] = {}

    def type_of(self, argument: int) -> DataType:
        return self._arguments[argument].type

    def reals(self, argument: int) -> Float64Array:
        """Values as floats; NaN that is a value makes whatever is worked out with it NaN."""
        values = self._arguments[argument]
        if values.numbers is None:
            return values.values.astype(np.float64)
        return values.numbers if values.nans is None else np.where(values.nans, np.nan, values.numbers)

    def counts(self) -> Int64Array:
        return self._spans.sizes

    def sums(self, name: str, values: Callable[[], Float64Array]) -> Float64Array:
        if name not in self._sums:
            given = values()
            lost = np.isnan(given)
            sums = self._run("sum", np.where(lost, 0.0, given) if lost.any() else given).reals
            if lost.any():
                sums = np.where(self._spans.present(lost).sizes > 0, np.nan, sums)
            self._sums[name] = sums
        return self._sums[name]

    def extremes(self, argument: int, operation: str) -> Array:
        values = self._arguments[argument]
        return values.decode(self._run(operation, values.values).exact)

    def places(self, operation: str) -> Int64Array:
        """The first or last row of a frame is at one of its ends, whatever its values."""
        begin, end = self._spans.begin, self._spans.end
        some = end > begin
        if operation == "min":
            return np.asarray(np.where(some, begin, self._spans.rows).min(0))
        return np.asarray(np.where(some, end - 1, -1).max(0))

    def outermost(self, argument: int, operation: str) -> Array:
        values = self._arguments[argument]
        rows = np.clip(self.places(operation), 0, max(0, len(values.values) - 1))
        picked = values.values[rows] if len(values.values) else np.zeros(len(rows), values.values.dtype)
        return values.decode(picked)

    def lists(self, wanted: Mask) -> Iterator[tuple[Int64Array, Int64Array, Int64Array]]:
        numbers = np.flatnonzero(wanted)
        begin, end = self._spans.begin[:, numbers].T, self._spans.end[:, numbers].T
        sizes = end - begin
        for first, last in in_shares(sizes.sum(1)):
            part = sizes[first:last].reshape(-1)
            ends = np.cumsum(part)
            rows = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - part, part)
            rows += np.repeat(begin[first:last].reshape(-1), part)
            yield numbers[first:last], rows, np.concatenate([[0], np.cumsum(sizes[first:last].sum(1))])

    def _run(self, operation: str, values: Array) -> Outcome:
        check_method(self.method, operation)
        return frame_outcome(operation, np.ascontiguousarray(values), self._spans, None, self.method, self._tau)


def _length(column: Column | Coded) -> int:
    return len(column.codes if isinstance(column, Coded) else column.values)
