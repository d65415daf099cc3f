"""Draw docs/pictures/placement.png: one batch on four nodes, as the baseline joins it and as the planner does."""

from pathlib import Path

import matplotlib
import numpy as np

from windrow.placement import NOWHERE, Options, Plan, Problem, charge_receivers, evaluate, plan_batch
from windrow.placement.plan import chunk_needs
from windrow.placement.problem import make_chunks, make_pairs, make_views

matplotlib.use("Agg")
from matplotlib import pyplot as plt

SIDE, NODES = 6, 4
NEW = [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2), (3, 3), (4, 4)]
COLOURS = ["#3b7ea1", "#d99a2b", "#3b7a57", "#b5473c"]


def make_batch() -> Problem:
    """A grid of old chunks, round robin, and eight new ones, each joined with the five old ones it touches."""
    old = [(row, column) for row in range(SIDE) for column in range(SIDE)]
    homes = [number % NODES for number in range(len(old))]
    pairs = []
    for number, (row, column) in enumerate(NEW):
        for down, across in ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)):
            pairs.append((len(old) + number, old.index((row + down, column + across)), {old.index((row, column)): 0.2}))
    chunks = make_chunks(
        [1.0] * (len(old) + len(NEW)), homes + [NOWHERE] * len(NEW), homes + [i % NODES for i in range(len(NEW))]
    )
    views = make_views([0.3] * len(old), homes, homes, [0.5] * len(old))
    return Problem(NODES, chunks, views, make_pairs(pairs), charge_receivers(1.0, 0.1, 0.1))


def draw_joins(axis: plt.Axes, problem: Problem, plan: Plan, title: str) -> None:
    """Old chunks as squares in the colour of their home, joins as lines in the colour of the node that makes them."""
    for row in range(SIDE):
        for column in range(SIDE):
            home = problem.chunks.homes[row * SIDE + column]
            axis.add_patch(plt.Rectangle((column, row), 0.94, 0.94, color=COLOURS[home], alpha=0.28, linewidth=0))
    for number, (row, column) in enumerate(NEW):
        for pair in np.flatnonzero(problem.pairs.left == SIDE * SIDE + number):
            other = divmod(int(problem.pairs.right[pair]), SIDE)
            colour = COLOURS[plan.joins[pair]]
            if other == (row, column):
                axis.plot(column + 0.47, row + 0.47, "o", markersize=9, color=colour)
            else:
                axis.plot([column + 0.47, other[1] + 0.47], [row + 0.47, other[0] + 0.47], color=colour, linewidth=2.4)
    chunk, node = chunk_needs(problem, plan)
    fetched = int((problem.chunks.homes[chunk] != node).sum())
    axis.set_title(f"{title}: {fetched} chunks are read over the network", fontsize=10)
    axis.set(xlim=(-0.1, SIDE), ylim=(SIDE, -0.1), aspect="equal")
    axis.axis("off")


def draw_loads(axis: plt.Axes, problem: Problem, plan: Plan, highest: float) -> None:
    cost = evaluate(problem, plan)
    for node in range(NODES):
        axis.barh(node + 0.2, cost.receiving[node], 0.38, color=COLOURS[node])
        axis.barh(node - 0.2, cost.computing[node], 0.38, color=COLOURS[node], alpha=0.45)
    axis.axvline(cost.objective, color="black", linewidth=1, linestyle=":")
    axis.annotate(
        f"{cost.objective:.1f}", (cost.objective, NODES - 0.55), (4, 0), textcoords="offset points", fontsize=9
    )
    axis.set(xlim=(0, highest * 1.12), yticks=range(NODES), yticklabels=[f"node {node}" for node in range(NODES)])
    axis.set_xlabel("seconds: receiving (dark), computing (light)", fontsize=9)
    axis.invert_yaxis()
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def main() -> None:
    problem = make_batch()
    plans = {name: plan_batch(problem, name, Options(seconds=float("inf"))).plan for name in ("baseline", "auto")}
    highest = max(evaluate(problem, plan).objective for plan in plans.values())
    figure, axes = plt.subplots(2, 2, figsize=(9, 6.6), height_ratios=(2.4, 1), layout="constrained")
    for column, (name, plan) in enumerate(plans.items()):
        draw_joins(axes[0, column], problem, plan, name)
        draw_loads(axes[1, column], problem, plan, highest)
    figure.savefig(Path(__file__).parents[1] / "docs" / "pictures" / "placement.png", dpi=90)


if __name__ == "__main__":
    main()
