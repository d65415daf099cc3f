"""What a user asked of a DataFrame, with names, types and expressions worked out; all that is wrong is refused here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate, FramedAggregate
from windrow.aggregates.user import UserAggregate
from windrow.errors import DataError, SchemaError, UnknownNameError, nearest
from windrow.model.types import TYPES, DataType
from windrow.tables.carry import can_carry
from windrow.tables.dataframes import arrow_type, checked_schema, extended_schema, functions, is_column, named
from windrow.tables.offsets import BoundReader, refuse_changing, with_reach
from windrow.tables.routes import TablePlan
from windrow.tables.spec import FrameTask, SortKey, TableAggregate, TableFrame

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windrow.tables.frames import Frame, TableFrames

OWN = "__windrow_"
_DIRECTION = re.compile(
    r"^(?P<what>.*?)(?:\s+(?P<way>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?\s*$", re.IGNORECASE | re.DOTALL
)
_COLUMN_TEXT = re.compile(r"^Column<'(?P<text>.*)'>$", re.DOTALL)
_SORTED_TEXT = re.compile(r"^(?P<what>.*) (?P<way>ASC|DESC) NULLS (?P<nulls>FIRST|LAST)$", re.DOTALL)
_NAMES = {
    "boolean": "bool", "tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64", "float": "float32",
    "double": "float64", "string": "string", "binary": "string", "date": "datetime", "timestamp": "datetime",
    "timestamp_ntz": "datetime",
}  # fmt: skip


@dataclass
class _Binding:
    """Columns that are added to the rows, and the types of all of them."""

    frame: DataFrame
    added: dict[str, Column] = field(default_factory=dict)
    kinds: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kinds = {item.name: item.dataType for item in self.frame.schema.fields}
        self.sensitive = str(self.frame.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"

    def known(self, name: str) -> str | None:
        """The DataFrame's own column of that name."""
        if name in self.frame.columns:
            return name
        folded = [column for column in self.frame.columns if column.lower() == name.lower()]
        return folded[0] if folded and not self.sensitive else None

    def column(self, given: Any, what: str) -> str:
        """The name of a column that holds what was given: a name, a Column or Spark SQL."""
        refuse_changing(given, what)
        if isinstance(given, str):
            found = self.known(given) or self.known(given.strip("`"))
            if found is not None:
                return found
            if re.fullmatch(r"\s*`?\w+`?\s*", given):
                raise UnknownNameError(
                    f"no such column in {what}", got=repr(given), hint=nearest(given.strip("` "), self.frame.columns)
                )
            given = functions().expr(given)
        elif not is_column(given):
            raise DataError(f"{what} must be a column's name, a Column or SQL text", got=repr(given))
        return self.add(given, what)

    def add(self, column: Column, what: str) -> str:
        name = f"{OWN}{len(self.added)}"
        self.kinds[name] = checked_schema(self.frame, [column.alias(name)], what).fields[0].dataType
        self.added[name] = column
        return name


def bind(query: TableFrames, aggregates: dict[str, Any]) -> TablePlan:
    """Everything known before anything runs, but for how far bounds reach that stand in columns."""
    binding = _Binding(query.df)
    _check_names(query.df, aggregates)
    partition = tuple(_key(binding, given, "partition_by") for given in _flat(query.partition))
    order = tuple(_order_key(binding, given) for given in _flat(query.order))
    bounds: dict[str, Column] = {}
    order_kinds = [(key.column, binding.kinds[key.column].simpleString()) for key in order]
    reader = BoundReader(query.df, order_kinds, bounds, {})
    default = query.default_frame
    asked = {name: _asked(name, given, default) for name, given in aggregates.items()}
    given_frames = list({id(one.frame): one.frame for one in asked.values()}.values())
    frames = [_frame(frame, reader) for frame in given_frames]
    bound = [
        replace(
            _aggregate(binding, name, one), frame=_number(given_frames, one.frame), method=query.method, tau=query.tau
        )
        for name, one in asked.items()
    ]
    rows = query.df.withColumns({**binding.added, **bounds}) if binding.added or bounds else query.df
    reach = with_reach(rows, bounds, reader.checks)
    kinds = {**binding.kinds, **{name: rows.schema[name].dataType for name in bounds}}
    task = FrameTask(
        partition, order, tuple(_reaching(frame, reach) for frame in frames), tuple(bound), tuple(query.df.columns)
    )
    carries = all(can_carry(item, frames[item.frame]) for item in bound)
    task = replace(task, holds_all=not all(frame.is_bounded for frame in frames), loads_all=not carries)
    looked = dict.fromkeys([*(n for n in task.needed if n in kinds), *bounds])
    task = replace(task, kinds=tuple((name, arrow_type(kinds[name])) for name in looked))
    return TablePlan(rows, task, _result_schema(query.df, bound), kinds, query.tasks, query.shuffle)


def _reaching(frame: TableFrame, reach: dict[str, Any]) -> TableFrame:
    start, end = (
        replace(bound, reach=reach[bound.column]) if bound.column is not None else bound
        for bound in (frame.start, frame.end)
    )
    return replace(frame, start=start, end=end)


def _flat(given: Iterable[Any]) -> list[Any]:
    return [one for item in given for one in (item if isinstance(item, (list, tuple)) else [item])]


