"""What can be listed, as tables: arrays, versions, aggregates, functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

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


def _views(_database: Database) -> pa.Table:
    return pa.table({"name": pa.array([], pa.string()), "query": pa.array([], pa.string())})


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
    from windrow.aggregates.user import REGISTERED
    from windrow.plan.specs import PARAMETERS

    usages = {name: f"{name}(x)" if given is None else f"{name}(x, {given})" for name, given in PARAMETERS.items()}
    usages |= {found.name: f"{found.name}(x)" for found in REGISTERED.values()}
    names = sorted(usages)
    return pa.table({"name": names, "usage": [usages[name] for name in names]})


def _functions(_database: Database) -> pa.Table:
    from windrow.expressions.functions import FUNCTIONS

    names = sorted(FUNCTIONS)
    return pa.table({"name": names, "usage": [FUNCTIONS[name].usage for name in names]})
