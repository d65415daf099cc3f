"""Dense data from memory and from cells, as GridSources that a writer can be given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.errors import DataError, UnknownNameError, nearest
from windrow.model.arrow import arrow_to_block, arrow_type, block_to_arrow
from windrow.model.box import Box
from windrow.model.conform import conform
from windrow.model.labels import Labels
from windrow.model.schema import Attribute, Dimension, Schema
from windrow.model.source import Blocks, ChangedBlocks, GridSource
from windrow.storage.cells import coordinates
from windrow.storage.dense.snapshots import DenseSnapshot

if TYPE_CHECKING:
    from windrow.expressions.nodes import Node


@dataclass(frozen=True)
class MemorySource:
    """NumPy arrays, one per attribute, whose first cell is ``schema.lo``."""

    schema: Schema
    blocks: Blocks

    @property
    def labels(self) -> Mapping[str, Labels]:
        return {}

    def read(self, box: Box) -> Blocks:
        return {name: values[box.slices(self.schema.lo)] for name, values in self.blocks.items()}

    def narrow(self, box: Box) -> MemorySource:
        """The part of it that a task needs, so that no more travels to a worker."""
        ends = zip(self.schema.dimensions, box.lo, box.hi, strict=True)
        dimensions = tuple(Dimension(d.name, lo, hi, hi - lo + 1) for d, lo, hi in ends)
        return MemorySource(Schema(dimensions, self.schema.attributes), self.read(box))


def narrowed(source: GridSource, box: Box) -> GridSource:
    return source.narrow(box) if isinstance(source, MemorySource) else source


def memory_source(target: Schema, blocks: Mapping[str, Any]) -> MemorySource:
    """Arrays given by a user for a dense array, checked for names and shapes."""
    arrays: dict[str, Any] = {}
    known = {a.name: a for a in target.attributes} | {a.companion: a for a in target.attributes if a.has_companion}
    for name, values in blocks.items():
        if name not in known:
            raise UnknownNameError("no such attribute", got=repr(name), hint=nearest(name, known))
        arrays[name] = unnamed_values(name, values, target)
    if not any(name in target.attribute_names for name in arrays):
        raise DataError("there is nothing to write", hint="Give a mapping of attribute names to arrays")
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) > 1:
        raise DataError("the attributes' arrays have different shapes", got=shapes, hint="Give all the same box")
    shape = next(iter(shapes.values()))
    if 0 in shape:
        raise DataError("there is nothing to write", got=f"values of shape {shape}", hint="Give at least one cell")
    written = tuple(attribute for attribute in target.attributes if attribute.name in arrays)
    for attribute in written:
        conform(arrays[attribute.name][(slice(0, 1),) * len(shape)], attribute)  # a wrong type fails before any work
    dimensions = tuple(Dimension(d.name, 0, size - 1, size) for d, size in zip(target.dimensions, shape, strict=True))
    return MemorySource(Schema(dimensions, written), arrays)


def unnamed_values(name: str, values: Any, target: Schema) -> Any:
    """An attribute's values whose dimensions are those of the array, in its order."""
    try:
        array = values if isinstance(values, np.ndarray) else np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"the values of attribute {name} are no array", got=error, hint="Give a NumPy array") from None
    if array.ndim != target.ndim:
        raise DataError(
            f"the array has {target.ndim} dimensions",
            got=f"values of shape {array.shape}",
            hint="Give values of as many dimensions, of length 1 where there is one cell",
        )
    return array


@dataclass(frozen=True)
class UpdatedSource:
    """A dense array after an update: ``assignments`` evaluated wherever ``condition`` holds."""

    snapshot: DenseSnapshot
    assignments: tuple[tuple[str, Node], ...]
    condition: Node | None

    @property
    def schema(self) -> Schema:
        return self.snapshot.schema.select([name for name, _ in self.assignments])

    @property
    def labels(self) -> Mapping[str, Labels]:
        return {}

    def read(self, box: Box) -> Blocks:
        """The changed attributes, or nothing at all where no cell satisfies the condition."""
        from windrow.expressions.evaluate import evaluate

        schema = self.snapshot.growing_schema
        blocks = self.snapshot.read(box)
        columns = _block_columns(schema, box, blocks)
        chosen = np.ones(box.size, bool)
        if self.condition is not None:
            chosen = _mask(evaluate(self.condition, columns, box.size))
            if not chosen.any():
                return {}
            columns = {name: column.filter(pa.array(chosen)) for name, column in columns.items()}
        count = int(chosen.sum())
        changed: dict[str, Any] = {}
        for name, expression in self.assignments:
            result = evaluate(expression, columns, count)
            changed |= _scattered(schema.attribute(name), blocks, result, chosen, box)
        return ChangedBlocks(changed, count)


