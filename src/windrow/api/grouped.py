"""Groups of cells asked for from Python: by dimensions, and by parts of times as xarray writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.api.query import Query, measures_of
from windrow.errors import DataError
from windrow.expressions.nodes import Binary, Call, Column, Literal, Node, Over
from windrow.language.expression import parse_expression
from windrow.plan.grouping.label_parts import GroupKey, label_part
from windrow.plan.nodes import GroupBy, Project
from windrow.plan.printing import group_text
from windrow.plan.specs import Output

if TYPE_CHECKING:
    from windrow.aggregates.aggregate import Aggregate
    from windrow.api.cells import Cells

_CALL = re.compile(r"\s*(?P<part>\w+)\s*\(\s*(?P<name>[^()]+?)\s*\)\s*\Z")


@dataclass(frozen=True)
class Grouped:
    """Cells in groups; ``agg`` says what to compute."""

    array: Cells
    keys: tuple[GroupKey, ...]

    def agg(self, **aggregates: Aggregate) -> Query:
        """Named aggregates over each group: ``.groupby("time.month").agg(m=wr.avg("t"))``."""
        plan, pinned = self.array._steps()
        return Query(self.array._database, GroupBy(plan, self.keys, measures_of(aggregates)), pinned, self.array._batch)

    def __repr__(self) -> str:
        by = ", ".join(map(group_text, self.keys))
        return f'<windrow {self.array.name} grouped by {by}: .agg(m=wr.avg("…")) computes something>'


def grouped(array: Cells, keys: Sequence[str]) -> Grouped:
    """See ``Array.groupby``."""
    return Grouped(array, group_keys(keys))


def group_keys(keys: Sequence[str]) -> tuple[GroupKey, ...]:
    """What is named as plans hold it."""
    if not keys:
        raise DataError(
            "there is nothing to group by", hint='As in groupby("lat", "time.month"); agg() alone takes all'
        )
    return tuple(map(_key, keys))


def anomaly(array: Cells, attribute: str, by: str | Sequence[str], standardize: bool) -> Query:
    """See ``Array.anomaly``."""
    keys = group_keys((by,) if isinstance(by, str) else tuple(by))
    named = {column.name for key in keys for column in key.columns()}
    for name in (name for name in array.schema.attribute_names if name in named):
        hint = (
            f"Say which cells it is taken from: select {attribute} - avg({attribute}) over ({name}) as anomaly from …"
        )
        raise DataError("an anomaly is taken along dimensions, and this is an attribute", got=repr(name), hint=hint)
    beside = tuple(Column(name) for name in array.schema.dimension_names if name not in named)
    value, groups = parse_expression(attribute), (*beside, *keys)
    node: Node = Binary("-", value, Over(Call("avg", (value,)), groups))
    if standardize:
        spread = Over(Call("std", (value,)), groups)
        node = Binary("/", node, Call("nullif", (spread, Literal(0.0))))
    plan, pinned = array._steps()
    return Query(array._database, Project(plan, (Output("anomaly", node),)), pinned, array._batch)


def _key(text: str) -> GroupKey:
    """``lat``, ``time.month`` as xarray has it, or ``month(time)`` as the language does."""
    if not isinstance(text, str) or not text.strip():
        raise DataError("what is grouped by is a text", got=repr(text), hint='As in groupby("lat", "time.month")')
    called = _CALL.match(text)
    if called is not None:
        return label_part(called["part"], Column(called["name"]))
    name, point, part = text.partition(".")
    if not point:
        return Column(text)
    if part.lower() == "dayofweek":
        # Who writes it so thinks of xarray, where Monday is 0; the language counts it from 1.
        hint = f"{name}.weekday counts from 0, as xarray does, and dayofweek({name}) from 1"
        raise DataError("it is not clear from where days of the week are counted", got=repr(text), hint=hint)
    return label_part(part, Column(name))
