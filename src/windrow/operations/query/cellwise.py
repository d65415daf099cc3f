"""Steps of a query that look at one cell at a time, as sources on sources: columns, selections, conditions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.expressions.nodes import Column, Node
from windrow.expressions.tiles import compute_block, tile_obstacle
from windrow.model.arrow import arrow_to_block, arrow_type, block_to_arrow
from windrow.model.box import Box
from windrow.model.schema import Attribute, Schema
from windrow.model.source import Blocks, BoundedCells, ComputedCells
from windrow.model.types import TYPES, DataType
from windrow.operations.query.blocks import ComputedSource, row_bytes
from windrow.operations.query.standing import OnSource
from windrow.plan.bound import LabelItems, NamedNodes
from windrow.storage.cells import cell_fields

COPIES = 4
"""How often a task holds what it reads: as stored, as read, as Arrow columns, as results."""


def needed_columns(nodes: Iterable[Node], schema: Schema) -> tuple[str, ...]:
    """The attributes that expressions read, in the schema's order."""
    keys = {column.key for node in nodes for column in node.columns()}
    return tuple(name for name in schema.attribute_names if name in keys)


def plain_types(schema: Schema) -> dict[str, DataType]:
    """The attributes that expressions on tiles may read: numbers that need no mask beside them."""
    return {a.name: a.type for a in schema.attributes if a.type.is_number and not a.has_companion}


def number_types(schema: Schema) -> dict[str, DataType]:
    """The attributes that conditions on tiles may read: they also see the masks beside numbers."""
    return {a.name: a.type for a in schema.attributes if a.type.is_number}


@dataclass(frozen=True)
class GridColumns(OnSource):
    """Attributes computed from those of a dense source, in a box of it. It pickles."""

    source: ComputedSource
    schema: Schema
    box: Box
    label_items: LabelItems
    outputs: NamedNodes

    def _needed(self, attributes: Iterable[str] | None = None) -> tuple[str, ...]:
        wanted = dict(self.outputs)
        chosen = wanted.values() if attributes is None else [wanted[name] for name in attributes]
        return needed_columns(chosen, self.source.schema)

    def cells_decoded(self, results: Box) -> int:
        return self.source.cells_decoded(results)

    def touched_bytes(self, results: Box, attributes: Iterable[str] | None = None) -> int:
        names = self.schema.attribute_names if attributes is None else tuple(attributes)
        return self.source.touched_bytes(results, self._needed(names)) + results.size * self.schema.bytes_of(names)

    def task_bytes(self, results: Box) -> int:
        computed = any(not isinstance(node, Column) for _, node in self.outputs)
        copies = COPIES if computed else 2
        read = self.source.schema.bytes_of(self._needed())
        return self.source.task_bytes(results) + results.size * copies * (read + self.schema.cell_bytes)

    @cached_property
    def tiled(self) -> tuple[str, ...]:
        """The attributes that are computed on tiles, all of them float64."""
        types = plain_types(self.source.schema)
        return tuple(
            name
            for name, node in self.outputs
            if not _is_stored(node, self.source.schema)
            and self.schema.attribute(name).type == TYPES["float64"]
            and tile_obstacle(node, types) is None
        )

    def read(self, box: Box, attributes: Iterable[str] | None = None, room: Blocks | None = None) -> Blocks:
        """What is computed on tiles is computed in ``room`` where that has an array for it."""
        wanted = dict(self.outputs)
        if attributes is not None:
            wanted = {name: wanted[name] for name in attributes}
        inner = self.source.schema
        blocks = self.source.read(box, needed_columns(wanted.values(), inner))
        columns = GridFrame(inner, box, blocks)
        result: dict[str, Any] = {}
        for name, node in wanted.items():
            attribute = self.schema.attribute(name)
            if isinstance(node, Column) and _is_stored(node, inner):
                result |= _renamed(inner.attribute(node.key), attribute, blocks)
            elif name in self.tiled:
                result[name] = compute_block(node, blocks, box.shape, (room or {}).get(name))
            else:
                result |= _stored(columns.evaluate(node), attribute, box)
        return result


def _is_stored(node: Node, schema: Schema) -> bool:
    return isinstance(node, Column) and node.key in schema.attribute_names


def _renamed(given: Attribute, attribute: Attribute, blocks: Blocks) -> dict[str, Any]:
    found: dict[str, Any] = {attribute.name: blocks[given.name]}
    if attribute.has_companion:
        found[attribute.companion] = blocks[given.companion]
    return found


def _stored(values: pa.Array, attribute: Attribute, box: Box) -> dict[str, Any]:
    """A computed column in the form a dense array keeps it."""
    block, valid = arrow_to_block(values.cast(arrow_type(attribute.type)))
    found: dict[str, Any] = {attribute.name: block.reshape(box.shape)}
    if attribute.has_companion:
        found[attribute.companion] = np.ones(box.shape, bool) if valid is None else valid.reshape(box.shape)
    return found


