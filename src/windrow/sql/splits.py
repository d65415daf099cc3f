"""What becomes of a SELECT with windows of windrow's: a query below them, sorts, and a query above them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from windrow.model.frame import Frame, SortKey
from windrow.sql.items import Item
from windrow.sql.over_clauses import WindowCall
from windrow.sql.reading import Span

OWN = "__sql_"
"""How the columns begin that pass from the inner query to the outer."""


@dataclass(frozen=True)
class Column:
    """An aggregate to compute: the result's name, and the inner columns that it is made from."""

    result: str
    call: WindowCall
    arguments: tuple[str, ...]
    fraction: str | None
    condition: str | None
    frame: Frame[Any]  # with names in the place of bounds that are computed for each row

    @property
    def value(self) -> str:
        """The column that the aggregate is of; several that are counted together become one."""
        if self.call.position is not None:
            return self.arguments[0]
        apart = len(self.arguments) == self.call.aggregate.definition.arguments
        return self.arguments[0] if apart else "_and_".join(self.arguments)


@dataclass
class Sort:
    """Windows that share PARTITION BY and ORDER BY: one sort, one pass."""

    partition: tuple[str, ...]
    order: tuple[SortKey, ...]
    columns: list[Column] = field(default_factory=list)


@dataclass
class Split:
    """A SELECT with windows of windrow's: the query below them, the sorts, and the query above them."""

    span: Span
    inner: str
    from_clause: str
    generated: list[str]
    pulled: dict[str, str]
    """Columns by their plain names, in lower case, and the generated columns that hold the same."""
    sorts: list[Sort]
    items: list[Item]
    above: str
    """What follows FROM in the outer query, after the name of the table."""
    distinct: bool
    meanings: dict[str, str]
    """What generated names stand for, as it was written."""
    told: str
    """The inner query as a reader would write it."""

    def columns_to_drop(self, inner: Sequence[str]) -> list[str]:
        """The columns that hold nothing, or the same as a generated column."""
        return [name for _, name, same in self._result_columns(inner) if name is not None and same is not None]

    def name_columns(self, inner: Sequence[str]) -> list[str]:
        """Names for the inner query's columns, all different."""
        first = len(inner) - len(self.generated)
        return [f"{OWN}i{number}" for number in range(first)] + self.generated

    def write_outer(self, inner: Sequence[str], table: str) -> str:
        """The query above the windows, over a table that has the inner columns and the results."""
        shown = [
            f"{same or name} as {quote_name(label)}"
            for label, name, same in self._result_columns(inner)
            if label is not None
        ]
        select = "select distinct" if self.distinct else "select"
        return f"{select} {', '.join(shown)}\nfrom {table}\n{self.above}".rstrip()

    def _result_columns(self, inner: Sequence[str]) -> Iterator[tuple[str | None, str | None, str | None]]:
        """For each column its label in the result, its name in the inner query, and the column to take instead."""
        at = 0
        for item in self.items:
            while item.several and inner[at] != item.mark:
                same = self.pulled.get(inner[at].lower()) if item.is_star and inner.count(inner[at]) == 1 else None
                yield inner[at], f"{OWN}i{at}", same
                at += 1
            if item.several:
                yield None, f"{OWN}i{at}", ""
            elif item.above is None:
                yield inner[at], f"{OWN}i{at}", item.same
            else:
                yield item.name, f"{OWN}i{at}", item.above
            at += 1


def quote_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
