"""Which way rows come to the tasks that work out their frames: the cheapest that can, and why.

What must be known of the rows is looked at only when a way asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

from windrow.dataframes.blocks import BLOCK_ROWS
from windrow.dataframes.exact_route import route_exact
from windrow.dataframes.in_place_route import carries_on, place_rows, route_in_place, stays_put
from windrow.dataframes.order import Halo, PartitionLook, are_in_order, halos, look, open_looks
from windrow.dataframes.rows import SortedRows
from windrow.dataframes.sampled_route import Sampled, needs_others, prepare_sampled, route_sampled
from windrow.dataframes.sessions import SparkPlan, collect_rows, collect_table, column_named, spark_plan
from windrow.dataframes.spec import PLACE, TableAggregate
from windrow.dataframes.table_plan import HALO_BYTES, Route, TablePlan, row_bytes
from windrow.kernels.choose import AUTO, Choice, Cost, Strategy, choose
from windrow.kernels.frames.strategies import CHAINS

PEEK_ROWS = 1000
"""The first rows, which mostly tell at once that rows are in no order."""
SMALL_BYTES = 16 * 2**20
HELD_ROWS = 5_000_000
"""Rows of a Spark partition that a task may hold until it has seen all of them."""
SAMPLED, EXACT = "sampled", "exact"
"""Routes that can be asked for by name; the one in place depends on where rows are."""
_OWN_BYTES = 4 * 8
"""Of what windrow adds to a row on its way."""


@dataclass(eq=False)
class RouteProblem:
    """Rows whose frames are asked for, and what is found out about them."""

    plan: TablePlan

    def __str__(self) -> str:
        return "these frames"

    @cached_property
    def spark_plan(self) -> SparkPlan:
        return spark_plan(self.plan.rows)

    @cached_property
    def stays(self) -> bool:
        """Whether rows could stay where they are, if they were in order."""
        can_stay = not self.plan.task.is_unbounded or carries_on(self.plan.task)
        return self.plan.shuffle == AUTO and can_stay and stays_put(self.spark_plan.physical)

    @property
    def is_small(self) -> bool:
        """Whether a look at all rows costs no more than the job that looks at the first."""
        return self.spark_plan.size is not None and self.spark_plan.size <= SMALL_BYTES

    @cached_property
    def looks(self) -> list[PartitionLook]:
        """One look at all keys, and at the rows that neighbours may need if rows could stay."""
        task = self.plan.task
        wanted = task.needed if self.stays else [PLACE, *(key.column for key in task.keys)]
        seen = place_rows(self.plan).select([column_named(name) for name in dict.fromkeys(wanted)])
        rows = collect_rows(
            seen.mapInArrow(partial(look, task, self.stays), "seen binary"), "looking at the order of the rows"
        )
        return [one for one in open_looks(rows) if one.rows]

    @cached_property
    def begins_in_order(self) -> bool:
        task = self.plan.task
        if not task.keys:
            return True
        keys = self.plan.rows.select([column_named(name) for name in dict.fromkeys(key.column for key in task.keys)])
        first = collect_table(keys.limit(PEEK_ROWS), "looking at the first rows")
        return SortedRows(first.combine_chunks(), task.partition, task.order).in_order

    @cached_property
    def held(self) -> dict[int, Halo] | str:
        """What each Spark partition needs of its neighbours, or why rows cannot stay where they are."""
        plan = self.plan
        if plan.task.is_unbounded and not carries_on(plan.task):
            return "frames are unbounded"
        if plan.shuffle != AUTO:
            return f"shuffle={plan.shuffle!r} moves rows in any case"
        if not self.stays:
            return "Spark may divide the rows otherwise when they are read again"
        if not self.is_small and not self.begins_in_order:
            return "rows are not in order"
        # Spark numbers all partitions of a small local table alike.
        if len({one.place for one in self.looks}) < len(self.looks) or not are_in_order(plan.task, self.looks):
            return "rows are not in order"
        found = {} if any(one.too_long for one in self.looks) else halos(plan.task, self.looks)
        if len(found) < len(self.looks) or sum(halo.size for halo in found.values()) > HALO_BYTES:
            return "frames reach too many rows of neighbours"
        if plan.task.is_unbounded and any(halo.neighbours for halo in found.values()):
            return "frames are unbounded, and some reach single rows of neighbours"
        if plan.task.holds_all and max((halo.rows for halo in found.values()), default=0) > HELD_ROWS:
            return "frames are unbounded, and partitions have too many rows to be held"
        return found

    @cached_property
    def rows(self) -> int:
        if "looks" in self.__dict__ or needs_others(self.plan.task) is not None or self.plan.shuffle == EXACT:
            return sum(one.rows for one in self.looks)
        found = collect_rows(self.plan.rows.selectExpr("count(*)"), "counting the rows")
        return int(found[0][0])

    @cached_property
    def sampled(self) -> Sampled:
        return prepare_sampled(self.plan, self.rows)


def _stay(problem: RouteProblem) -> str | None:
    return problem.held if isinstance(problem.held, str) else None


def _sample(problem: RouteProblem) -> str | None:
    obstacle = needs_others(problem.plan.task)
    if obstacle is not None:
        return obstacle
    return "rows can stay where they are" if _stay(problem) is None else problem.sampled.obstacle


def _run_in_place(problem: RouteProblem) -> Route:
    assert isinstance(problem.held, dict)
    return route_in_place(problem.plan, problem.held)


def _run_exact(problem: RouteProblem) -> Route:
    return route_exact(problem.plan, problem.looks) if problem.looks else route_in_place(problem.plan, {})


ROUTES: tuple[Strategy[RouteProblem], ...] = (
    Strategy(
        "in place", "rows are in order already, and stay where they are", can=_stay,
        cost=lambda problem: Cost(170.0 * problem.rows), run=_run_in_place, start=0,
    ),
    Strategy(
        SAMPLED, "rows are cut by a sample of their keys, sent to their tasks once and sorted there", can=_sample,
        cost=lambda problem: Cost(380.0 * problem.rows), run=lambda problem: route_sampled(
            problem.plan, problem.rows, problem.sampled
        ), start=3e8,
    ),
    Strategy(
        EXACT, "slices of the order are counted, rows sent to all tasks that need them and sorted by Spark",
        can=lambda problem: None, cost=lambda problem: Cost(1600.0 * problem.rows), run=_run_exact, start=5e8,
    ),
)  # fmt: skip
"""Nanoseconds a row are those of ten million rows of two columns on two workers."""


def plan_route(plan: TablePlan) -> Route:
    """Look at the keys, and choose; the result is worked out when it is read."""
    choice: Choice[RouteProblem] = choose(
        ROUTES, RouteProblem(plan), plan.shuffle if plan.shuffle in (SAMPLED, EXACT) else AUTO
    )
    found: Route = choice.run()
    return replace(found, choice=choice)


def estimate_memory(route: Route) -> int:
    """About how many bytes a task needs: rows as they came, sorted, and as they go."""
    rows = route.largest if route.whole else min(route.largest, 2 * BLOCK_ROWS + route.neighbours)
    return 3 * (row_bytes(route.result.schema) + _OWN_BYTES) * rows


def describe_route(plan: TablePlan, route: Route, frame: str, words: Mapping[str, str]) -> str:
    """A route in words, what it was chosen from, and what tasks will choose from.

    ``words`` are for columns that nobody asked for by name.
    """
    assert route.choice is not None
    lines = [
        f"Frames of {route.rows:,} rows: {frame}",
        f"  route       {route.choice.name}, {route.choice.reason}",
        *(f"    {line}" for line in route.choice.lines()),
        f"  tasks       {route.tasks:,}",
        f"  neighbours  {route.neighbours:,} rows that tasks look at beside their own",
        f"  memory      about {estimate_memory(route) / 2**20:,.0f} MB a task beside Spark's own",
    ]
    lines += [f"  {words.get(item.output, item.output):<10}  {_strategies(item)}" for item in plan.task.aggregates]
    return "\n".join(lines)


def _strategies(item: TableAggregate) -> str:
    """What an aggregate is computed by: tasks choose once they see their rows."""
    aggregate = f"{item.aggregate.name}: "
    found = item.aggregate.definition
    operation = found.operation
    if item.method != AUTO:
        return f"{aggregate}method {item.method}, as asked"
    if item.aggregate.user is not None:
        return f"{aggregate}by the functions that it has: {item.aggregate.user.functions.strategy}"
    if found.counts or found.ordered:
        return f"{aggregate}from the bounds of frames alone"
    if operation not in CHAINS:
        return f"{aggregate}made of {', '.join(dict.fromkeys(found.made_of))}, each the cheapest way for a task's rows"
    if item.strategy != AUTO:
        return f"{aggregate}{item.strategy}, as asked"
    names = ", ".join(strategy.name for strategy in CHAINS[operation])
    return f"{aggregate}the cheapest for a task's rows of {names}"
