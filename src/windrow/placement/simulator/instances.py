"""Single problems of any size: new chunks on a grid of old ones, each joined with itself and the old ones around it."""

from __future__ import annotations

import math

import numpy as np

from windrow.placement.assignment import assign
from windrow.placement.problem import NOWHERE, Chunks, Pairs, Problem, Rates, ViewChunks, charge_receivers

REACH = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0))
_STATE = 0.3


def draw_instance(pairs: int, nodes: int, seed: int, rates: Rates | None = None, merging: bool = True) -> Problem:
    """About so many pairs, five of six of them with old chunks, on nodes that a hash chooses.

    Each pair changes the view chunk of the new cells and that of the old ones; without ``merging`` there is no view.
    """
    random = np.random.default_rng([seed, pairs, nodes])
    count = max(1, round(pairs / (1 + len(REACH))))
    side = max(2, math.isqrt(2 * count) + 1)
    spot = np.sort(random.choice(side * side, min(count, side * side), replace=False))
    count = len(spot)
    row, column = np.divmod(spot, side)
    left, right = [], []
    for down, across in REACH:
        inside = (row + down >= 0) & (row + down < side) & (column + across >= 0) & (column + across < side)
        left.append(np.flatnonzero(inside))
        right.append((row[inside] + down) * side + column[inside] + across)
    old, place = np.unique(np.concatenate(right), return_inverse=True)
    new = np.concatenate(left) + len(old)
    left_chunk = np.concatenate([new, np.arange(count) + len(old)]).astype(np.int32)
    right_chunk = np.concatenate([place, np.arange(count) + len(old)]).astype(np.int32)
    total = len(old) + count
    grid = np.column_stack(np.divmod(np.arange(side * side), side))
    homes = np.concatenate([assign("hash", grid[old], nodes), np.full(count, NOWHERE)]).astype(np.int32)
    settled = np.concatenate([homes[: len(old)], assign("hash", grid[spot] + side, nodes)]).astype(np.int32)
    chunks = Chunks(np.arange(total), random.lognormal(0.0, 0.5, total) * 1e6, homes, settled)
    charged = rates or charge_receivers(1 / 125e6, 0.1 / 125e6, 0.1 / 125e6)
    if not merging:
        none = np.zeros(0, np.int32)
        listed = Pairs(left_chunk, right_chunk, np.zeros(len(left_chunk) + 1, np.int64), none, np.zeros(0))
        return Problem(
            nodes, chunks, ViewChunks(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), none, none), listed, charged
        )
    seen = np.column_stack([left_chunk, right_chunk])
    kept = np.column_stack([np.ones(len(seen), bool), left_chunk != right_chunk])
    starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64)
    views = ViewChunks(
        np.arange(total), _STATE * np.where(homes == NOWHERE, 0.0, chunks.bytes), _STATE * chunks.bytes, homes, settled
    )
    return Problem(
        nodes,
        chunks,
        views,
        Pairs(left_chunk, right_chunk, starts, seen[kept], 0.5 * _STATE * chunks.bytes[seen[kept]]),
        charged,
    )
