"""Cutting the order of a DataFrame's rows into slices, and slices into tasks.

Rows are sorted by partition keys, order keys and a hash of the whole row, so that rows with equal keys have an order
too, and even those can be cut. Cuts come from a sample and are fixed in the plan: whoever works out a row's slice, and
whenever, finds the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.dataframes.keys import sorted_order, steps
from windrow.dataframes.order import PartitionLook
from windrow.dataframes.sessions import column_named, functions, quote_name
from windrow.dataframes.spec import FrameTask
from windrow.model.frame import SortKey

if TYPE_CHECKING:
    from pyspark.sql import Column

TIE = "__windrow_tie"
"""The column with the hash of the whole row."""

NOWHERE, LOWER, UPPER = 0, 1, 2
"""Whether a row's partition is one that the lower or the upper cut of its slice goes through."""


def row_hash(kinds: Mapping[str, Any]) -> Column:
    """A hash of all columns that Spark can hash."""
    column: Column = functions().xxhash64(*(column_named(name) for name in hashed_columns(kinds)))
    return column


def hashed_columns(kinds: Mapping[str, Any]) -> list[str]:
    """The columns whose hash orders rows with equal keys."""
    return [name for name, kind in kinds.items() if _hashable(kind)]


def _hashable(kind: Any) -> bool:
    return not any(word in kind.simpleString() for word in ("map<", "variant", "geometry", "geography"))


@dataclass(frozen=True, eq=False)
class Cuts:
    """Where slices begin, but for the first: at a key, or within the rows of that key at a hash."""

    keys: pa.Table
    ties: tuple[int | None, ...]
    partition: tuple[SortKey, ...]
    order: tuple[SortKey, ...]

    @property
    def slices(self) -> int:
        return len(self.ties) + 1

    @cached_property
    def partitions(self) -> list[int]:
        """A number for each cut, the same for those that go through the same partition."""
        changes = steps(self.keys, self.partition) != 0
        return [0, *np.cumsum(changes).tolist()] if self.ties else []

    @cached_property
    def joins_peers(self) -> list[int | None]:
        """For each cut between rows with equal keys, a number that stands for these keys; None for other cuts."""
        if not self.ties:
            return []
        changes = np.concatenate([[0], np.cumsum(steps(self.keys, self.partition + self.order) != 0)])
        return [None if tie is None else int(number) for tie, number in zip(self.ties, changes, strict=True)]

    def crossed(self, piece: int) -> int | None:
        """Which of the partitions that cuts go through a piece of a slice belongs to."""
        number, side = divmod(piece, 3)
        if side == NOWHERE:
            return None
        return self.partitions[number - 1 if side == LOWER else number]

    def piece(self, kinds: Mapping[str, Any]) -> Column:
        """A row's piece: three times its slice's number, plus which of the slice's cuts goes through its partition."""
        # As one text, for Spark reads that at once, while a tree of Columns costs a call for each of its leaves.
        literals = [
            [literal(value, kinds[key.column].simpleString()) for value in self.keys.column(key.column).to_pylist()]
            for key in self.partition + self.order
        ]
        below = [self._below([column[number] for column in literals], number) for number in range(self.slices - 1)]
        leaves = [self._leaf(literals, number) for number in range(self.slices)]
        column: Column = functions().expr(f"cast({write_search(below, leaves)} as int)")
        return column

    def _below(self, cut: list[str], number: int) -> str:
        """Whether a row sorts before a cut."""
        tie = self.ties[number]
        return write_below(
            self.partition + self.order, cut, "false" if tie is None else f"`{TIE}` < {write_whole(tie)}"
        )

    def _leaf(self, literals: list[list[str]], number: int) -> str:
        if not self.ties:
            return str(3 * number)
        sides = []
        if number > 0:
            sides.append((LOWER, number - 1))
        if number < len(self.ties) and not (sides and self.partitions[number - 1] == self.partitions[number]):
            sides.append((UPPER, number))
        found = str(3 * number + NOWHERE)
        for side, cut in reversed(sides):
            same = [f"{quote_name(key.column)} <=> {literals[k][cut]}" for k, key in enumerate(self.partition)]
            found = f"if({' and '.join(same)}, {3 * number + side}, {found})" if same else str(3 * number + side)
        return found


