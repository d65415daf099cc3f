"""Putting the slices of a growing dimension in order that an earlier windrow left at its end, or stored twice."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.execution.engine import Engine
from windrow.model.labels import Labels
from windrow.model.placing import NONE
from windrow.operations.dense.placed import PlacedSource
from windrow.operations.dense.write import block_cells, run_blocks
from windrow.storage.dense.store import DenseStore, Reshape
from windrow.storage.working import WorkingArray


def is_disordered(labels: Labels) -> bool:
    """Whether labels that have an order are not in it. Names have none: text stays as it came."""
    return labels.kind != "string" and len(labels) > 1 and not labels.is_monotonic


def order_of(labels: Labels) -> npt.NDArray[np.int64]:
    """The positions of the labels in their order, ascending unless most of them descend; of twins the last."""
    order = np.argsort(labels.values, stable=True)
    ascending = labels.values[order]
    last = np.append(ascending[1:] != ascending[:-1], True)
    descends = np.count_nonzero(labels.values[1:] < labels.values[:-1]) * 2 > len(labels) - 1
    kept: npt.NDArray[np.int64] = order[last].astype(np.int64)
    return kept[::-1] if descends else kept


def put_in_order(engine: Engine, working: WorkingArray) -> list[str]:
    """Store a dense array anew with the slices of its growing dimensions in order; returns their names."""
    schema, old = working.schema, working.dense()
    places, names = [np.arange(extent) for extent in working.box.shape], []
    for axis in schema.growing:
        name = schema.dimension_names[axis]
        if name in working.labels and is_disordered(working.labels[name]):
            places[axis] = order_of(working.labels[name])
            working.set_labels(name, working.labels[name].take(places[axis]))
            names.append(name)
    if not names:
        return []
    working.hi = tuple(lo + len(found) - 1 for lo, found in zip(schema.lo, places, strict=True))
    store = DenseStore(working.path)
    store.rechunk(schema, working.hi, working.record.metadata)
    store.reshape(Reshape(schema, working.hi, working.hi, {name: working.labels[name] for name in names}))
    working.pointer, working.replaces_all_chunks, working.written_chunks = store.head(), True, []
    nowhere = tuple(np.full(len(found), NONE, np.int64) for found in places)
    source = PlacedSource(old, old, working.box, tuple(places), nowhere, schema.lo, schema.attribute_names)
    executor = engine.choose(2 * working.box.size * schema.cell_bytes)
    blocks = schema.grid.blocks(working.box, block_cells(schema, working.box, executor))
    zero = (0,) * schema.ndim
    run_blocks(executor, working, [(source.narrow(box), box, zero) for box in blocks], f"mending {working.record.name}")
    return names
