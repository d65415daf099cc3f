"""Work that nodes cannot hold at once is done in rounds, each an exchange of its own.

A chunk of results belongs to one round with all that is joined for it. What a node keeps is on its disk in the next.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.placement import Decision
from windrow.storage.records import Int64Array
from windrow.views.placed.problem import Planned

ROUND_BYTES = 256 * 2**20
"""Cells and partial states that a node holds at once; while it computes it takes some times as much."""


def cut_rounds(planned: Planned, decision: Decision, limit: int = ROUND_BYTES) -> Int64Array:
    """The round of each chunk of results: neighbours, by their ordinals, are in the same."""
    rounds = np.zeros(len(planned.views), np.int64)
    pending, number = [(0, len(rounds))], 0
    while pending:
        first, last = pending.pop()
        if last - first > 1 and _most_held(planned, decision, first, last) > limit:
            middle = (first + last) // 2
            pending += [(middle, last), (first, middle)]
        else:
            rounds[first:last] = number
            number += 1
    return rounds


def _most_held(planned: Planned, decision: Decision, first: int, last: int) -> float:
    """Bytes that the node holds which holds most, if the results with these numbers are one round."""
    problem, plan = planned.problem, decision.plan
    view = np.searchsorted(planned.views, planned.directions.left)
    pairs = np.unique(planned.pair_of[(view >= first) & (view < last)])
    chunk = np.concatenate([problem.pairs.left[pairs], problem.pairs.right[pairs]]).astype(np.int64)
    node = np.concatenate([plan.joins[pairs], plan.joins[pairs]])
    chunk, node = np.divmod(np.unique(chunk * problem.nodes + node), problem.nodes)
    held = np.bincount(node, problem.chunks.bytes[chunk], problem.nodes)
    return float(np.max([held, _merged(planned, decision, pairs, first, last)]))


def _merged(planned: Planned, decision: Decision, pairs: Int64Array, first: int, last: int) -> npt.NDArray[np.float64]:
    """Bytes of stored results and of partial states at the home of each."""
    problem, plan = planned.problem, decision.plan
    homes = plan.view_homes[first:last]
    stored = np.bincount(homes, problem.views.bytes[first:last], problem.nodes)
    sent = np.isin(problem.pairs.of_state, pairs)
    views = problem.pairs.views[sent]
    mine = (views >= first) & (views < last)
    arriving = np.bincount(plan.view_homes[views[mine]], problem.pairs.states[sent][mine], problem.nodes)
    return np.asarray(stored + arriving, np.float64)
