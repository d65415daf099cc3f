"""``windrow_frames``: frames as a table function in plain Spark SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from windrow.aggregates.user import REGISTERED, UserAggregate
from windrow.dataframes.binding import result_type, windrow_type
from windrow.dataframes.blocks import FrameStream
from windrow.dataframes.offsets import BoundReader
from windrow.dataframes.sessions import arrow_type, extend_schema
from windrow.dataframes.spec import BoundFrame, FrameBound, FrameTask, TableAggregate, is_bounded
from windrow.errors import DataError, SchemaError, UnknownNameError, nearest
from windrow.model.frame import Frame, SortKey
from windrow.sql.frame_clauses import find_varying_amount
from windrow.sql.over_clauses import WindowCall, read_window
from windrow.sql.reading import Reading
from windrow.sql.spark_functions import answer_analysis, is_one_of_several_tasks, register_table_function

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "windrow_frames"
_SORTABLE = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp",
    "timestamp_ntz",
)  # fmt: skip
_WHOLE = ("tinyint", "smallint", "int", "bigint")


def register(spark: SparkSession) -> None:
    """Make the table function ``windrow_frames`` known to a Spark session, with the aggregates defined so far."""

    class Handler(FramesFunction):
        users = dict(REGISTERED)  # noqa: RUF012

        @staticmethod
        def analyze(table: Any, aggregates: Any, frame: Any = None, order_by: Any = None) -> Any:
            return plan_call(Handler.users, table, {"aggregates": aggregates, "frame": frame, "order_by": order_by})

    register_table_function(spark, NAME, Handler)


def plan_call(users: dict[str, UserAggregate], table: Any, given: dict[str, Any]) -> Any:
    """What a call gives and does, worked out in a Python process of Spark's, which knows no aggregates of users."""
    REGISTERED.update(users)
    return Call(**{name: _text(name, argument) for name, argument in given.items()}).plan(table)


def _text(name: str, given: Any) -> str | None:
    if given is None:
        return None
    if not isinstance(given.value, str):
        hint = "As in aggregates => 'median(delay) as med', frame => 'rows between 29 preceding and current row'"
        raise DataError(f"{name} must be text that is written out", got=given.dataType.simpleString(), hint=hint)
    return str(given.value)


@dataclass(frozen=True)
class VaryingBound:
    """A column that holds each row's offset, and the column made from it that counts from the current row."""

    column: str
    side: str
    made: str


@dataclass(frozen=True)
class FunctionTask:
    """What tasks do with the rows of each partition."""

    task: FrameTask
    varying: tuple[VaryingBound, ...]


