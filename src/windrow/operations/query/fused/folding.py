"""Decoded blocks folded into states: straight from the buffer, or tile by tile where something is computed first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.aggregates.folds import COUNT, SQUARES, SUM
from windrow.expressions import tiles
from windrow.expressions.nodes import Column
from windrow.expressions.tiles import tile_truth, tile_values
from windrow.operations.query.fused.geometry import CellLanes, Lanes, lay_lanes
from windrow.operations.query.fused.lending import lend
from windrow.operations.query.fused.pipeline import Pipeline
from windrow.operations.query.fused.states import Kept, State, extreme_arrays

Array = npt.NDArray[Any]
Int64Array = npt.NDArray[np.int64]

ALL_THERE: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)


@dataclass(frozen=True)
class BlockFold:
    """What becomes of a block: the values that are folded, and what is kept of them. It pickles."""

    pipeline: Pipeline
    kept: tuple[Kept, ...]

    def fold(
        self, blocks: Mapping[str, Array], start: Sequence[int], shape: Sequence[int], codes: Sequence[Int64Array],
        states: Sequence[State],
    ) -> None:  # fmt: skip
        """Add the cells of a box in some buffers, by attribute and companion, to the states of their groups."""
        if not self.pipeline.conditions and all(self._is_stored(kept) for kept in self.kept):
            held = next(iter(blocks.values())).shape
            lanes = lay_lanes(held, start, shape, codes)
            for kept, state in zip(self.kept, states, strict=True):
                if kept.argument is not None:
                    values, present = self._stored(kept.argument, blocks)
                    fold_values(values.reshape(-1), present.reshape(-1), lanes, state)
            return
        inside = tuple(slice(lo, lo + extent) for lo, extent in zip(start, shape, strict=True))
        views = {name: values[inside] for name, values in blocks.items()}
        step = max(1, tiles.TILE_CELLS // max(1, math.prod(shape[1:])))
        laid: tuple[tuple[int, ...], Lanes] | None = None
        for first in range(0, shape[0], step):
            tile = {name: view[first : first + step] for name, view in views.items()}
            extents = next(iter(tile.values())).shape
            if laid is None or laid[0] != extents or codes[0].strides != (0,):  # else it is as in the tile before
                own = [codes[0][first : first + step], *codes[1:]]
                laid = extents, lay_lanes(extents, (0,) * len(extents), extents, own)
            self.fold_tile(tile, extents, laid[1], states)

    def _is_stored(self, kept: Kept) -> bool:
        return kept.argument is None or isinstance(self.pipeline.outputs[kept.argument], Column)

    def _stored(self, argument: str, blocks: Mapping[str, Array]) -> tuple[Array, Array]:
        node = self.pipeline.outputs[argument]
        assert isinstance(node, Column)
        attribute = self.pipeline.stored.schema.attribute(node.key)
        return blocks[attribute.name], blocks[attribute.companion] if attribute.has_companion else ALL_THERE

    def fold_tile(
        self, tile: Mapping[str, Array], shape: tuple[int, ...], lanes: Lanes | CellLanes, states: Sequence[State],
        alive: Array = ALL_THERE,
    ) -> None:  # fmt: skip
        """Add cells in blocks of the same shape to the states; where ``alive`` is not empty, those where it is 1."""
        chosen = self.choose_cells(tile, shape, alive)
        for kept, state in zip(self.kept, states, strict=True):
            if kept.argument is None:
                _count_cells(chosen.reshape(-1), math.prod(shape), lanes, state)
                continue
            values, present = self._tile_values(kept.argument, tile, shape)
            if len(chosen):
                present = chosen if not len(present) else chosen & present
            fold_values(values.reshape(-1), present.reshape(-1), lanes, state)

    def values_of(
        self, argument: str, tile: Mapping[str, Array], shape: tuple[int, ...], chosen: Array
    ) -> tuple[Array, Array]:
        """What an argument is at cells, and 1 where it is there and the cell is chosen; empty if all are."""
        values, present = self._tile_values(argument, tile, shape)
        if len(chosen):
            present = chosen if not len(present) else chosen & present
        if values.dtype.kind == "f":
            there = values == values
            if not there.all():
                present = there.view(np.uint8) if not len(present) else there.view(np.uint8) & present
        return values, present

    def choose_cells(self, tile: Mapping[str, Array], shape: tuple[int, ...], alive: Array = ALL_THERE) -> Array:
        """1 for the cells that the conditions choose among those that are alive; empty if all are chosen."""
        chosen: Array = alive.view(np.bool_)
        for condition in self.pipeline.conditions:
            truth = np.broadcast_to(tile_truth(condition, tile), shape)
            chosen = truth if not len(chosen) else chosen & truth
        return np.ascontiguousarray(chosen).view(np.uint8)

    def _tile_values(self, argument: str, tile: Mapping[str, Array], shape: tuple[int, ...]) -> tuple[Array, Array]:
        if isinstance(self.pipeline.outputs[argument], Column):
            values, present = self._stored(argument, tile)
            there = np.ascontiguousarray(present).view(np.uint8) if len(present) else ALL_THERE
            return np.ascontiguousarray(values), there
        values = tile_values(self.pipeline.outputs[argument], tile)
        return np.ascontiguousarray(np.broadcast_to(values, shape), np.float64), ALL_THERE


def _count_cells(chosen: Array, cells: int, lanes: Lanes | CellLanes, state: State) -> None:
    """The cells of a tile that are chosen, all if ``chosen`` is empty."""
    counts = state.arrays["counts"]
    if isinstance(lanes, CellLanes):
        from windrow.kernels.folds.cells import count_cells

        count_cells(lend(chosen), lanes.groups, counts)
        return
    if len(lanes.codes) == 1 and len(lanes.offsets) == 1:
        group = lanes.bases[0] + lanes.codes[0]
        counts[group] += np.count_nonzero(chosen.view(np.bool_)) if len(chosen) else cells
        return
    fold_values(chosen if len(chosen) else np.ones(cells, np.uint8), chosen, lanes, state)


def fold_values(values: Array, present: Array, lanes: Lanes | CellLanes, state: State) -> None:
    """Values of one block into the groups that their lanes name; booleans are numbers."""
    from windrow.kernels.folds.extremes import fold_extremes
    from windrow.kernels.folds.lanes import fold_counts, fold_moments, fold_sums, fold_whole_sums

    kept, arrays = state.kept, state.arrays
    values = values.view(np.uint8) if values.dtype == np.bool_ else values
    values, present = lend(values), lend(present.view(np.uint8))
    if isinstance(lanes, CellLanes):
        if _fold_cells(values, present, lanes, state):
            return
        lanes = lanes.runs
    whole = values.dtype.kind in "iu"
    if SQUARES in kept.operations:
        fold_moments(
            values, present, *lanes.arrays, arrays["counts"], arrays["high"], arrays["low"], arrays["means"],
            arrays["squares"],
        )  # fmt: skip
        if "above" in arrays:
            counted = np.zeros_like(arrays["counts"])  # counted already
            fold_whole_sums(values, present, *lanes.arrays, counted, arrays["above"], arrays["below"])
    elif SUM in kept.operations:
        if whole:
            fold_whole_sums(values, present, *lanes.arrays, arrays["counts"], arrays["high"], arrays["low"])
        else:
            sums = (arrays["counts"], arrays["high"], arrays["low"])
            fold_sums(values, present, *lanes.arrays, lanes.beside, *sums)
    elif COUNT in kept.operations:
        fold_counts(values, present, *lanes.arrays, arrays["counts"])
    for rule in kept.extremes:
        seen, best = extreme_arrays(state, rule)
        bits = values.view(rule.key_dtype)
        fold_extremes(bits, present, *lanes.arrays, rule.infinity, rule.first_bit, rule.flip, seen, best)


def _fold_cells(values: Array, present: Array, lanes: CellLanes, state: State) -> bool:
    """Counts and sums of cells that lie anywhere; False if more than these is kept."""
    from windrow.kernels.folds.cells import sum_cells, sum_whole_cells

    if not state.kept.operations <= {COUNT, SUM} or SUM not in state.kept.operations:
        return False
    add = sum_whole_cells if values.dtype.kind in "iu" else sum_cells
    add(values, present, lanes.groups, *(state.arrays[name] for name in ("counts", "high", "low")))
    return True
