"""Shapes that are stored as arrays: their cells are read, and become lists of offsets, when a query is bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from windrow.errors import SchemaError, UnknownNameError
from windrow.model.offset_runs import MOST_OFFSETS
from windrow.model.schema import Schema
from windrow.model.shape import Shape
from windrow.model.shape_terms import StoredOffsets
from windrow.plan.bound import BoundNamed, BoundScan
from windrow.plan.nodes import Neighbours, Plan, Scan, SimilarityJoin

Lookup = Callable[[Scan], BoundNamed]

_NORMS = {
    "l1": "L1(1)",
    "l2": "L2(2.5)",
    "linf": "Linf(2)",
    "lp": "Lp(3, 2.5)",
    "hamming": "Hamming(1)",
    "sky": "Sky('10 arcsec') on (ra, dec)",
}


def shape_arrays(plan: Plan) -> Iterator[Scan]:
    """The arrays whose cells are shapes of a query."""
    for step in plan.walk():
        if isinstance(step, (Neighbours, SimilarityJoin)):
            yield from map(_scan, step.shape.stored)


def unknown_shape(scan: Scan, error: UnknownNameError) -> UnknownNameError:
    """What to say of a shape that is no array: most likely it is a norm without its radius."""
    usage = _NORMS.get(scan.array.lower())
    if usage is None or scan.version is not None:
        return error
    return UnknownNameError("a norm needs its radius", got=repr(scan.array), hint=f"As in {usage}")


def listed_shape(shape: Shape, schema: Schema, lookup: Lookup) -> Shape:
    """The shape with the offsets that arrays hold, on the dimensions of an array of this schema."""
    if not shape.stored:
        return shape
    found = {name: _checked(name, lookup(_scan(name))) for name in shape.stored}
    placed = [
        replace(term, on=_dimensions(term, found[term.array].schema, schema))
        if isinstance(term, StoredOffsets)
        else term
        for term in shape.terms
    ]
    return replace(shape, terms=tuple(placed)).with_offsets({name: _cells(scan) for name, scan in found.items()})


def _scan(name: str) -> Scan:
    array, _, version = name.partition("@")
    return Scan(array, int(version) if version else None)


def _checked(name: str, scan: BoundNamed) -> BoundScan:
    if not scan.schema.sparse:
        hint = "Its cells are the offsets, so make it with create sparse array"
        raise SchemaError("a shape is stored as a sparse array", got=f"{name}, which is dense", hint=hint)
    if not isinstance(scan, BoundScan):
        hint = "Make the view with store = cells"
        raise SchemaError("a shape is stored cell by cell", got=f"{name}, a view with results of positions", hint=hint)
    if scan.cells is not None and scan.cells > MOST_OFFSETS:
        raise SchemaError(f"the shape {name} has too many offsets to list", got=f"{scan.cells:,}", hint="Use a norm")
    return scan


def _names(schema: Schema) -> tuple[str, ...]:
    return tuple(dimension.name for dimension in schema.dimensions if not dimension.numbering)


def _dimensions(term: StoredOffsets, stored: Schema, schema: Schema) -> tuple[str, ...] | None:
    """The dimensions that a stored array's stand for: those stated, those of the same names, or all in order."""
    names = _names(stored)
    if term.on is not None and len(term.on) != len(names):
        got, hint = f"on ({', '.join(term.on)})", f"Its dimensions are {', '.join(names)}"
        raise SchemaError(f"the shape {term.array} has {len(names)} dimensions", got=got, hint=hint)
    if term.on is not None:
        return term.on
    if set(names) <= set(schema.dimension_names):
        return names
    if len(names) not in (schema.ndim, len(_names(schema))):
        known, got = ", ".join(_names(schema)), ", ".join(names)
        hint = f"Say which they stand for, as in with shape {term.array} on (…); the array has {known}"
        raise SchemaError(f"the dimensions of the shape {term.array} are others than the array's", got=got, hint=hint)
    return None


def _cells(scan: BoundScan) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    table = scan.snapshot.read(None, ())
    columns = [table.column(name).to_numpy() for name in _names(scan.schema)]
    return np.column_stack(columns).astype(np.int64)