def write_search(below: Sequence[str], leaves: Sequence[str]) -> str:
    """Spark SQL for the leaf that a row belongs to, among cuts in order: a balanced tree of comparisons.

    ``below`` says whether a row sorts before each cut; there is one leaf more than there are cuts.
    """
    if not below or all(leaf == leaves[0] for leaf in leaves):
        return leaves[0]
    middle = len(below) // 2
    left = write_search(below[:middle], leaves[: middle + 1])
    right = write_search(below[middle + 1 :], leaves[middle + 1 :])
    return f"if({below[middle]}, {left}, {right})"


def write_below(keys: Sequence[SortKey], values: Sequence[str], equal: str) -> str:
    """Spark SQL for whether a row's keys sort before some values; ``equal`` is what it is where they are equal."""
    below = equal
    for key, value in reversed(list(zip(keys, values, strict=True))):
        name = quote_name(key.column)
        if value == "null":
            less = "false" if key.nulls_first else f"{name} is not null"
        else:
            way = ">" if key.descending else "<"
            less = f"coalesce({name} {way} {value}, {str(key.nulls_first).lower()})"
        below = less if below == "false" else f"({less} or ({name} <=> {value} and {below}))"
    return below


def literal(value: Any, kind: str) -> str:
    """A value in Spark SQL, whatever characters are in it."""
    if value is None:
        return "null"
    if isinstance(value, (bytes, bytearray)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, str):
        return f"cast(X'{value.encode().hex()}' as string)"
    return f"cast('{value}' as {kind})"


def write_whole(number: int) -> str:
    return f"cast('{number}' as bigint)"


def choose_cuts(task: FrameTask, looks: Sequence[PartitionLook], slices: int) -> Cuts:
    """Cuts into slices of about the same number of rows."""
    parts = [(part, one.stride) for one in looks for part in one.sample if part.num_rows]
    if not task.keys:
        sample, weights = pa.table({"__none": pa.nulls(1)}), np.ones(1)
    else:
        sample = pa.concat_tables([part for part, _ in parts]).combine_chunks()
        weights = np.concatenate([np.full(part.num_rows, stride, np.float64) for part, stride in parts])
        order = sorted_order(sample, task.keys)
        sample, weights = sample.take(order), weights[order]
    return _cuts(task, sample, weights, slices)


def _cuts(task: FrameTask, sample: pa.Table, weights: Any, slices: int) -> Cuts:
    ends = np.cumsum(weights)
    runs = np.concatenate([[0], np.flatnonzero(steps(sample, task.keys)) + 1, [sample.num_rows]])
    rows: list[int] = []
    ties: list[int | None] = []
    for number in range(1, slices):
        wanted = number * ends[-1] / slices
        place = min(int(np.searchsorted(ends, wanted, "right")), sample.num_rows - 1)
        run = int(np.searchsorted(runs, place, "right")) - 1
        first, last = int(runs[run]), int(runs[run + 1])
        tie = None
        if last - first > 1 or not task.keys:
            begin = ends[first] - weights[first]
            share = (wanted - begin) / (ends[last - 1] - begin)
            tie = int(-(2**63) + share * 2**64) if share > 0 else None
        if rows and rows[-1] == first and (tie is None or (ties[-1] is not None and tie <= ties[-1])):
            continue
        rows.append(first)
        ties.append(None if tie is None else max(-(2**63), min(tie, 2**63 - 1)))
    return Cuts(sample.take(pa.array(rows, pa.int64())), tuple(ties), task.partition, task.order)
