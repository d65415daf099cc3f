"""What a new array is to be: its schema from a text, a gridding and labels, checked before anything is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from windrow.errors import SchemaError
from windrow.model.grid import DENSE_PATCHED_CHUNK_BYTES
from windrow.model.gridding import Gridding
from windrow.model.labels import Labels
from windrow.model.notation import parse_schema
from windrow.model.schema import NUMBERING, NUMBERING_MARK, Dimension, Schema, check_name
from windrow.operations.dense.write import check_cells
from windrow.storage.view_rows import HIDDEN

Metadata = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Blueprint:
    """An array that can be made."""

    name: str
    schema: Schema
    labels: Mapping[str, Labels]
    gridding: Gridding | None
    metadata: Metadata


def draw_up(
    name: str,
    schema: str | Schema,
    sparse: bool | None = None,
    labels: Mapping[str, Any] | None = None,
    grid: Mapping[str, object] | Gridding | None = None,
    chunks: Mapping[str, int] | Literal["patched"] | None = None,
    metadata: Metadata | None = None,
) -> Blueprint:
    """The blueprint for an array, or an error that says what is wrong with it."""
    check_name(name, "an array")
    _refuse_hidden(name)
    parsed = _parse(name, schema, sparse if grid is None else True)
    gridding = Gridding.of(grid) if isinstance(grid, Mapping) else grid
    if gridding is not None:
        parsed = _gridded_schema(parsed, gridding)
    for own in (*parsed.dimension_names, *parsed.attribute_names):
        _refuse_hidden(own)
    resolved = _with_chunks(parsed, chunks)
    named = _check_labels(resolved, labels or {})
    _check_metadata(metadata or {})
    if not resolved.sparse:
        check_cells(resolved, tuple(d.lo - 1 if d.hi is None else d.hi for d in resolved.dimensions))
    return Blueprint(name, resolved, named, gridding, metadata or {})


def _with_chunks(schema: Schema, chunks: Mapping[str, int] | str | None) -> Schema:
    if not isinstance(chunks, str):
        return schema.with_chunks(chunks)
    if chunks != "patched":
        raise SchemaError('chunks is a mapping, or "patched"', got=repr(chunks), hint="As in {'i': 100}")
    return schema.with_chunks(chunk_bytes=DENSE_PATCHED_CHUNK_BYTES)


def _refuse_hidden(name: str) -> None:
    if name.startswith(HIDDEN):
        raise SchemaError("names that begin so are windrow's own", got=repr(name), hint=f"Leave {HIDDEN} out")


def _parse(name: str, schema: str | Schema, sparse: bool | None) -> Schema:
    if isinstance(schema, Schema):
        return schema if sparse is None else replace(schema, sparse=sparse)
    stated, parsed = parse_schema(schema, sparse)
    if stated is not None and stated != name:
        raise SchemaError(f"the schema names another array than {name!r}", got=repr(stated))
    return parsed


def _gridded_schema(schema: Schema, gridding: Gridding) -> Schema:
    """The schema with the grid's own dimensions, the exact coordinates, and a number for cells that coincide."""
    dimensions = [
        gridding.axis(d.name).dimension(chunk=d.chunk) if d.name in gridding.names else d for d in schema.dimensions
    ]
    dimensions += [gridding.axis(name).dimension() for name in gridding.names if name not in schema.dimension_names]
    known = [dimension.name for dimension in dimensions]
    numbering = NUMBERING if NUMBERING not in gridding.names else NUMBERING_MARK
    if numbering not in known and not schema.numbering:
        dimensions.append(Dimension(numbering, 0, None))
    attributes = [*schema.attributes]
    attributes += [a for a in gridding.exact_attributes() if a.name not in schema.attribute_names]
    made = Schema(tuple(dimensions), tuple(attributes), sparse=True)
    return made if made.numbering else made.with_numbering(numbering)


def _check_metadata(metadata: Mapping[str, Mapping[str, str]]) -> None:
    if not isinstance(metadata, Mapping) or not all(isinstance(of, Mapping) for of in metadata.values()):
        raise SchemaError(
            "metadata maps attributes to mappings", got=repr(metadata), hint="As in {'a': {'units': 'K'}}"
        )


def _check_labels(schema: Schema, labels: Mapping[str, Any]) -> dict[str, Labels]:
    result = {}
    for name, values in labels.items():
        dimension = schema.dimension(name)
        named = values if isinstance(values, Labels) else Labels.of(values)
        if dimension.extent is None:
            raise SchemaError(
                f"dimension {name} grows: its labels come with the values", hint="Give labels= to append() or write()"
            )
        if len(named) != dimension.extent:
            raise SchemaError(f"dimension {name} has {dimension.extent} cells", got=f"{len(named)} labels")
        result[name] = named
    return result
