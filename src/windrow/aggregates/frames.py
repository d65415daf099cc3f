"""Aggregates over the frames of one sorted partition: ``evaluate_frames`` is the one entry for NumPy and for Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.evaluate import Column
from windrow.aggregates.frame_values import MISSING, NANS, Coded, FrameValues, decimals, frame_values
from windrow.errors import DataError, SchemaError
from windrow.kernels.frame_methods import METHODS, TAU, check_method, frame_outcome
from windrow.kernels.frame_spans import Int64Array, Mask, Spans, spans_of
from windrow.kernels.frame_sums import may_overflow
from windrow.kernels.ranks import RankTable
from windrow.kernels.results import Outcome
from windrow.model.frame import check_exclude
from windrow.model.types import TYPES

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
) -> Column:
    """One aggregate in every frame; what is not ``present`` in the result is missing.

    ``keep`` is SQL's FILTER: other rows are passed over. ``nan`` says whether NaN is missing, as in arrays, or a value
    larger than all others, as on DataFrames. ``tau`` says when ``incremental`` distinct counts and modes flush their
    tables (003 §3.3).
    """
    return FrameEvaluation(columns, frames, method, nan, tau).result(aggregate, keep)


@dataclass
class FrameEvaluation:
    """The frames of one partition; what several aggregates of one column need is worked out once."""

    columns: Mapping[str, Column | Coded]
    frames: Frames
    method: str = "auto"
    nan: str = MISSING
    tau: float = TAU
    _prepared: dict[tuple[str, int | None], tuple[FrameValues, Spans]] = field(default_factory=dict)
    _kept: list[Mask] = field(default_factory=list)  # keeps masks alive, so that their identities stay theirs

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise DataError("method must be one of " + ", ".join(METHODS), got=repr(self.method))
        if self.nan not in NANS:
            raise DataError("nan must be one of " + ", ".join(NANS), got=repr(self.nan))
        if not 0 <= self.tau < 1:
            raise DataError("tau must be at least 0 and less than 1", got=self.tau)
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
        values, spans = self._values(aggregate.attribute, keep)
        aggregate.definition.check_type(values.type if values.numbers is None else TYPES["float64"])
        return _FrameResult(aggregate, values, spans, self.method, self.tau).column()

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

    def column(self) -> Column:
        """The results in the type of the column's values, or of the aggregate."""
        definition = self.aggregate.definition
        present = None if self.spans.fewest >= definition.least else self.spans.sizes >= definition.least
        return Column(self._results(definition.operation or "count"), present)

    def _results(self, operation: str) -> Array:
        values, definition = self.values, self.aggregate.definition
        if operation == "count":
            return self.spans.sizes.copy()
        check_method(self.method, operation)
        if operation == "user":
            return self._by_user()
        ranks = self.aggregate.ranks(self.spans.most)
        if operation == "sum" and self.aggregate.name == "sum" and values.unscaled is not None:
            return self._decimal_sums(*values.unscaled)
        if operation in ("sum", "squares") and values.numbers is not None:
            found = definition.finish(self._run(operation, values.numbers, None), TYPES["float64"])
            return self._spoilt(found)
        if operation == "select" and ranks is not None and ranks.interpolates and values.numbers is not None:
            return self._between(ranks)
        numbers = values.values
        if self.aggregate.name == "avg" and numbers.dtype.kind != "f" and may_overflow(numbers, self.spans):
            numbers = numbers.astype(np.float64)
        outcome = self._run(operation, numbers, ranks)
        if operation in ("min", "max", "mode") or (operation == "select" and not definition_interpolates(ranks)):
            return values.decode(outcome.exact)
        if operation == "distinct":
            distinct = outcome.reals.astype(np.int64, copy=False)
            return distinct if self.spans.fewest > 0 else np.where(self.spans.sizes > 0, distinct, 0)
        return definition.finish(outcome, values.type)

    def _run(self, operation: str, values: Array, ranks: RankTable | None) -> Outcome:
        return frame_outcome(operation, values, self.spans, ranks, self.method, self.tau)

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
        weight = ranks.weight[self.spans.sizes]
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
        from windrow.kernels.frame_user import user_frames

        user = self.aggregate.user
        values = self.values.values if self.values.numbers is None else self.values.numbers
        plain = values.astype(self.values.type.dtype, copy=False) if self.values.type.dtype.kind != "M" else values
        return user_frames(user.functions, plain, self.spans, user.result.dtype, self.method)


def definition_interpolates(ranks: RankTable | None) -> bool:
    return ranks is not None and ranks.interpolates


def _length(column: Column | Coded) -> int:
    return len(column.codes if isinstance(column, Coded) else column.values)
