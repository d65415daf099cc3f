"""What a user asked of a DataFrame, with names, types and expressions worked out; all that is wrong is refused here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.aggregates.aggregate import Aggregate, FramedAggregate
from windrow.aggregates.user import UserAggregate
from windrow.dataframes.fractions import check_fractions
from windrow.dataframes.offsets import WHOLE, BoundReader, measure_reach, refuse_changing
from windrow.dataframes.sessions import arrow_type, check_schema, column_named, extend_schema, functions, is_column
from windrow.dataframes.spec import BoundFrame, FrameTask, TableAggregate, is_bounded
from windrow.dataframes.table_plan import TablePlan
from windrow.dataframes.unbounded_states import can_carry
from windrow.errors import DataError, SchemaError, UnknownNameError, nearest
from windrow.model.frame import Frame, SortKey
from windrow.model.types import TYPES, DataType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windrow.dataframes.frames import TableFrames

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

    def find_own(self, name: str) -> str | None:
        """The DataFrame's own column of that name."""
        if name in self.frame.columns:
            return name
        folded = [column for column in self.frame.columns if column.lower() == name.lower()]
        return folded[0] if folded and not self.sensitive else None

    def column(self, given: Any, what: str) -> str:
        """The name of a column that holds what was given: a name, a Column or Spark SQL."""
        refuse_changing(given, what)
        if isinstance(given, str):
            found = self.find_own(given) or self.find_own(given.strip("`"))
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
        self.kinds[name] = check_schema(self.frame, [column.alias(name)], what).fields[0].dataType
        self.added[name] = column
        return name


def bind(query: TableFrames, aggregates: dict[str, Any]) -> TablePlan:
    """Everything known before anything runs, but for how far bounds reach that stand in columns."""
    binding = _Binding(query.df)
    _check_names(query.df, aggregates)
    partition = tuple(_bind_key(binding, given, "partition_by") for given in _flatten(query.partition))
    order = tuple(_bind_order_key(binding, given) for given in _flatten(query.order))
    bounds: dict[str, Column] = {}
    order_kinds = [(key.column, binding.kinds[key.column].simpleString()) for key in order]
    reader = BoundReader(query.df, order_kinds, bounds, {})
    default = query.default_frame
    asked = {name: _read_aggregate(name, given, default) for name, given in aggregates.items()}
    given_frames = list({id(one.frame): one.frame for one in asked.values()}.values())
    frames = [_bind_frame(frame, reader) for frame in given_frames]
    bound = [
        replace(
            _bind_aggregate(binding, name, one),
            frame=_number_frame(given_frames, one.frame),
            method=query.method,
            tau=query.tau,
            strategy=query.strategy,
        )
        for name, one in asked.items()
    ]
    rows = query.df.withColumns({**binding.added, **bounds}) if binding.added or bounds else query.df
    reach = measure_reach(rows, bounds, reader.checks)
    check_fractions(rows, bound, [key.column for key in (*partition, *order)])
    kinds = {**binding.kinds, **{name: rows.schema[name].dataType for name in bounds}}
    task = FrameTask(
        partition, order, tuple(_set_reach(frame, reach) for frame in frames), tuple(bound), tuple(query.df.columns)
    )
    carries = all(can_carry(item, frames[item.frame]) for item in bound)
    unbounded = not all(map(is_bounded, frames))
    task = replace(task, is_unbounded=unbounded, holds_all=unbounded and not task.only_counts, loads_all=not carries)
    fractions = [item.fraction for item in bound if item.fraction is not None]
    looked = dict.fromkeys([*(n for n in task.needed if n in kinds), *bounds, *fractions])
    task = replace(task, kinds=tuple((name, arrow_type(kinds[name])) for name in looked))
    return TablePlan(rows, task, _result_schema(query.df, bound), kinds, query.tasks, query.shuffle)


def _set_reach(frame: BoundFrame, reach: dict[str, Any]) -> BoundFrame:
    start, end = (
        replace(bound, reach=reach[bound.column]) if bound.column is not None else bound
        for bound in (frame.start, frame.end)
    )
    return replace(frame, start=start, end=end)


def _flatten(given: Iterable[Any]) -> list[Any]:
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


def _bind_key(binding: _Binding, given: Any, what: str) -> SortKey:
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


