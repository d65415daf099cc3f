"""What the catalog knows of views: rows of its tables as records, and records as rows.

A view is an array with a definition. Its rows are written in the transaction that publishes its cells, so that what a
view holds for is as true as what it holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from windrow.storage import tables
from windrow.storage.failures import damaged_rows
from windrow.storage.records import VersionRecord

HIDDEN = "__windrow_"
"""How the names begin of arrays that only serve a view."""

STATE = f"{HIDDEN}state_"
"""How the name of the array begins that keeps what patching a view needs."""

HISTORY_KEPT = 365
"""Lines of a view's history that stay when its old versions are given up: a year of nights."""

FRESH, STALE, FAILED = "fresh", "stale", "failed"

_VIEWS = sa.select(tables.views).order_by(tables.views.c.array_id)
"""Made once, because every change asks it several times."""


@dataclass(frozen=True)
class ViewRecord:
    """What a view is, and how it stands. ``bases`` has the version held for, by the id of each array that it reads."""

    array_id: int
    definition: str
    settings: Mapping[str, Any]
    status: str
    reason: str | None
    bases: Mapping[int, int]
    state: int | None = None
    learned: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ViewChange:
    """What a transaction writes about one view. Arrays are named, for some get their number only now."""

    name: str
    bases: Mapping[str, int | None]
    """The version of each base that the view holds for; None stands for the one that is being published."""
    status: str = FRESH
    reason: str | None = None
    definition: str | None = None
    """Given where the view is new, as are ``settings``."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    state: str | None = None
    """The array that keeps what patching needs, if it was made now."""
    learned: Mapping[str, float] | None = None
    facts: Mapping[str, Any] | None = None
    history: tuple[Mapping[str, Any], ...] = ()


def has_views(connection: Connection) -> bool:
    """Whether the warehouse has the tables of views; one that was made before there were any may lack them."""
    return sa.inspect(connection).has_table(tables.views.name)


def view_records(connection: Connection) -> list[ViewRecord]:
    """All views, in the order in which they were made: each after those that it reads."""
    rows = connection.execute(_VIEWS).all()
    with damaged_rows("a view"):
        return [_record(row) for row in rows]


def _record(row: Any) -> ViewRecord:
    bases = {int(key): int(number) for key, number in json.loads(row.bases).items()}
    learned = {name: float(number) for name, number in _object(row.learned).items()}
    state = None if row.state is None else int(row.state)
    if row.status not in (FRESH, STALE, FAILED):
        raise ValueError(f"not how a view can stand: {str(row.status)[:100]}")
    return ViewRecord(
        row.array_id, row.definition, _object(row.settings), row.status, row.reason, bases, state,
        learned, _object(row.facts),
    )  # fmt: skip


def _object(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"not an object: {text[:100]}")
    return found


def history_of(connection: Connection, array_id: int) -> list[dict[str, Any]]:
    """What was done to a view, oldest first."""
    table = tables.view_history
    found = sa.select(table.c.entry).where(table.c.array_id == array_id).order_by(table.c.id)
    with damaged_rows("the history of a view"):
        return [_object(entry) for entry in connection.scalars(found)]


def held_versions(
    connection: Connection, array_id: int, number: int | None = None
) -> dict[int, dict[int, tuple[int, int]]]:
    """For each version of a view, or one of them, from which to which version of each base it holds."""
    table = tables.view_versions
    chosen = sa.select(table.c.number, table.c.bases).where(table.c.array_id == array_id)
    found = connection.execute(chosen if number is None else chosen.where(table.c.number == number)).all()
    with damaged_rows("a version of a view"):
        return {row.number: {int(k): (int(v[0]), int(v[1])) for k, v in json.loads(row.bases).items()} for row in found}


def forget_view(connection: Connection, array_id: int) -> None:
    if has_views(connection):
        for table in (tables.view_history, tables.view_versions, tables.views):
            connection.execute(sa.delete(table).where(table.c.array_id == array_id))


def forget_view_versions(connection: Connection, array_id: int, numbers: Iterable[int]) -> None:
    """Forget what versions of a view held for, and all but the last lines of its history.

    A version of which nothing is known, as one that compaction made, holds for what the last one before it did.
    """
    versions, history = tables.view_versions, tables.view_history
    kept = sa.select(tables.versions.c.number).where(tables.versions.c.array_id == array_id)
    known = connection.scalars(sa.select(versions.c.number).where(versions.c.array_id == array_id)).all()
    needed = {max((one for one in known if one <= number), default=None) for number in connection.scalars(kept)}
    for number in set(numbers) - needed:
        connection.execute(sa.delete(versions).where(versions.c.array_id == array_id, versions.c.number == number))
    lines = sa.select(history.c.id).where(history.c.array_id == array_id).order_by(history.c.id.desc())
    first = connection.scalar(lines.offset(HISTORY_KEPT - 1).limit(1))
    if first is not None:
        connection.execute(sa.delete(history).where(history.c.array_id == array_id, history.c.id < first))


def enter_views(connection: Connection, changes: Iterable[ViewChange], published: Mapping[str, VersionRecord]) -> None:
    """Write what a transaction did to views, after the versions of all arrays were written."""
    for change in changes:
        array_id, number = _newest(connection, change.name, published)
        bases = {}
        for name, held in change.bases.items():
            base_id, newest = _newest(connection, name, published)
            bases[base_id] = newest if held is None else held
        row: dict[str, Any] = {"status": change.status, "reason": change.reason, "bases": json.dumps(bases)}
        if change.learned is not None:
            row["learned"] = json.dumps(dict(change.learned))
        if change.facts is not None:
            row["facts"] = json.dumps(dict(change.facts))
        if change.state is not None:
            row["state"] = _newest(connection, change.state, published)[0]
        if change.definition is not None:
            made = {"definition": change.definition, "settings": json.dumps(dict(change.settings))}
            values = {"array_id": array_id, "learned": "{}", "facts": "{}", **row, **made}
            connection.execute(sa.insert(tables.views).values(values))
        else:
            connection.execute(sa.update(tables.views).where(tables.views.c.array_id == array_id).values(row))
        if change.status == FRESH:
            _hold(connection, array_id, number, bases)
        for entry in change.history:
            stated = {"version": number if change.name in published else None, **entry}
            entered = {"array_id": array_id, "entry": json.dumps(stated, default=str)}
            connection.execute(sa.insert(tables.view_history), entered)


def _newest(connection: Connection, name: str, published: Mapping[str, VersionRecord]) -> tuple[int, int]:
    """An array's number, and that of its newest version."""
    if name in published:
        return published[name].array_id, published[name].number
    versions = tables.versions
    query = sa.select(tables.arrays.c.id, sa.func.max(versions.c.number)).where(tables.arrays.c.name == name)
    row = connection.execute(query.where(versions.c.array_id == tables.arrays.c.id).group_by(tables.arrays.c.id)).one()
    return int(row[0]), int(row[1])


