"""Homes: which node keeps which chunk of an array, as the catalog's rows say; and how fast nodes are.

A row lists the chunks whose home a batch decided. Rows are read from the last whole one on. A home is a hint: the node
may be gone, or may have let the chunk go. Nothing is wrong then but the plan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from windrow.storage import tables
from windrow.storage.chunks.index import pack_columns, unpack_columns
from windrow.storage.failures import damaged_rows
from windrow.storage.records import ArrayRecord, Int64Array, VersionRecord

if TYPE_CHECKING:
    from windrow.storage.catalog import Catalog

RATES = "placement_rates"
"""The setting under which measured rates are kept."""

WHOLE_EVERY = 64
"""After so many rows all homes are listed whole, so that reading them stays quick."""


@dataclass(frozen=True, eq=False)
class Homes:
    """The home of each chunk that has one: the number of a name among ``nodes``."""

    nodes: tuple[str, ...]
    ordinals: Int64Array
    numbers: Int64Array

    @classmethod
    def none(cls) -> Homes:
        nothing = np.empty(0, np.int64)
        return cls((), nothing, nothing)

    def of(self, ordinals: Int64Array) -> Int64Array:
        """The number of each chunk's home, -1 where it has none."""
        if not len(self.ordinals):
            return np.full(len(ordinals), -1, np.int64)
        places = np.minimum(np.searchsorted(self.ordinals, ordinals), len(self.ordinals) - 1)
        return np.where(self.ordinals[places] == ordinals, self.numbers[places], -1)


@dataclass(frozen=True, eq=False)
class NewHomes:
    """What a batch decides of an array's chunks.

    ``identity`` is the name under which nodes keep the chunks that the batch changed, as they were after so many
    ``steps`` of the transaction: if more was done to the array afterwards, they are not what is published.
    """

    nodes: tuple[str, ...] = ()
    ordinals: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    numbers: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))
    identity: str | None = None
    steps: int = 0
    joined: bytes | None = None
    forgets: bool = False
    """Whether all homes before are forgotten."""

    def at_steps(self, steps: int) -> NewHomes:
        """The same, without its identity if the array is not as it was then."""
        return self if steps == self.steps else replace(self, identity=None)

    def after(self, earlier: NewHomes | None) -> NewHomes:
        """What two runs in one transaction decide together; the later one counts."""
        if earlier is None or self.forgets:
            return self
        nodes = tuple(dict.fromkeys((*earlier.nodes, *self.nodes)))
        table = {name: number for number, name in enumerate(nodes)}
        before, now = (_renumbered(one.numbers, one.nodes, table) for one in (earlier, self))
        ordinals, numbers = _newest(np.concatenate([earlier.ordinals, self.ordinals]), np.concatenate([before, now]))
        return replace(self, nodes=nodes, ordinals=ordinals, numbers=numbers, forgets=earlier.forgets)


def _renumbered(numbers: Int64Array, nodes: Sequence[str], table: Mapping[str, int]) -> Int64Array:
    return np.array([table[name] for name in nodes], np.int64)[numbers] if len(numbers) else numbers


def _newest(ordinals: Int64Array, numbers: Int64Array) -> tuple[Int64Array, Int64Array]:
    """The last number of each chunk, by ordinal."""
    order = np.argsort(ordinals, kind="stable")
    last = np.append(np.diff(ordinals[order]) != 0, True)[: len(order)]
    return ordinals[order][last], numbers[order][last]


def has_homes(connection: Connection) -> bool:
    return sa.inspect(connection).has_table(tables.homes.name)


def read_homes(connection: Connection, array_id: int) -> Homes:
    """The homes of an array's chunks after its last batch."""
    if not has_homes(connection):
        return Homes.none()
    table = tables.homes
    mine = table.c.array_id == array_id
    whole = sa.select(sa.func.max(table.c.id)).where(mine & (table.c.whole == 1)).scalar_subquery()
    query = sa.select(table.c.nodes, table.c.encoded).where(mine & (table.c.id >= whole)).order_by(table.c.id)
    rows = connection.execute(query).all()
    found: NewHomes | None = None
    with damaged_rows("the homes of chunks"):
        for row in rows:
            found = _decode(row).after(found)
    return Homes.none() if found is None else Homes(found.nodes, found.ordinals, found.numbers)


def load_homes(catalog: Catalog, record: ArrayRecord) -> Homes:
    """Where the chunks of an array are at home, as the last batches left them."""
    with catalog.reading() as connection:
        return read_homes(connection, record.id)


def load_identities(catalog: Catalog, record: ArrayRecord) -> dict[int, str]:
    """What tells the contents of each version apart from all that a version of that number could have been."""
    with catalog.reading() as connection:
        return read_identities(connection, record.id)