class FramesFunction:
    """Handles one partition: its batches come in order, and results go out as soon as their frames are complete."""

    def __init__(self, planned: Any) -> None:
        self._planned: FunctionTask = planned.task
        self._stream = FrameStream(self._planned.task)
        self._partial = is_one_of_several_tasks()

    def eval(self, table: Any, aggregates: Any, frame: Any = None, order_by: Any = None) -> Iterator[pa.RecordBatch]:
        """A batch of rows."""
        if self._partial and table.num_rows:
            hint = f"As in {NAME}(table(t) partition by state order by day, …), or table(t) with single partition"
            raise SchemaError("the table must be divided by PARTITION BY or be a single partition", hint=hint)
        rows = pa.Table.from_batches([table])
        for bound in self._planned.varying:
            rows = rows.append_column(bound.made, _offsets(rows.column(bound.column), bound))
        yield from self._in_order(self._stream.add(rows))

    def terminate(self) -> Iterator[pa.RecordBatch]:
        """The rows that still waited for later ones."""
        yield from self._in_order(self._stream.finish())

    def _in_order(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except DataError as error:
            if "out of order" not in error.what:
                raise
            hint = "Write the same order after the table: table(t) partition by state order by day"
            raise DataError("the rows do not come in the order that order_by names", hint=hint) from None


def _offsets(column: Any, bound: VaryingBound) -> Any:
    found = column.cast(pa.int64())
    if found.null_count or (len(found) and pc.min(found).as_py() < 0):
        raise DataError(f"the offset of {bound.side} must not be negative or missing", got=f"column {bound.column}")
    return pc.negate(found) if bound.side == "preceding" else found


@dataclass(frozen=True)
class Call:
    """The texts of a call."""

    aggregates: str | None
    frame: str | None = None
    order_by: str | None = None

    def plan(self, table: Any) -> Any:
        """The columns that the call gives and what its tasks do; all that is wrong with it is refused here."""
        if not getattr(table, "isTable", False):
            raise DataError("the first argument must be a table", hint=f"As in {NAME}(table(t) partition by state, …)")
        if not self.aggregates:
            raise DataError("aggregates are missing", hint="As in aggregates => 'median(delay) as med'")
        if self.frame is None and self.order_by is None:
            raise DataError("the frame is missing", hint="As in frame => 'rows between 29 preceding and current row'")
        reader = _CallReader(self, table.dataType)
        task = reader.task()
        schema = extend_schema(table.dataType, {item.output: item.result for item in task.task.aggregates})
        return answer_analysis(schema, task)


class _CallReader:
    def __init__(self, call: Call, schema: Any) -> None:
        self.call = call
        self.kinds = {field.name: field.dataType for field in schema.fields}
        self.varying: list[VaryingBound] = []

    def task(self) -> FunctionTask:
        calls = self._calls()
        first = next(iter(calls.values()))
        order = tuple(
            SortKey(self._sortable(o.node), o.descending, o.nulls_first)
            for o in (first.order if self.call.order_by else ())
        )
        frame = self._frame(first, order)
        aggregates = tuple(self._aggregate(name, call) for name, call in calls.items())
        task = FrameTask((), order, (frame,), aggregates, tuple(self.kinds))
        task = replace(task, loads_all=not is_bounded(frame), holds_all=bool(self.varying))
        made = [(bound.made, pa.int64()) for bound in self.varying]
        fractions = [item.fraction for item in aggregates if item.fraction is not None]
        needed = [(n, arrow_type(self.kinds[n])) for n in dict.fromkeys([*task.needed, *fractions]) if n in self.kinds]
        return FunctionTask(replace(task, kinds=(*needed, *made)), tuple(self.varying))

    def _calls(self) -> dict[str, WindowCall]:
        """Each aggregate by the name of its column."""
        listed = Reading(f"select {self.call.aggregates}")
        # A call need not say what it is ordered by, but a frame must follow something.
        over = f"order by {self.call.order_by or 1}"
        calls: dict[str, WindowCall] = {}
        for item in listed.tree.expressions:
            value = item.this if isinstance(item, exp.Alias) else item
            if not isinstance(value, exp.Anonymous | exp.Filter | exp.WithinGroup | exp.IgnoreNulls):
                raise listed.error("aggregates are calls, separated by commas", item, hint="As in median(delay) as med")
            name = item.alias if isinstance(item, exp.Alias) else listed.label(value)
            if name.lower() in {known.lower() for known in (*self.kinds, *calls)}:
                raise listed.error("there is a column of that name already", item, got=repr(name))
            text = f"select {listed.text_of(value)} over ({over} {self.call.frame or ''})"
            reading = Reading(text)
            window = reading.tree.expressions[0]
            assert isinstance(window, exp.Window)
            found = read_window(reading, window, {}, everything=True)
            if found is None:
                raise listed.error("no such aggregate", item, hint="As in median(delay) as med")
            calls[name] = found
        return calls

    def _column(self, node: exp.Expr) -> str:
        if not isinstance(node, exp.Column) or node.table:
            hint = "Compute it in the table: table(select *, a - b as c from t)"
            raise DataError("a column's name is expected here", got=node.sql("spark"), hint=hint)
        found = [name for name in self.kinds if name.lower() == node.name.lower()]
        if found:
            return str(found[0])
        raise UnknownNameError("no such column", got=repr(node.name), hint=nearest(node.name, self.kinds))

    def _sortable(self, node: exp.Expr) -> str:
        name = self._column(node)
        kind = self.kinds[name].simpleString()
        if kind not in _SORTABLE and not kind.startswith("decimal"):
            raise SchemaError("rows cannot be sorted by a column of this type", got=f"{name}: {kind}")
        return name

    def _frame(self, call: WindowCall, order: tuple[SortKey, ...]) -> BoundFrame:
        frame = call.frame
        peers = frame.unit != "rows" or frame.exclusion in ("group", "ties")
        if peers and not order and not (frame.start is None and frame.end is None):
            hint = "Say what the rows are ordered by: order_by => 'day'"
            raise SchemaError("this frame needs to know which rows are peers", got=str(frame), hint=hint)
        kinds = [(key.column, self.kinds[key.column].simpleString()) for key in order]
        reader = BoundReader(None, kinds, {}, {})  # type: ignore[arg-type]
        start, end = (self._read_bound(bound, frame.unit, reader) for bound in (frame.start, frame.end))
        return Frame(frame.unit, start, end, frame.exclusion)

    def _read_bound(self, bound: Any, unit: str, reader: BoundReader) -> FrameBound:
        node = find_varying_amount(bound)
        if node is not None:
            name = self._column(node)
            if unit == "range" or self.kinds[name].simpleString() not in _WHOLE:
                got = f"{name}: {self.kinds[name].simpleString()}"
                raise SchemaError("bounds that vary are whole numbers of rows or groups here", got=got)
            made = f"__windrow_bound{len(self.varying)}"
            self.varying.append(VaryingBound(name, "preceding" if bound.before else "following", made))
            return FrameBound(None, made)
        return reader.read(bound, unit)

    def _fraction(self, node: exp.Expr) -> str:
        name = self._column(node)
        if self.kinds[name].simpleString() != "double":
            got = f"{name}: {self.kinds[name].simpleString()}"
            raise SchemaError("a fraction that varies is a column of doubles here", got=got)
        return name

    def _aggregate(self, name: str, call: WindowCall) -> TableAggregate:
        keep = None if call.condition is None else self._column(call.condition)
        if keep is not None and self.kinds[keep].simpleString() != "boolean":
            raise SchemaError("a condition must be a boolean column", got=f"{keep}: {self.kinds[keep].simpleString()}")
        if len(call.arguments) > call.aggregate.definition.arguments:
            raise DataError("count(distinct …) is of one column here", got=f"{len(call.arguments)} columns")
        if not call.arguments:
            return TableAggregate(name, call.aggregate, 0, pa.int64(), keep)
        column, *others = (self._column(argument) for argument in call.arguments)
        kind = self.kinds[column]
        aggregate = call.aggregate.of(column, *others)
        aggregate.check(*(windrow_type(self.kinds[one].simpleString(), aggregate.name) for one in (column, *others)))
        if call.fraction is not None:
            aggregate = replace(aggregate, parameter=self._fraction(call.fraction))
        return TableAggregate(name, aggregate, 0, result_type(aggregate, kind), keep)