def _bind_order_key(binding: _Binding, given: Any) -> SortKey:
    """A key with its direction; where NULL goes is Spark's default unless said."""
    if isinstance(given, SortKey):
        return replace(given, column=_bind_key(binding, given.column, "order_by").column)
    way = nulls = None
    if isinstance(given, str) and binding.find_own(given) is None:
        match = _DIRECTION.match(given)
        assert match is not None
        given, way, nulls = match["what"].strip(), match["way"], match["nulls"]
    elif is_column(given):
        text = _COLUMN_TEXT.match(str(given))
        match = _SORTED_TEXT.match(text["text"]) if text else None
        if match is not None:
            given, way, nulls = match["what"], match["way"], match["nulls"]
            if binding.find_own(given) is None:
                raise UnknownNameError(
                    "asc and desc of a Column need a column of the DataFrame", got=repr(given),
                    hint='Give expressions as text, as in order_by("a + b desc nulls last")',
                )  # fmt: skip
    descending = way is not None and way.lower() == "desc"
    first = nulls.lower() == "first" if nulls is not None else not descending
    return replace(_bind_key(binding, given, "order_by"), descending=descending, nulls_first=first)


def _read_aggregate(name: str, given: Any, default: Frame[Any]) -> FramedAggregate:
    asked = FramedAggregate(given) if isinstance(given, Aggregate) else given
    if not isinstance(asked, FramedAggregate):
        hint = f"Give it a column, as in {given.name}('x')" if isinstance(given, UserAggregate) else None
        raise DataError(f"{name} must be an aggregate, as in wr.median('x')", got=repr(given), hint=hint)
    if asked.frame is None:
        return asked.over(default)
    if not isinstance(asked.frame, Frame):
        raise DataError(f"{name} must be over a frame, as in wr.Frame.rows(-29, 0)", got=repr(asked.frame))
    return asked


def _number_frame(frames: list[Frame[Any]], wanted: Frame[Any]) -> int:
    return next(number for number, frame in enumerate(frames) if frame is wanted)


def _bind_aggregate(binding: _Binding, name: str, asked: FramedAggregate) -> TableAggregate:
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
    aggregate, result = _bind_column(binding, asked.aggregate, name)
    return TableAggregate(name, aggregate, 0, result, keep)


def _bind_frame(frame: Frame[Any], reader: BoundReader) -> BoundFrame:
    start, end = (reader.read(bound, frame.unit) for bound in (frame.start, frame.end))
    return Frame(frame.unit, start, end, frame.exclusion)


def _bind_column(binding: _Binding, aggregate: Aggregate, name: str) -> tuple[Aggregate, pa.DataType]:
    if aggregate.attribute is None:
        return aggregate, pa.int64()
    columns = [binding.column(given, f"the aggregate {name}") for given in aggregate.attributes]
    column, kind = columns[0], binding.kinds[columns[0]]
    text = kind.simpleString()
    if aggregate.definition.bare and text not in _NAMES:
        f = functions()
        given: Any = binding.added.get(column, column_named(column))
        column = binding.add(f.when(given.isNotNull(), True), f"the aggregate {name}")
        return aggregate.of(column), pa.int64()
    aggregate.check(*(windrow_type(binding.kinds[one].simpleString(), aggregate.name) for one in columns))
    if aggregate.varies:
        aggregate = replace(aggregate, parameter=_bind_fraction(binding, aggregate, name))
    return aggregate.of(*columns), result_type(aggregate, kind)


def _bind_fraction(binding: _Binding, aggregate: Aggregate, name: str) -> str:
    """The column of each row's fraction, as doubles."""
    what = f"the fraction of {name}"
    found = binding.column(aggregate.parameter, what)
    kind = binding.kinds[found].simpleString()
    if kind == "double":
        return found
    if kind not in (*WHOLE, "float") and not kind.startswith("decimal"):
        raise SchemaError(f"{what} must be a number", got=f"{aggregate.parameter}: {kind}")
    given: Any = binding.added.get(found, column_named(found))
    # By way of its text a float means what was written: 0.3, not the double nearest to the float.
    return binding.add((given.cast("string") if kind == "float" else given).cast("double"), what)


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
    if aggregate.definition.picks:
        return arrow_type(kind)
    if aggregate.definition.sums and text.startswith("decimal"):
        return pa.decimal128(min(38, kind.precision + 10), kind.scale)
    return stored_type(result)


def _result_schema(frame: DataFrame, aggregates: list[TableAggregate]) -> Any:
    return extend_schema(frame.schema, {item.output: item.result for item in aggregates})
