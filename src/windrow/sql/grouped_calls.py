"""Aggregates of windrow's without OVER: the values of each group are gathered, and the kernels of frames compute them.

A call ``mode(x)`` becomes ``__windrow_group_…(collect_list(x))``, a function of Spark's that runs windrow's own. What
else is in the query, GROUP BY and HAVING among it, stays Spark's.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.frames import FrameEvaluation, Frames
from windrow.dataframes.binding import result_type, windrow_type
from windrow.dataframes.keys import join_chunks
from windrow.dataframes.sessions import functions
from windrow.dataframes.values import take_column
from windrow.errors import DataError, Error
from windrow.execution.spark import tell_failure
from windrow.sql.over_clauses import grouped_kind, read_aggregate, unwrap_call
from windrow.sql.reading import Reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CALLS = (exp.Anonymous, exp.Filter, exp.WithinGroup)


@dataclass(frozen=True, eq=False)
class GroupedCall:
    """An aggregate that stands without OVER, and the expressions in it."""

    node: exp.Expr
    aggregate: Aggregate
    arguments: tuple[exp.Expr, ...]
    fraction: exp.Expr | None
    condition: exp.Expr | None

    def write(self, reading: Reading, function: str) -> str:
        """Spark SQL for it."""
        texts = [reading.text_of(argument) for argument in self.arguments]
        value = texts[0]
        if len(texts) > 1:
            whole = " and ".join(f"({text}) is not null" for text in texts)
            value = f"if({whole}, struct({', '.join(texts)}), null)"
        condition = "" if self.condition is None else f" filter (where {reading.text_of(self.condition)})"
        # The order in which rows come to a group is chance, and a user's function may depend on it.
        gathered = f"collect_list({value}){condition}"
        gathered = f"sort_array({gathered})" if self.aggregate.user is not None else gathered
        return f"{function}({gathered}{self._write_fraction(reading)})"

    def _write_fraction(self, reading: Reading) -> str:
        """The fraction of each group; Spark itself refuses a wrong one, without a worker's trace."""
        if self.fraction is None:
            return ""
        text = reading.text_of(self.fraction)
        found, rule = self.aggregate.definition, self.aggregate.definition.ranks
        assert rule is not None
        refusal = DataError(f"{found.name}: {found.parameter} must be between 0 and {rule.limit}", got="")
        told = f"concat('{tell_failure(refusal)}', coalesce(string({text}), 'NULL'), ' in a group')"
        # NaN is larger than everything to Spark.
        return f", if(double({text}) between 0 and {rule.limit}, double({text}), raise_error({told}))"


def grouped_calls(reading: Reading, select: exp.Select) -> Iterator[GroupedCall]:
    """The aggregates of a SELECT that stand without OVER and are windrow's to compute."""
    for node in _find_calls(select):
        function = unwrap_call(node)
        found = grouped_kind(function)
        if found is None:
            continue
        name, forced = found
        asked = read_aggregate(reading, node, function, name, forced)
        if asked is None:
            continue
        aggregate, arguments, *fraction = asked
        if aggregate.definition.ordered:
            hint = "Over a window, rows have an order"
            raise reading.error(f"{name} needs an order of rows, which groups have not", node, hint=hint)
        if arguments:
            yield GroupedCall(node, aggregate, arguments, fraction[0] if fraction else None, function.condition)


def _find_calls(node: exp.Expr) -> Iterator[exp.Expr]:
    """Calls in a query that are no function of a window, those of queries inside it left out."""
    if isinstance(node, _CALLS):
        yield node
        inner = node.this if isinstance(node, exp.Filter | exp.WithinGroup) else node
        for child in (*inner.expressions, *([node.expression] if isinstance(node, exp.Filter) else [])):
            yield from _find_calls(child)
        return
    for key, value in node.args.items():
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, exp.Expr) or isinstance(child, exp.Query | exp.Subquery):
                continue
            if isinstance(node, exp.Window) and key == "this":
                yield from _inside(child)
            else:
                yield from _find_calls(child)


def _inside(function: exp.Expr) -> Iterator[exp.Expr]:
    """Calls in the arguments of a window's function."""
    while isinstance(function, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    for argument in function.expressions:
        if isinstance(argument, exp.Expr):
            yield from _find_calls(argument)


def register_call(session: SparkSession, call: GroupedCall, reading: Reading, kinds: list[Any]) -> str:
    """Make the function of a call, for columns of these types, known to Spark; returns its name."""
    from pyspark.sql.pandas.types import from_arrow_type

    aggregate = call.aggregate
    try:
        aggregate.check(*(windrow_type(kind.simpleString(), aggregate.name) for kind in kinds))
    except Error as error:
        raise reading.error(error.what, call.node, got=error.got, hint=error.hint) from None
    result = result_type(aggregate, kinds[0])
    evaluation = GroupEvaluation(aggregate, result)
    key = repr((aggregate.name, aggregate.parameter, [kind.simpleString() for kind in kinds], id(aggregate.user)))
    name = f"__windrow_group_{zlib.crc32(key.encode()):08x}"

    def constant(gathered: pa.Array) -> pa.Array:
        return evaluation.evaluate(gathered)

    def varying(gathered: pa.Array, fractions: pa.Array) -> pa.Array:
        return evaluation.evaluate(gathered, fractions)

    # Annotations that are texts would be looked up where a worker has no names.
    for function in (constant, varying):
        function.__annotations__ = dict.fromkeys(function.__annotations__, pa.Array)
    chosen = varying if aggregate.varies else constant
    session.udf.register(name, functions().arrow_udf(chosen, from_arrow_type(result)))
    return name


@dataclass(frozen=True)
class GroupEvaluation:
    """An aggregate of groups whose values stand side by side in lists; what workers run."""

    aggregate: Aggregate
    result: pa.DataType

    def evaluate(self, gathered: pa.Array, fractions: pa.Array | None = None) -> pa.Array:
        """A result for each list."""
        lists = join_chunks(gathered)
        ends = np.cumsum(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)).astype(np.int64)
        frames = Frames(np.concatenate([[0], ends[:-1]]).astype(np.int64), ends)
        values = lists.flatten()
        columns = values.flatten() if pa.types.is_struct(values.type) else [values]
        aggregate = self.aggregate
        if fractions is not None:
            found = join_chunks(fractions).to_numpy(zero_copy_only=False)
            aggregate = replace(aggregate, parameter=found)
        names = ("x", "y")[: len(columns)]
        forms = [take_column(column, aggregate) for column in columns]
        held = {name: form.column for name, form in zip(names, forms, strict=True)}
        found = FrameEvaluation(held, frames, nan="value").result(aggregate.of(*names))
        return forms[0].decode(found, self.result)
