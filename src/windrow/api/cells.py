"""What can be asked of cells, be they those of an array or a selection of them: windows, neighbours, joins, totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from windrow.model.schema import Schema

if TYPE_CHECKING:
    from windrow.aggregates.aggregate import Aggregate
    from windrow.api.batch import Batch
    from windrow.api.database import Database
    from windrow.api.grouped import Grouped
    from windrow.api.joins import Joined, Neighbouring
    from windrow.api.query import Pinned, Query, Windowed
    from windrow.api.selected import Selected
    from windrow.expressions.nodes import Node
    from windrow.model.shape import Shape
    from windrow.plan.nodes import Plan

    Steps: TypeAlias = "tuple[Plan, Pinned]"
"""The step that gives cells, and the versions that are pinned in it."""


class Cells:
    """Cells with a schema, in a database, that a step of a query gives."""

    _database: Database
    _batch: Batch | None
    """The batch that they are seen from."""

    @property
    def schema(self) -> Schema:
        raise NotImplementedError

    @property
    def name(self) -> str:
        raise NotImplementedError

    def _steps(self) -> Steps:
        raise NotImplementedError

    def _all(self) -> Selected:
        """All of the cells, as a selection."""
        raise NotImplementedError

    def operate(self, operator: str, *parameters: Any) -> Query:
        """An operator of users or of an installed package on the cells: ``A.operate("smooth", 3)``."""
        from windrow.api.query import Query
        from windrow.plan.operators import Operated

        plan, pinned = self._steps()
        return Query(self._database, Operated(plan, operator, parameters), pinned, self._batch)

    # Selections

    def sel(
        self, labels: Mapping[str, object] | None = None, /, *, nearest: bool = False, **dimensions: object
    ) -> Selected:
        """The cells of these labels, not yet read: ``A.sel(lat=30, time="2012-07", lon=(-30, 30)).read()``.

        A pair is a range, both ends inside; on a periodic dimension it goes round. A day, month or year stands for all
        of it. ``nearest=True`` takes the label nearest to each value. The cells of a dimension without labels are
        called by their numbers.
        """
        from windrow.plan.selections import by_label

        def choose(scope: Any, selection: Mapping[str, object]) -> Node | None:
            return by_label(scope, selection, nearest)

        return self._all().choose(choose, {**(labels or {}), **dimensions})

    def isel(self, cells: Mapping[str, object] | None = None, /, **dimensions: object) -> Selected:
        """The cells of these numbers, not yet read: ``A.isel(lat=(1, 3), time=7).read()``, both ends inside."""
        from windrow.plan.selections import by_cell

        return self._all().choose(by_cell, {**(cells or {}), **dimensions})

    def agg(self, **aggregates: Aggregate) -> Query:
        """Named aggregates over all cells: ``A.sel(time="2012-07").agg(m=wr.avg("t"))``."""
        from windrow.api.query import totals

        return totals(self, aggregates)

    def groupby(self, *keys: str) -> Grouped:
        """Groups of cells by dimensions, attributes and parts of times: ``A.groupby("lat", "time.month").agg(…)``.

        The result has the dimensions that are named, and no others: ``groupby("time.month")`` is one value a month.
        """
        from windrow.api.grouped import grouped

        return grouped(self, keys)

    def anomaly(self, attribute: str, by: str | Sequence[str], standardize: bool = False) -> Query:
        """How far each value is from the mean of its group: ``A.anomaly("t", by="time.month")``.

        What ``by`` names is as in ``groupby``; the cells of dimensions that it does not speak of are kept apart, so
        that each place is compared with its own months. ``standardize`` divides by the group's standard deviation;
        where that is 0 the result is missing. It is called ``anomaly``, and lies where the values do.
        """
        from windrow.api.grouped import anomaly

        return anomaly(self, attribute, by, standardize)

    # Windows

    def window(
        self,
        extents: Mapping[str, Any] | None = None,
        /,
        *,
        boundary: str = "clip",
        min_count: int = 0,
        step: Any = 1,
        **dimensions: Any,
    ) -> Windowed:
        """A window around every cell: ``A.window(i=3, time=wr.trailing("30 days")).agg(m=wr.max("a"))``.

        A number is a width from the cell on; ``wr.centred``, ``wr.trailing``, ``wr.between`` and ``.wrap()`` say
        otherwise. Dimensions that are not named have a width of 1. ``boundary`` is "clip" or "drop", ``min_count``
        the fewest present values that give a result, ``step`` evaluates every so many cells.
        """
        from windrow.api.query import windowed

        options = {"boundary": boundary, "min_count": min_count, "step": step}
        return windowed(self, {**(extents or {}), **dimensions}, options)

    def regrid(
        self,
        sizes: Mapping[str, Any] | None = None,
        /,
        *,
        boundary: str = "clip",
        min_count: int = 0,
        **dimensions: Any,
    ) -> Windowed:
        """Blocks side by side, one result each: ``A.regrid(i=2, j=2).agg(m=wr.avg("a"))``."""
        from windrow.api.query import regridded

        return regridded(self, {**(sizes or {}), **dimensions}, {"boundary": boundary, "min_count": min_count})

    # Neighbours and joins

    def neighbours(self, shape: Shape, *, step: Any = None, min_count: int = 0) -> Neighbouring:
        """The cells in a shape around every cell: ``A.neighbours(wr.L1(1)).agg(n=wr.count(), m=wr.avg("a"))``.

        Shapes are norms, ranges, lists and stored arrays, combined with ``&``:
        ``wr.L1(1, on=("ra", "dec")) & wr.offsets(time=("-200 days", 0))``. ``step`` evaluates every so many cells (a
        number, or one for each dimension), ``min_count`` is the fewest present values that give a result. A cell
        without neighbours keeps its place: its count is 0, its other aggregates are missing.
        """
        from windrow.api.joins import neighbours

        return neighbours(self, shape, step, min_count)

    def join(
        self,
        other: Cells | Query,
        shape: Shape,
        on: Mapping[str, str] | str | None = None,
        where: str | Node | None = None,
        how: str = "inner",
        nearest: int | tuple[int, str] | str | None = None,
        min_count: int = 0,
    ) -> Joined:
        """Each cell paired with the cells of another array, or of this one, in a shape around its place there.

        ``A.join(B, wr.Linf(2), on={"i": "i + 3", "j": "j // 2"}, where="abs(left.m - right.m) < 1").agg(n=wr.count())``

        ``on`` says, for dimensions of the other array, to which cell a cell of this one is mapped; without it
        dimensions go together by name. In ``where``, which says what pairs there are, and in all that is computed, the
        sides are called ``left`` and ``right``, and ``distance()`` is how far apart the two cells are. ``how`` is
        "inner", "left" to keep cells without a partner, or "anti" to keep these alone. ``nearest=3`` keeps the three
        nearest partners, ``nearest=(3, "abs(left.m - right.m)")`` those of the least difference, and
        ``nearest="mutual"`` the pairs that are each other's nearest. ``min_count`` is the fewest present values that
        give a result.
        """
        from windrow.api.joins import join

        return replace(join(self, other, shape, on, where, how, nearest), min_count=min_count)
