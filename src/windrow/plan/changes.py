"""What changed between two versions of an array, as the rows of a table that a query reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from windrow.errors import SchemaError
from windrow.model.schema import Attribute, Schema
from windrow.model.types import TYPES
from windrow.plan.bound import BoundChanges, BoundNamed, LabelItems
from windrow.plan.nodes import Changes

CHANGE = "change"
"""The column that says whether a row 'left' or 'came'."""

Changed = Callable[[Changes], Any]
"""Reads the table: coordinates, ``change``, attributes."""


def no_changes(plan: Changes) -> Any:
    """For those who read arrays alone."""
    raise SchemaError("what changed between two versions cannot be read here", got=str(plan))


def bind_changes(plan: Changes, before: BoundNamed, after: BoundNamed, changed: Changed) -> BoundChanges:
    """The table of what changed; nothing is read yet."""
    if CHANGE in after.types:
        what = f"array {plan.array} has a column of the name that says what left and what came"
        raise SchemaError(what, got=repr(CHANGE))
    attributes = (Attribute(CHANGE, TYPES["string"]), *after.schema.attributes)
    schema = Schema(after.schema.dimensions, attributes, sparse=True)
    return BoundChanges(
        schema=schema if after.schema.sparse else _with_sparse_chunks(schema),
        box=before.box | after.box,
        labels=_shared_labels(before, after),
        gridding=after.gridding,
        scalar=after.scalar,
        before=before,
        after=after,
        read=lambda: changed(plan),
    )


def _with_sparse_chunks(schema: Schema) -> Schema:
    dimensions = tuple(replace(dimension, chunk=None) for dimension in schema.dimensions)
    return replace(schema, dimensions=dimensions).with_chunks()


def _shared_labels(before: BoundNamed, after: BoundNamed) -> LabelItems:
    """The labels of dimensions along which the one version only goes on where the other ends.

    Elsewhere a cell's number has meant two things, and rows are told by their numbers alone.
    """
    earlier, kept = dict(before.labels), []
    for name, later in after.labels:
        known = earlier.get(name, later)
        short, long = sorted((known, later), key=len)
        if long.slice(0, len(short)).same_values(short):
            kept.append((name, long))
    return tuple(kept)
