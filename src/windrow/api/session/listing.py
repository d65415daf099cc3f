"""What can be listed, as tables: arrays, versions, aggregates, functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.api.describe import versions_text

if TYPE_CHECKING:
    from windrow.api.database import Database


def listed(database: Database, kind: str, array: str | None = None) -> pa.Table:
    """One row for each thing of a kind; versions are those of ``array``."""
    if array is not None:
        return _versions(database, array)
    makers: dict[str, Callable[[Database], pa.Table]] = {
        "arrays": _arrays,
        "views": _views,
        "aggregates": _aggregates,
        "functions": _functions,
        "operators": _operators,
    }
    return makers[kind](database)


def _arrays(database: Database) -> pa.Table:
    arrays = database.arrays()
    versions = [array._version() for array in arrays]
    return pa.table(
        {
            "name": pa.array([array.name for array in arrays], pa.string()),
            "kind": pa.array(["sparse" if array.sparse else "dense" for array in arrays], pa.string()),
            "schema": pa.array([str(version.schema) for version in versions], pa.string()),
            "version": pa.array([version.number for version in versions], pa.int64()),
            "cells": pa.array([version.cells for version in versions], pa.int64()),
        }
    )


def _views(database: Database) -> pa.Table:
    views = database.views()
    return pa.table(
        {
            "name": pa.array([view.name for view in views], pa.string()),
            "status": pa.array([view.status for view in views], pa.string()),
            "refreshed": pa.array(["on request" if view.deferred else "by every batch" for view in views], pa.string()),
            "version": pa.array([view.version for view in views], pa.int64()),
            "bases": pa.array([versions_text(view.bases) for view in views], pa.string()),
            "query": pa.array([view.definition for view in views], pa.string()),
        }
    )


def _versions(database: Database, array: str) -> pa.Table:
    versions = database.array(array).versions()
    return pa.table(
        {
            "version": pa.array([version.number for version in versions], pa.int64()),
            "operation": pa.array([version.operation for version in versions], pa.string()),
            "created": pa.array([version.created for version in versions], pa.timestamp("us", tz="UTC")),
            "cells": pa.array([version.cells for version in versions], pa.int64()),
            "bytes": pa.array([version.bytes for version in versions], pa.int64()),
            "batch": pa.array([version.batch for version in versions], pa.string()),
        }
    )


def _aggregates(_database: Database) -> pa.Table:
    from windrow.aggregates.registry import DEFINITIONS, SYNONYMS
    from windrow.aggregates.user import installed_aggregates

    known = {**DEFINITIONS} | {found.name: found.definition for found in installed_aggregates().values()}
    for synonym, name in SYNONYMS.items():
        known[synonym] = replace(DEFINITIONS[name], name=synonym, summary=f"another name of {name}")
    found = [known[name] for name in sorted(known)]
    return pa.table(
        {
            "name": [one.name for one in found],
            "usage": [one.usage() for one in found],
            "gives": [one.summary for one in found],
        }
    )


def _operators(_database: Database) -> pa.Table:
    from windrow.plan.operators import installed_operators

    found = sorted(installed_operators().values(), key=lambda one: one.name)
    return pa.table(
        {
            "name": pa.array([one.name for one in found], pa.string()),
            "usage": pa.array([one.usage for one in found], pa.string()),
            "gives": pa.array([one.summary for one in found], pa.string()),
        }
    )


def _functions(_database: Database) -> pa.Table:
    from windrow.expressions.functions import FUNCTIONS

    names = sorted(FUNCTIONS)
    return pa.table({"name": names, "usage": [FUNCTIONS[name].usage for name in names]})