def _check_names(frame: DataFrame, aggregates: dict[str, Any]) -> None:
    if not aggregates:
        raise DataError("agg needs at least one aggregate", hint='As in agg(m=wr.median("x"))')
    folded: dict[str, str] = {}
    for name in frame.columns:
        if name.lower() in folded:
            raise SchemaError("two columns of the DataFrame have one name", got=repr(name), hint="Rename one of them")
        folded[name.lower()] = name
        if name.startswith(OWN):
            raise SchemaError(f"columns must not begin with {OWN}", got=repr(name))
    for name in aggregates:
        if name.lower() in folded:
            raise SchemaError("the DataFrame has a column of that name already", got=repr(name))
        folded[name.lower()] = name


def _key(binding: _Binding, given: Any, what: str) -> SortKey:
    name = binding.column(given, what)
    kind = binding.kinds[name].simpleString()
    if kind not in _NAMES and not kind.startswith("decimal"):
        collated = " with a collation" if kind.startswith("string") else ""
        raise SchemaError(
            f"{what} cannot sort by this type{collated}",
            got=kind,
            hint="Numbers, strings, booleans, dates, times and binary can be sorted by; of a struct, name its fields",
        )
    return SortKey(name)


def _order_key(binding: _Binding, given: Any) -> SortKey:
    """A key with its direction; where NULL goes is Spark's default unless said."""
    way = nulls = None
    if isinstance(given, str) and binding.known(given) is None:
        match = _DIRECTION.match(given)
        assert match is not None
        given, way, nulls = match["what"].strip(), match["way"], match["nulls"]
    elif is_column(given):
        text = _COLUMN_TEXT.match(str(given))
        match = _SORTED_TEXT.match(text["text"]) if text else None
        if match is not None:
            given, way, nulls = match["what"], match["way"], match["nulls"]
            if binding.known(given) is None:
                raise UnknownNameError(
                    "asc and desc of a Column need a column of the DataFrame", got=repr(given),
                    hint='Give expressions as text, as in order_by("a + b desc nulls last")',
                )  # fmt: skip
    descending = way is not None and way.lower() == "desc"
    first = nulls.lower() == "first" if nulls is not None else not descending
    return replace(_key(binding, given, "order_by"), descending=descending, nulls_first=first)


def _asked(name: str, given: Any, default: Frame) -> FramedAggregate:
    asked = FramedAggregate(given) if isinstance(given, Aggregate) else given
    if not isinstance(asked, FramedAggregate):
        hint = f"Give it a column, as in {given.name}('x')" if isinstance(given, UserAggregate) else None
        raise DataError(f"{name} must be an aggregate, as in wr.median('x')", got=repr(given), hint=hint)
    if asked.frame is None:
        return asked.over(default)
    if not all(hasattr(asked.frame, part) for part in ("unit", "start", "end", "exclusion")):
        raise DataError(f"{name} must be over a frame, as in wr.Frame.rows(-29, 0)", got=repr(asked.frame))
    return asked


def _number(frames: list[Frame], wanted: Frame) -> int:
    return next(number for number, frame in enumerate(frames) if frame is wanted)


def _aggregate(binding: _Binding, name: str, asked: FramedAggregate) -> TableAggregate:
    keep = None
    if asked.condition is not None:
        refuse_changing(asked.condition, "a condition")
        what = f"the condition of {name}"
        given = functions().expr(asked.condition) if isinstance(asked.condition, str) else asked.condition
        if not is_column(given):
            raise DataError(f"{what} must be a Column or SQL text", got=repr(given))
        keep = binding.add(given, what)
        if binding.kinds[keep].simpleString() != "boolean":
            raise SchemaError(f"{what} must be boolean", got=binding.kinds[keep].simpleString())
    aggregate, result = _of_column(binding, asked.aggregate, name)
    return TableAggregate(name, aggregate, 0, result, keep)


def _frame(frame: Frame, reader: BoundReader) -> TableFrame:
    start, end = (reader.read(bound, frame.unit) for bound in (frame.start, frame.end))
    return TableFrame(frame.unit, start, end, frame.exclusion)


def _of_column(binding: _Binding, aggregate: Aggregate, name: str) -> tuple[Aggregate, pa.DataType]:
    if aggregate.attribute is None:
        return aggregate, pa.int64()
    column = binding.column(aggregate.attribute, f"the aggregate {name}")
    kind = binding.kinds[column]
    text = kind.simpleString()
    if aggregate.name == "count" and text not in _NAMES:
        f = functions()
        given: Any = binding.added.get(column, named(column))
        column = binding.add(f.when(given.isNotNull(), True), f"the aggregate {name}")
        return aggregate.of(column), pa.int64()
    aggregate.check(windrow_type(text, aggregate.name))
    return aggregate.of(column), result_type(aggregate, kind)


def windrow_type(text: str, name: str) -> DataType:
    if text.startswith("decimal"):
        return TYPES["float64"]
    if text not in _NAMES:
        raise DataError(f"{name} cannot take values of type {text}", hint="It takes numbers, strings, dates and times")
    return TYPES[_NAMES[text]]


def result_type(aggregate: Aggregate, kind: Any) -> pa.DataType:
    from windrow.model.arrow import arrow_type as stored_type

    text = kind.simpleString()
    found = windrow_type(text, aggregate.name)
    result = aggregate.definition.result(found)
    if aggregate.user is None and result == found and aggregate.definition.finish.__name__ == "_picked":
        return arrow_type(kind)
    if aggregate.name == "sum" and text.startswith("decimal"):
        return pa.decimal128(min(38, kind.precision + 10), kind.scale)
    return stored_type(result)


def _result_schema(frame: DataFrame, aggregates: list[TableAggregate]) -> Any:
    return extended_schema(frame.schema, {item.output: item.result for item in aggregates})
