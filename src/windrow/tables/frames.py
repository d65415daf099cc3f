"""Aggregates over frames of a Spark DataFrame's rows: ``wr.frames(df)``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from windrow.errors import DataError, SchemaError, nearest
from windrow.model.frame import EXCLUDES, UNITS, check_exclude
from windrow.tables.dataframes import is_dataframe
from windrow.tables.offsets import Offset

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windrow.tables.routes import Route

METHODS = ("auto", "naive", "incremental", "segment_tree", "reuse", "replace")
SHUFFLES = ("auto", "always")


@dataclass(frozen=True, eq=False)
class Frame:
    """Which rows around a row an aggregate is over: ``Frame.rows(-29, 0)``, ``Frame.range("-7 days", 0)``.

    Bounds count from the current row, negative before it. 0 is the current row (in range and groups: with its peers),
    None is unbounded. A bound may also be an interval, a Column, or Spark SQL for one, which gives each row its own.
    """

    unit: str
    start: Any
    end: Any
    exclusion: str = "no others"

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise SchemaError(
                "a frame counts in " + ", ".join(UNITS), got=repr(self.unit), hint=nearest(self.unit, UNITS)
            )
        check_exclude(self.exclusion)

    @staticmethod
    def rows(start: Any, end: Any) -> Frame:
        """So many rows before and after."""
        return Frame("rows", start, end)

    @staticmethod
    def range(start: Any, end: Any) -> Frame:
        """The rows whose order key is so far away."""
        return Frame("range", start, end)

    @staticmethod
    def groups(start: Any, end: Any) -> Frame:
        """So many groups of rows with equal order keys before and after."""
        return Frame("groups", start, end)

    def exclude(self, what: str) -> Frame:
        """Leave out the ``current row``, its ``group`` of peers, or its ``ties``: the peers without the row itself."""
        return replace(self, exclusion=_exclusion(what))


def _exclusion(what: str) -> str:
    words = " ".join(str(what).lower().split())
    if words not in EXCLUDES:
        raise SchemaError(
            "exclude must be one of " + ", ".join(EXCLUDES), got=repr(what), hint=nearest(words, EXCLUDES)
        )
    return words


def preceding(amount: Any) -> Offset:
    """A bound so far before the current row; a negative amount is an error, as in SQL."""
    return Offset(amount, before=True)


def following(amount: Any) -> Offset:
    """A bound so far after the current row; a negative amount is an error, as in SQL."""
    return Offset(amount, before=False)


def frames(
    df: DataFrame, *, method: str = "auto", tau: float = 0.25, tasks: int | None = None, shuffle: str = "auto"
) -> TableFrames:
    """Aggregates over frames of a DataFrame's rows.

    ``method`` and ``tau`` are those of ``framed``. ``tasks`` says into how many tasks rows are cut if they must be
    sorted. With ``shuffle="always"`` they are sorted even where they are in order.
    """
    if not is_dataframe(df):
        raise DataError("frames takes a Spark DataFrame", got=type(df).__name__)
    if method not in METHODS:
        raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method), hint=nearest(method, METHODS))
    if not 0 <= tau < 1:
        raise DataError("tau must be at least 0 and less than 1", got=tau)
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
    window: Frame | None = None
    exclusion: str | None = None
    method: str = "auto"
    tau: float = 0.25
    tasks: int | None = None
    shuffle: str = "auto"

    def partition_by(self, *columns: str | Column) -> TableFrames:
        """Frames do not reach from one partition into another; without this all rows are one."""
        return replace(self, partition=columns)

    def order_by(self, *columns: str | Column) -> TableFrames:
        """Names, Columns (``F.col("t").desc()``) or texts (``"t desc nulls last"``)."""
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
        return replace(self, exclusion=_exclusion(what))

    def agg(self, **aggregates: Any) -> DataFrame:
        """The DataFrame with a column for each aggregate.

        The order of the rows, and bounds that stand in columns, are looked at now; all else runs when the result is
        read.
        """
        return self._route(aggregates).result

    def explain(self, **aggregates: Any) -> str:
        """How ``agg`` of the same would run."""
        from windrow.tables.routes import described

        return described(self._route(aggregates), self._shown())

    @property
    def default_frame(self) -> Frame:
        """The frame of aggregates that have none of their own; as in SQL if none was given."""
        frame = self.window or Frame.range(None, 0 if self.order else None)
        return frame if self.exclusion is None else frame.exclude(self.exclusion)

    def _route(self, aggregates: dict[str, Any]) -> Route:
        from windrow.tables.binding import bind
        from windrow.tables.routes import plan_route

        return plan_route(bind(self, aggregates))

    def _shown(self) -> str:
        frame = self.default_frame
        parts = [f"{frame.unit} between {_bound(frame.start)} and {_bound(frame.end)}"]
        if frame.exclusion != "no others":
            parts.append(f"exclude {frame.exclusion}")
        if self.order:
            parts.insert(0, "order by " + ", ".join(map(str, self.order)))
        if self.partition:
            parts.insert(0, "partition by " + ", ".join(map(str, self.partition)))
        return " ".join(parts)

    def __repr__(self) -> str:
        return f"<windrow frames: {self._shown()}; .explain(…) of aggregates says how they would run>"


def _bound(given: Any) -> str:
    if given is None:
        return "unbounded"
    if isinstance(given, Offset):
        return f"{given.amount} {'preceding' if given.before else 'following'}"
    return "current row" if isinstance(given, int) and given == 0 else str(given)
