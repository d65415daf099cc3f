"""Aggregates over frames of a Spark DataFrame's rows: ``wr.frames(df)``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from windrow.dataframes.positions import Steps, has_positions
from windrow.dataframes.sessions import is_dataframe
from windrow.errors import DataError, nearest
from windrow.kernels.choose import AUTO, check_strategy
from windrow.kernels.frames.strategies import NAMES
from windrow.model.frame import Frame, SortKey, exclusion_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windrow.dataframes.table_plan import Route, TablePlan

METHODS = ("auto", "naive", "incremental", "segment_tree", "reuse", "replace")
SHUFFLES = ("auto", "always", "sampled", "exact")


def frames(
    df: DataFrame, *, method: str = "auto", tau: float = 0.25, tasks: int | None = None, shuffle: str = "auto"
) -> TableFrames:
    """Aggregates over frames of a DataFrame's rows.

    ``method`` and ``tau`` are those of ``framed``. ``tasks`` says into how many tasks rows are cut if they must be
    sorted. With ``shuffle="always"`` they are sorted even where they are in order; ``"sampled"`` and ``"exact"`` name
    one of the two ways to do so.
    """
    if not is_dataframe(df):
        raise DataError("frames takes a Spark DataFrame", got=type(df).__name__)
    if method not in METHODS:
        raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method), hint=nearest(method, METHODS))
    if not 0 <= tau <= 1:
        raise DataError("tau must be from 0 to 1", got=tau)
    if tasks is not None and (isinstance(tasks, bool) or not isinstance(tasks, int) or tasks < 1):
        raise DataError("tasks must be a whole number of at least 1", got=repr(tasks))
    if shuffle not in SHUFFLES:
        raise DataError("shuffle must be one of " + ", ".join(SHUFFLES), got=repr(shuffle))
    return TableFrames(df, method=method, tau=tau, tasks=tasks, shuffle=shuffle)


@dataclass(frozen=True, eq=False, repr=False)
class TableFrames:
    """A DataFrame with partitions, an order and a frame; ``agg`` adds columns to it. Every method gives a new one."""

    df: DataFrame
    partition: tuple[Any, ...] = ()
    order: tuple[Any, ...] = ()
    window: Frame[Any] | None = None
    exclusion: str | None = None
    method: str = "auto"
    tau: float = 0.25
    tasks: int | None = None
    shuffle: str = "auto"
    strategy: str = AUTO

    def partition_by(self, *columns: str | Column) -> TableFrames:
        """Frames do not reach from one partition into another; without this all rows are one."""
        return replace(self, partition=columns)

    def order_by(self, *columns: str | Column | SortKey) -> TableFrames:
        """Names, Columns (``F.col("t").desc()``), texts (``"t desc nulls last"``) or keys that are worked out."""
        return replace(self, order=columns)

    def rows(self, start: Any, end: Any) -> TableFrames:
        """Frames of so many rows before and after; see ``Frame`` for bounds."""
        return replace(self, window=Frame.rows(start, end))

    def range(self, start: Any, end: Any) -> TableFrames:
        """Frames of the rows whose order key is so far away."""
        return replace(self, window=Frame.range(start, end))

    def groups(self, start: Any, end: Any) -> TableFrames:
        """Frames of so many groups of peers."""
        return replace(self, window=Frame.groups(start, end))

    def exclude(self, what: str) -> TableFrames:
        """What frames leave out: ``no others``, ``current row``, ``group`` or ``ties``."""
        return replace(self, exclusion=exclusion_of(what))

    def agg(self, *, strategy: str = AUTO, **aggregates: Any) -> DataFrame:
        """The DataFrame with a column for each aggregate.

        The order of the rows, and bounds that stand in columns, are looked at now; all else runs when the result is
        read. Tasks take the cheapest strategy for the rows they have, or the one named by ``strategy``.
        """
        query = self._with_strategy(strategy)
        if not has_positions(aggregates):
            return query.plain_agg(aggregates)
        return query._steps(aggregates).run()

    def plain_agg(self, aggregates: dict[str, Any]) -> DataFrame:
        """The same without functions of a row's place."""
        return self._route(aggregates)[1].result

    def with_rows(self, df: DataFrame) -> TableFrames:
        """The same of another DataFrame's rows."""
        return replace(self, df=df)

    def _steps(self, aggregates: dict[str, Any]) -> Steps:
        steps = Steps(self)
        for name, asked in aggregates.items():
            steps.add(name, asked)
        return steps

    def explain(self, *, strategy: str = AUTO, **aggregates: Any) -> str:
        """How ``agg`` of the same would run."""
        from windrow.dataframes.routes import describe_route

        query = self._with_strategy(strategy)
        if not has_positions(aggregates):
            return describe_route(*query._route(aggregates), self._describe(), {})
        steps = query._steps(aggregates)
        told = describe_route(*query._route(steps.first), self._describe(), steps.words)
        return "\n".join([told, *steps.describe()])

    @property
    def default_frame(self) -> Frame[Any]:
        """The frame of aggregates that have none of their own; as in SQL if none was given."""
        frame = self.window or Frame.range(None, 0 if self.order else None)
        return frame if self.exclusion is None else frame.exclude(self.exclusion)

    def _with_strategy(self, strategy: Any) -> TableFrames:
        if not isinstance(strategy, str):
            hint = "A result cannot be named strategy: withColumnRenamed gives it that name afterwards"
            raise DataError("strategy is the name of one", got=type(strategy).__name__, hint=hint)
        check_strategy(self.method, strategy, NAMES)
        return replace(self, strategy=strategy)

    def _route(self, aggregates: dict[str, Any]) -> tuple[TablePlan, Route]:
        from windrow.dataframes.binding import bind
        from windrow.dataframes.routes import plan_route

        plan = bind(self, aggregates)
        return plan, plan_route(plan)

    def _describe(self) -> str:
        parts = [str(self.default_frame)]
        if self.order:
            parts.insert(0, "order by " + ", ".join(map(str, self.order)))
        if self.partition:
            parts.insert(0, "partition by " + ", ".join(map(str, self.partition)))
        return " ".join(parts)

    def __repr__(self) -> str:
        return f"<windrow frames: {self._describe()}; .explain(…) of aggregates says how they would run>"