@dataclass(frozen=True, eq=False)
class GridFrame:
    """The cells of a box as rows on which expressions are evaluated."""

    schema: Schema
    box: Box
    blocks: Blocks

    def column(self, name: str) -> pa.Array:
        if name in self.schema.dimension_names:
            return pa.array(self.places(self.schema.axis(name)))
        attribute = self.schema.attribute(name)
        return block_to_arrow(self.blocks[name], self.blocks.get(attribute.companion))

    def places(self, axis: int) -> Any:
        """The coordinates of all cells along an axis."""
        cells = np.arange(self.box.lo[axis], self.box.hi[axis] + 1, dtype=np.int64)
        shape = [-1 if d == axis else 1 for d in range(self.box.ndim)]
        return np.broadcast_to(cells.reshape(shape), self.box.shape).reshape(-1)

    def evaluate(self, node: Node) -> pa.Array:
        from windrow.expressions.evaluate import evaluate

        return evaluate(node, {column.key: self.column(column.key) for column in node.columns()}, self.box.size)


@dataclass(frozen=True)
class GridCells(OnSource):
    """The cells of a dense source where a condition is true, as sparse data. It pickles."""

    source: ComputedSource
    schema: Schema
    box: Box
    label_items: LabelItems
    condition: Node | None

    def cells_in(self, box: Box) -> int:
        return (box & self.box).size

    def cells_decoded(self, results: Box) -> int:
        inside = results & self.box
        return 0 if inside.is_empty else self.source.cells_decoded(inside)

    def touched_bytes(self, results: Box) -> int:
        return self.cells_decoded(results) * self.source.schema.cell_bytes

    def task_bytes(self, results: Box) -> int:
        inside = results & self.box
        return self.source.task_bytes(inside) + inside.size * COPIES * row_bytes(self.schema)

    def within(self, results: Box) -> GridCells:
        return self

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        inside = self.box if box is None else box & self.box
        chosen = self.schema if attributes is None else self.schema.select(attributes)
        if inside.is_empty:
            return cell_fields(chosen).empty_table()
        inner = self.source.schema
        nodes = [Column(name) for name in chosen.attribute_names]
        names = needed_columns([*nodes, *([] if self.condition is None else [self.condition])], inner)
        frame = GridFrame(inner, inside, self.source.read(inside, names))
        table = pa.table(
            [*(pa.array(frame.places(axis)) for axis in range(inner.ndim)), *map(frame.column, chosen.attribute_names)],
            schema=cell_fields(chosen),
        )
        return table if self.condition is None else table.filter(frame.evaluate(self.condition))


@dataclass(frozen=True)
class CellColumns(OnSource):
    """Attributes computed from those of a sparse source, at its cells in a box where a condition is true."""

    source: ComputedCells
    schema: Schema
    box: Box
    label_items: LabelItems
    outputs: NamedNodes
    condition: Node | None = None

    def cells_in(self, box: Box) -> int:
        inside = box & self.box
        return 0 if inside.is_empty else self.source.cells_in(inside)

    def bounds_in(self, box: Box) -> Box:
        inside = box & self.box
        if inside.is_empty or not isinstance(self.source, BoundedCells):
            return inside
        return self.source.bounds_in(inside)

    def cells_decoded(self, results: Box) -> int:
        inside = results & self.box
        return 0 if inside.is_empty else self.source.cells_decoded(inside)

    def touched_bytes(self, results: Box) -> int:
        return self.cells_decoded(results) * row_bytes(self.source.schema)

    def task_bytes(self, results: Box) -> int:
        inside = results & self.box
        width = row_bytes(self.source.schema) + row_bytes(self.schema)
        return self.source.task_bytes(inside) + COPIES * self.cells_in(inside) * width

    def within(self, results: Box) -> CellColumns:
        return replace(self, source=self.source.within(results & self.box))

    def read(self, box: Box | None = None, attributes: Iterable[str] | None = None) -> pa.Table:
        inside = self.box if box is None else box & self.box
        chosen = self.schema if attributes is None else self.schema.select(attributes)
        if inside.is_empty:
            return cell_fields(chosen).empty_table()
        wanted = [dict(self.outputs)[name] for name in chosen.attribute_names]
        nodes = wanted if self.condition is None else [*wanted, self.condition]
        table = self.source.read(inside, needed_columns(nodes, self.source.schema))
        if self.condition is not None:
            table = table.filter(evaluate_on(self.condition, table))
        fields = cell_fields(chosen)
        values = [evaluate_on(node, table) for node in wanted]
        values = [column.cast(arrow_type(a.type)) for column, a in zip(values, chosen.attributes, strict=True)]
        places = [table.column(name) for name in chosen.dimension_names]
        return pa.table([*places, *values], schema=fields)


def evaluate_on(node: Node, table: pa.Table) -> pa.Array | pa.ChunkedArray:
    """An expression at the cells of a table."""
    if isinstance(node, Column):
        return table.column(node.key)
    from windrow.expressions.evaluate import evaluate

    return evaluate(node, {column.key: table.column(column.key) for column in node.columns()}, table.num_rows)