def _hold(connection: Connection, array_id: int, number: int, bases: Mapping[int, int]) -> None:
    """Note for which versions of its bases a version of a view holds: one that stays is held for further ones.

    Only if none was passed over: after a while a base may be what it was, and have been something else in between.
    """
    known = held_versions(connection, array_id, number).get(number)
    earlier = known or {}
    follows = all(base in earlier and 0 <= at - earlier[base][1] <= 1 for base, at in bases.items())
    spans = json.dumps({base: (earlier[base][0] if follows else at, at) for base, at in bases.items()})
    table = tables.view_versions
    if known is None:
        connection.execute(sa.insert(table), {"array_id": array_id, "number": number, "bases": spans})
    else:
        mine = (table.c.array_id == array_id) & (table.c.number == number)
        connection.execute(sa.update(table).where(mine).values(bases=spans))


def component_of(array_id: int, views: Iterable[ViewRecord]) -> int:
    """The smallest number among the arrays that views join with one, which is where all of them are locked."""
    linked: dict[int, set[int]] = {}
    for view in views:
        for base in (*view.bases, *([] if view.state is None else [view.state])):
            linked.setdefault(view.array_id, set()).add(base)
            linked.setdefault(base, set()).add(view.array_id)
    reached, waiting = {array_id}, [array_id]
    while waiting:
        for other in linked.get(waiting.pop(), ()):
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return min(reached)