def _block_columns(schema: Schema, box: Box, blocks: Blocks) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    for axis, name in enumerate(schema.dimension_names):
        cells = np.arange(box.lo[axis], box.hi[axis] + 1, dtype=np.int64)
        shape = [-1 if d == axis else 1 for d in range(schema.ndim)]
        columns[name] = pa.array(np.broadcast_to(cells.reshape(shape), box.shape).reshape(-1))
    for attribute in schema.attributes:
        columns[attribute.name] = block_to_arrow(blocks[attribute.name], blocks.get(attribute.companion))
    return columns


def _mask(condition: pa.Array) -> Any:
    """Where a three-valued condition is true."""
    return condition.fill_null(False).to_numpy(zero_copy_only=False)


def _scattered(attribute: Attribute, blocks: Blocks, result: pa.Array, chosen: Any, box: Box) -> dict[str, Any]:
    values, valid = arrow_to_block(assigned(result, attribute))
    values, valid = conform(values, attribute, valid)
    target = np.array(blocks[attribute.name]).reshape(-1)
    target[chosen] = values
    changed = {attribute.name: target.reshape(box.shape)}
    if attribute.has_companion:
        present = np.array(blocks[attribute.companion]).reshape(-1)
        present[chosen] = valid
        changed[attribute.companion] = present.reshape(box.shape)
    return changed


def assigned(result: pa.Array, attribute: Attribute) -> pa.Array:
    """An expression's result as it can be stored in an attribute: whole numbers may go into integers."""
    if pa.types.is_null(result.type):
        return result.cast(arrow_type(attribute.type))
    if attribute.type.is_integer and pa.types.is_floating(result.type):
        try:
            return result.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(
                f"values do not fit attribute {attribute.name} of type {attribute.type}",
                got=str(error),
                hint="Use round(), floor() or a cast",
            ) from None
    return result


@dataclass(frozen=True)
class ScatterSource:
    """A dense array with some of its cells replaced by the rows of a table."""

    snapshot: DenseSnapshot
    cells: pa.Table

    @property
    def schema(self) -> Schema:
        return self.snapshot.schema

    @property
    def labels(self) -> Mapping[str, Labels]:
        return {}

    def read(self, box: Box) -> Blocks:
        schema = self.snapshot.growing_schema
        at = coordinates(self.cells, schema)
        inside = np.ones(self.cells.num_rows, bool)
        for column, lo, hi in zip(at, box.lo, box.hi, strict=True):
            inside &= (column >= lo) & (column <= hi)
        index = tuple(column[inside] - lo for column, lo in zip(at, box.lo, strict=True))
        # Cells beyond the stored end of a growing dimension are not there to be read yet.
        stored = box & self.snapshot.box
        changed: dict[str, Any] = {}
        for attribute in schema.attributes:
            old = self.snapshot.read(stored, [attribute.name]) if not stored.is_empty else {}
            values, valid = arrow_to_block(self.cells.column(attribute.name).filter(pa.array(inside)))
            values, valid = conform(values, attribute, valid)
            block = np.full(box.shape, attribute.type.fill, attribute.type.dtype)
            present = np.zeros(box.shape, bool)
            if old:
                block[stored.slices(box.lo)] = old[attribute.name]
                if attribute.has_companion:
                    present[stored.slices(box.lo)] = old[attribute.companion]
            block[index] = values
            changed[attribute.name] = block
            if attribute.has_companion:
                present[index] = valid
                changed[attribute.companion] = present
        return ChangedBlocks(changed, int(inside.sum()))
