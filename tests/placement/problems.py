"""Random problems of placement, and the objective counted one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from windrow.placement import NOWHERE, Plan, Problem, Rates
from windrow.placement.problem import make_chunks, make_pairs, make_views


@st.composite
def problems(draw: st.DrawFn, most_nodes: int = 5, most_pairs: int = 14) -> Problem:
    """Few chunks, sizes with zeros and ties, homes and none, chunks with old and new cells, pairs of one chunk."""
    nodes = draw(st.integers(1, most_nodes))
    count, view_count = draw(st.integers(1, 7)), draw(st.integers(0, 4))
    node = st.integers(0, nodes - 1)
    size = st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.5, 7.0])
    home = st.one_of(st.just(NOWHERE), node)
    drawn = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    # Old and new cells make two entries of a key, never three.
    keys = [key if drawn[:i].count(key) < 2 else 100 + i for i, key in enumerate(drawn)]
    chunks = make_chunks(
        draw(st.lists(size, min_size=count, max_size=count)),
        draw(st.lists(home, min_size=count, max_size=count)),
        draw(st.lists(node, min_size=count, max_size=count)),
        keys,
    )
    views = make_views(
        draw(st.lists(size, min_size=view_count, max_size=view_count)),
        draw(st.lists(home, min_size=view_count, max_size=view_count)),
        draw(st.lists(node, min_size=view_count, max_size=view_count)),
        draw(st.lists(st.sampled_from([0.5, 2.0, 4.0, np.inf]), min_size=view_count, max_size=view_count)),
    )
    every = [(a, b) for a in range(count) for b in range(a, count)]
    chosen = draw(st.lists(st.sampled_from(every), unique=True, max_size=most_pairs))
    changed = st.dictionaries(st.integers(0, view_count - 1), size, max_size=3) if view_count else st.just({})
    pairs = make_pairs([(*draw(st.permutations(pair)), draw(changed)) for pair in chosen])
    seconds = st.sampled_from([0.0, 0.1, 1.0])
    return Problem(nodes, chunks, views, pairs, Rates(draw(seconds), draw(seconds), draw(seconds), draw(seconds)))


@st.composite
def plans(draw: st.DrawFn, problem: Problem) -> Plan:
    node = st.integers(0, problem.nodes - 1)

    def nodes(count: int) -> np.ndarray:
        return np.array(draw(st.lists(node, min_size=count, max_size=count)), np.int32)

    homes = nodes(problem.group_count)[problem.groups] if len(problem.chunks) else nodes(0)
    return Plan(nodes(len(problem.pairs)), homes, nodes(len(problem.views)))


def count_objective(problem: Problem, plan: Plan) -> float:
    """The objective from its definition, with sets and loops: the slow twin of ``evaluate``."""
    received, sent, computed = ([0.0] * problem.nodes for _ in range(3))
    chunks, views, pairs = problem.chunks, problem.views, problem.pairs
    needed = {(chunk, int(plan.homes[chunk])) for chunk in range(len(chunks))}
    partial: dict[tuple[int, int], float] = {}
    for pair, node in enumerate(plan.joins.tolist()):
        sides = {int(pairs.left[pair]), int(pairs.right[pair])}
        needed |= {(chunk, node) for chunk in sides}
        computed[node] += problem.rates.join * sum(chunks.bytes[chunk] for chunk in sides)
        for entry in range(pairs.starts[pair], pairs.starts[pair + 1]):
            key = int(pairs.views[entry]), node
            partial[key] = partial.get(key, 0.0) + pairs.states[entry]
    moves = [(int(chunks.homes[chunk]), node, chunks.bytes[chunk]) for chunk, node in needed]
    for (view, node), amount in partial.items():
        merged, home = min(amount, views.most[view]), int(plan.view_homes[view])
        computed[home] += problem.rates.merge * merged
        moves.append((node, home, merged))
    moves += [
        (int(before), int(now), size)
        for before, now, size in zip(views.homes, plan.view_homes, views.bytes, strict=True)
        if before != NOWHERE
    ]
    for start, end, size in moves:
        if start != end:
            received[end] += problem.rates.receive * size
            if start != NOWHERE:
                sent[start] += problem.rates.send * size
    return max(received + sent + computed)
