"""Planning: which node joins which pair of chunks, and where chunks are at home. Pure functions of numbers."""

from windrow.placement.assignment import ASSIGNMENTS, assign, renumber_homes
from windrow.placement.plan import Cost, Plan, evaluate, lower_bound
from windrow.placement.planner import STRATEGIES, Decision, Options, plan_batch
from windrow.placement.problem import (
    NOWHERE,
    Chunks,
    Pairs,
    Problem,
    Rates,
    ViewChunks,
    charge_both,
    charge_receivers,
    charge_senders,
)

__all__ = [
    "ASSIGNMENTS",
    "NOWHERE",
    "STRATEGIES",
    "Chunks",
    "Cost",
    "Decision",
    "Options",
    "Pairs",
    "Plan",
    "Problem",
    "Rates",
    "ViewChunks",
    "assign",
    "charge_both",
    "charge_receivers",
    "charge_senders",
    "evaluate",
    "lower_bound",
    "plan_batch",
    "renumber_homes",
]
