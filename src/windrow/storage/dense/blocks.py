"""Writing blocks of dense arrays: the task that a writer hands to workers, and what they hand back."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import icechunk
import numpy as np
import zarr
from zarr.core.sync import sync
from zarr.storage import WrapperStore

from windrow.model.box import Box
from windrow.model.conform import conform
from windrow.model.schema import Attribute, Schema
from windrow.model.source import Blocks, ChangedBlocks, GridSource
from windrow.storage.dense.chunk_writing import write_chunks
from windrow.storage.dense.chunks import layout_obstacle
from windrow.storage.dense.layout import is_time, stored_variable, variables_of
from windrow.storage.dense.repository import PACKAGE
from windrow.storage.dense.snapshots import damaged_chunk
from windrow.storage.failures import store_failures
from windrow.storage.records import ChunkStatistics
from windrow.storage.runtimes import use_runtime

Fork = icechunk.ForkSession | icechunk.Session
"""What a task writes through: in this process the session itself, elsewhere a fork of it."""


@dataclass(frozen=True)
class BlockWrite:
    """A task: write ``box`` from ``source``, whose own coordinates are ``shift`` away, through a session or its fork.

    ``bounds`` are the cells the array has now, which clip its last chunks. Errors name ``title``.
    """

    fork: Fork
    schema: Schema
    bounds: Box
    source: GridSource
    box: Box
    shift: tuple[int, ...]
    title: str = ""


@dataclass(frozen=True)
class BlockReceipt:
    """What a BlockWrite did: its session, to be merged, the metadata of the chunks it wrote, the cells it changed."""

    fork: Fork
    chunks: ChunkStatistics
    cells: int
    boxes: tuple[Box, ...]
    """Where it wrote: no other cell is another one than before."""


class _MeasuringStore(WrapperStore[Any]):
    """Notes the encoded size of every chunk that passes through."""

    def __init__(self, store: Any, sizes: dict[str, int] | None = None) -> None:
        super().__init__(store)
        self.sizes: dict[str, int] = {} if sizes is None else sizes

    def _with_store(self, store: Any) -> _MeasuringStore:
        return _MeasuringStore(store, self.sizes)

    async def set(self, key: str, value: Any) -> None:
        self.sizes[key] = len(value)
        await super().set(key, value)


def write_block(task: BlockWrite) -> BlockReceipt:
    """Write one block; its chunks belong to no other task."""
    blocks = task.source.read(task.box.shift([-s for s in task.shift]))
    use_runtime(PACKAGE)
    store = _MeasuringStore(task.fork.store)
    with store_failures("the array's store"):
        group = zarr.open_group(store, mode="r+", zarr_format=3)
        for attribute in task.schema.attributes:
            if attribute.name in blocks:
                with _name_damage(task, group, attribute):
                    _write_attribute(task, group, attribute, blocks)
    if not blocks:
        return BlockReceipt(task.fork, ChunkStatistics.empty(task.schema.ndim), 0, ())
    _measure_others(task, store, blocks)
    changed = blocks.cells if isinstance(blocks, ChangedBlocks) else task.box.size
    return BlockReceipt(task.fork, _chunk_statistics(task, store.sizes), changed, (task.box,))


@contextmanager
def _name_damage(task: BlockWrite, group: zarr.Group, attribute: Attribute) -> Iterator[None]:
    """A write to part of a chunk reads the rest, and so may find damage."""
    try:
        yield
    except ValueError as error:
        variables = variables_of(attribute)
        grid = task.schema.grid
        touched = [grid.box_of(key) & task.bounds for key in grid.keys_touching(task.box)]
        whole = functools.reduce(Box.__or__, touched)
        found = damaged_chunk(task.title, task.schema, whole, variables, lambda: group)
        raise found or error from error


def _write_attribute(task: BlockWrite, group: zarr.Group, attribute: Attribute, blocks: Blocks) -> None:
    values, valid = conform(blocks[attribute.name], attribute, blocks.get(attribute.companion))
    _write_variable(
        task, stored_variable(group, attribute.name), values.view("int64") if is_time(attribute) else values
    )
    if valid is not None:
        _write_variable(task, stored_variable(group, attribute.companion), valid)


def _write_variable(task: BlockWrite, stored: zarr.Array[Any], values: Any) -> None:
    if layout_obstacle(stored, task.schema.grid.chunk) is None:
        write_chunks(stored, task.schema.grid, task.bounds, task.box, values)
    else:
        stored[task.box.slices(task.schema.lo)] = values


def _measure_others(task: BlockWrite, store: _MeasuringStore, blocks: Blocks) -> None:
    """Add the sizes of what the chunks hold besides the attributes just written."""
    for attribute in task.schema.attributes:
        if attribute.name in blocks:
            continue
        variables = variables_of(attribute)
        for key in task.schema.grid.keys_touching(task.box):
            for variable in variables:
                name = f"{variable}/c/{'/'.join(map(str, key))}"
                if sync(store.exists(name)):
                    store.sizes[name] = sync(store.getsize(name))


def _chunk_statistics(task: BlockWrite, sizes: Mapping[str, int]) -> ChunkStatistics:
    stored: dict[str, int] = {}
    for name, size in sizes.items():
        _, _, key = name.partition("/c/")
        stored[key] = stored.get(key, 0) + size
    grid = task.schema.grid
    keys = list(grid.keys_touching(task.box))
    boxes = [grid.box_of(key) & task.bounds for key in keys]
    return ChunkStatistics(
        np.array([grid.ordinal(key) for key in keys], np.int64),
        np.array([chunk.size for chunk in boxes], np.int64),
        np.array([stored.get("/".join(map(str, key)), 0) for key in keys], np.int64),
        np.array([chunk.lo for chunk in boxes], np.int64).reshape(len(keys), task.schema.ndim),
        np.array([chunk.hi for chunk in boxes], np.int64).reshape(len(keys), task.schema.ndim),
    )