def load_joined(catalog: Catalog, record: ArrayRecord, batches: int) -> list[bytes]:
    """What the last batches joined for a view, the latest first; ``record`` is that of its states."""
    with catalog.reading() as connection:
        return read_joined(connection, record.id, batches)


def _decode(row: Any) -> NewHomes:
    nodes = tuple(map(str, json.loads(row.nodes)))
    steps, numbers = unpack_columns(row.encoded)
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= len(nodes)):
        raise ValueError("a home on a node that has no name")
    return NewHomes(nodes, np.cumsum(steps), numbers)


def enter_homes(connection: Connection, homes: Mapping[str, NewHomes], published: Mapping[str, VersionRecord]) -> None:
    """Write what a transaction decided of homes, after the versions of all arrays were written."""
    if not homes:
        return
    tables.homes.create(connection, checkfirst=True)
    for name, new in homes.items():
        array_id, number = _newest_version(connection, name, published)
        if array_id is None:
            continue
        if new.forgets:
            forget_homes(connection, array_id)
        before = read_homes(connection, array_id)
        whole = _is_whole_due(connection, array_id)
        if whole:
            earlier = NewHomes(before.nodes, before.ordinals, before.numbers)
            new = new.after(earlier)
        row = {
            "array_id": array_id,
            "since": number,
            "whole": int(whole),
            "identity": new.identity if name in published else None,
            "nodes": json.dumps(new.nodes),
            "encoded": pack_columns([np.diff(new.ordinals, prepend=0), new.numbers]),
            "joined": new.joined,
        }
        connection.execute(sa.insert(tables.homes).values(row))
        if whole:
            _forget_before_last_whole(connection, array_id)


def _newest_version(
    connection: Connection, name: str, published: Mapping[str, VersionRecord]
) -> tuple[int | None, int]:
    if name in published:
        return published[name].array_id, published[name].number
    versions = tables.versions
    query = sa.select(tables.arrays.c.id, sa.func.max(versions.c.number)).where(tables.arrays.c.name == name)
    row = connection.execute(
        query.where(versions.c.array_id == tables.arrays.c.id).group_by(tables.arrays.c.id)
    ).first()
    return (None, 0) if row is None else (int(row[0]), int(row[1]))


def _is_whole_due(connection: Connection, array_id: int) -> bool:
    table = tables.homes
    recent = sa.select(table.c.whole).where(table.c.array_id == array_id).order_by(table.c.id.desc())
    return not any(connection.scalars(recent.limit(WHOLE_EVERY - 1)))


def _forget_before_last_whole(connection: Connection, array_id: int) -> None:
    """Forget what no plan looks at any more; the versions of these rows are then told apart by their times."""
    table = tables.homes
    mine = table.c.array_id == array_id
    wholes = list(connection.scalars(sa.select(table.c.id).where(mine & (table.c.whole == 1)).order_by(table.c.id)))
    if len(wholes) > 1:  # one more is kept, for those who joined lately
        connection.execute(sa.delete(table).where(mine & (table.c.id < wholes[-2])))


def forget_homes(connection: Connection, array_id: int) -> None:
    if has_homes(connection):
        connection.execute(sa.delete(tables.homes).where(tables.homes.c.array_id == array_id))


def read_identities(connection: Connection, array_id: int) -> dict[int, str]:
    """For each version that is offered the name under which its chunks are kept: that of its batch, or its time."""
    version = tables.versions
    query = sa.select(version.c.number, version.c.created).where(version.c.array_id == array_id)
    found = {index(row.number): str(row.created) for row in connection.execute(query)}
    if has_homes(connection):
        table = tables.homes
        named = sa.select(table.c.since, table.c.identity).where(
            (table.c.array_id == array_id) & table.c.identity.is_not(None)
        )
        found.update({index(row.since): str(row.identity) for row in connection.execute(named.order_by(table.c.id))})
    return found


def read_joined(connection: Connection, array_id: int, batches: int) -> list[bytes]:
    if not batches or not has_homes(connection):
        return []
    table = tables.homes
    query = sa.select(table.c.joined).where((table.c.array_id == array_id) & table.c.joined.is_not(None))
    return [bytes(found) for found in connection.scalars(query.order_by(table.c.id.desc()).limit(batches))]


def enter_setting(connection: Connection, key: str, value: str) -> None:
    table = tables.settings
    changed = connection.execute(sa.update(table).where(table.c.key == key).values(value=value))
    if not changed.rowcount:
        connection.execute(sa.insert(table).values(key=key, value=value))
