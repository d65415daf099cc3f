"""The one choice of strategies: each says whether it can do a job and what that would cost; the cheapest does it.

A strategy is data. A chain of them is a tuple, and ``choose`` picks from it, or takes the one that is asked for by
name. What comes back, a ``Choice``, can run and prints as the reason for it. Nothing heavy is imported here, and a
strategy should import what it needs only when it is asked: most calls need one strategy of many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from windrow.errors import DataError, UnknownNameError, nearest

Problem = TypeVar("Problem")
AUTO = "auto"

ALIKE = 20
"""Compiled code is kept on disk; a call that compiles is taken to be the first of this many."""
LOADING = 1e6
"""Nanoseconds. To load compiled code takes 0.4 s once in a process; a call is taken to be one of 400."""


@dataclass(frozen=True)
class Cost:
    """An estimate: nanoseconds of the work, and of what has to be compiled once for all calls alike."""

    nanoseconds: float
    detail: str = ""
    compiling: float = 0.0
    sweep: int | None = None
    """The axis along which a window reuses the one before; None: no axis, or all alike."""


@dataclass(frozen=True)
class Strategy(Generic[Problem]):
    """One way to do a job. ``can`` says why it cannot do a problem, and None if it can."""

    name: str
    summary: str
    can: Callable[[Problem], str | None]
    cost: Callable[[Problem], Cost]
    run: Callable[..., Any]
    start: float = LOADING
    """Nanoseconds before the work begins, whatever the problem: a share of loading code, and of planning.

    Nothing more is asked of a strategy that takes longer to start than another takes for everything.
    """


@dataclass(frozen=True)
class Candidate(Generic[Problem]):
    """A strategy that was looked at: what it would cost, or why it cannot, or neither if it was not worth weighing."""

    strategy: Strategy[Problem]
    cost: Cost | None
    obstacle: str | None = None

    @property
    def total(self) -> float:
        """Nanoseconds of everything that this call would have to pay."""
        if self.cost is None:
            return math.inf
        return self.strategy.start + self.cost.nanoseconds + self.cost.compiling / ALIKE

    @property
    def price(self) -> str:
        """What is estimated, as short text."""
        if self.obstacle is not None:
            return "cannot"
        if self.cost is None:
            return f"over {_time(self.strategy.start)}"
        text = _time(self.cost.nanoseconds)
        if self.strategy.start:
            text += f" + {_time(self.strategy.start)} to start"
        return f"{text} + {_time(self.cost.compiling)} once to compile" if self.cost.compiling else text

    @property
    def about(self) -> str:
        """What it does here, or why it does not."""
        if self.obstacle is not None:
            return self.obstacle
        detail = "" if self.cost is None or not self.cost.detail else f": {self.cost.detail}"
        return self.strategy.summary + detail


@dataclass(frozen=True)
class Choice(Generic[Problem]):
    """What was chosen for a problem; prints with everything that it was chosen from."""

    problem: Problem
    chain: tuple[Strategy[Problem], ...]
    taken: Candidate[Problem]
    weighed: tuple[Candidate[Problem], ...] = ()
    """All candidates; empty if the one that was taken was asked for by name."""

    @property
    def name(self) -> str:
        return self.taken.strategy.name

    @property
    def cost(self) -> Cost:
        assert self.taken.cost is not None
        return self.taken.cost

    @cached_property
    def candidates(self) -> tuple[Candidate[Problem], ...]:
        """The one that was taken, then the others: by what they cost, and last those that cannot."""
        others = [one for one in self.weighed or _weigh(self.chain, self.problem) if one.strategy.name != self.name]
        return (self.taken, *sorted(others, key=_rank))

    @property
    def reason(self) -> str:
        if not self.weighed:
            return "as asked"
        able = sum(one.obstacle is None for one in self.candidates)
        return f"the cheapest of {able}" if able > 1 else "the only one that can"

    def run(self, *work: Any) -> Any:
        return self.taken.strategy.run(self.problem, *work)

    def lines(self) -> list[str]:
        """A line for each candidate: its name, what it would take, and what it does or why it cannot."""
        names = max(len(one.strategy.name) for one in self.candidates)
        prices = max(len(one.price) for one in self.candidates)
        return [f"{one.strategy.name:<{names}}  {one.price:<{prices}}  {one.about}" for one in self.candidates]

    def __str__(self) -> str:
        return "\n".join([f"{self.name}, {self.reason}", *(f"  {line}" for line in self.lines())])


def choose(chain: Sequence[Strategy[Problem]], problem: Problem, name: str = AUTO) -> Choice[Problem]:
    """The cheapest strategy that can, or the one of that name."""
    chain = tuple(chain)
    if name != AUTO:
        return Choice(problem, chain, _forced(chain, problem, name))
    weighed = _weigh(chain, problem)
    best = min(weighed, key=lambda one: one.total)
    if best.cost is None:
        raise DataError(
            "no strategy can do this",
            got="; ".join(f"{one.strategy.name}: {one.obstacle}" for one in weighed),
        )
    return Choice(problem, chain, best, tuple(weighed))


def check_strategy(method: str, strategy: str, known: Iterable[str]) -> None:
    """Refuse names that no chain has, and a strategy beside a method: a method but auto is one already."""
    if strategy == AUTO:
        return
    names = list(known)
    if strategy not in names:
        raise UnknownNameError("no such strategy", got=repr(strategy), hint=nearest(strategy, names))
    if method != AUTO:
        got = f"method={method!r} and strategy={strategy!r}"
        raise DataError("a strategy can be asked for under method auto only", got=got, hint="Give one of the two")


def check_sweep(method: str, strategy: str, sweep: object) -> None:
    """Refuse to force the axis of a sweep where nothing sweeps along one: only the incremental method does."""
    if sweep is not None and (method not in (AUTO, "incremental") or strategy != AUTO):
        got = f"sweep={sweep!r} and " + (f"strategy={strategy!r}" if strategy != AUTO else f"method={method!r}")
        raise DataError("only the incremental method sweeps along one dimension", got=got, hint="Give sweep alone")


def _weigh(chain: Sequence[Strategy[Problem]], problem: Problem) -> list[Candidate[Problem]]:
    """Every strategy of a chain, in its order, but those that could not win any more are not asked for their cost."""
    found: list[Candidate[Problem]] = []
    least = math.inf
    for strategy in chain:
        if strategy.start >= least:
            found.append(Candidate(strategy, None))
            continue
        found.append(_candidate(strategy, problem))
        least = min(least, found[-1].total)
    return found


def _candidate(strategy: Strategy[Problem], problem: Problem) -> Candidate[Problem]:
    obstacle = strategy.can(problem)
    return Candidate(strategy, None if obstacle else strategy.cost(problem), obstacle)


def _forced(chain: Sequence[Strategy[Problem]], problem: Problem, name: str) -> Candidate[Problem]:
    named = [strategy for strategy in chain if strategy.name == name]
    if not named:
        known = [strategy.name for strategy in chain]
        raise UnknownNameError(f"no strategy {name} for {problem}", hint="There are " + ", ".join(known))
    forced = _candidate(named[0], problem)
    if forced.obstacle is not None:
        able = [strategy.name for strategy in chain if strategy.can(problem) is None]
        raise DataError(f"strategy {name} cannot do {problem}: {forced.obstacle}", hint="Can: " + ", ".join(able))
    return forced


def _rank(candidate: Candidate[Any]) -> tuple[bool, float]:
    start = candidate.strategy.start if candidate.cost is None else 0.0
    return candidate.obstacle is not None, candidate.total if candidate.cost is not None else 1e30 + start


def _time(nanoseconds: float) -> str:
    """Nanoseconds in a unit that suits them, with two or three digits."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:,.3g} {unit}"
    return f"{nanoseconds:.0f} ns"
