"""What a view is: a query, the arrays that it reads, and how it is to be kept."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from windrow.aggregates.fingerprint import fingerprint, fingerprint_function
from windrow.aggregates.registry import is_built_in
from windrow.aggregates.user import user_aggregate
from windrow.errors import DataError, SchemaError, nearest
from windrow.language.parser import parse
from windrow.plan.binding import bind
from windrow.plan.bound import Bound, BoundNamed
from windrow.plan.nodes import Changes, Plan, Scan
from windrow.plan.operators import Operated, find_operator
from windrow.plan.rewriting import optimize
from windrow.plan.statements import Query
from windrow.plan.stored_shapes import shape_arrays

Moment = Mapping[str, BoundNamed]
"""The arrays of a view, each as it is or was at some moment."""

CHOICES: Mapping[str, tuple[str, ...]] = {
    "maintain": ("auto", "incremental", "strict", "full"),
    "on_failure": ("refuse", "stale"),
    "store": ("auto", "cells"),
    "strategy": ("auto", "baseline", "differential", "reassign"),
}
PLACEMENT: Mapping[str, float] = {"window": 0, "decay": 0.5, "seed": 0, "budget": 0.5}

_NUMBERS: Mapping[str, str] = {
    "window": "a whole number from 0: so many past batches count",
    "decay": "a number from 0 to 1",
    "seed": "a whole number from 0",
    "budget": "a number of seconds from 0",
}


@dataclass(frozen=True)
class Settings:
    """How a view is to be kept; each is explained in docs/views.md."""

    deferred: bool = False
    chunks: Mapping[str, int] | None = None
    maintain: str = "auto"
    on_failure: str = "refuse"
    store: str = "auto"
    strategy: str = "auto"
    placement: Mapping[str, float] = field(default_factory=lambda: dict(PLACEMENT))

    def __post_init__(self) -> None:
        if not isinstance(self.deferred, bool):
            raise DataError("deferred is true or false", got=repr(self.deferred))
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                hint = f"One of {', '.join(choices)}"
                raise DataError(f"{name} is none of the ways there are", got=repr(value), hint=hint)
        if not isinstance(self.placement, Mapping):
            raise DataError("placement is a mapping", got=repr(self.placement), hint="As in {'window': 5}")
        for name, number in self.placement.items():
            if name not in PLACEMENT:
                raise DataError("no such setting of placement", got=repr(name), hint=nearest(str(name), [*PLACEMENT]))
            if not _is_possible(name, number):
                raise DataError(f"placement's {name} is {_NUMBERS[name]}", got=repr(number))

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        """Settings by name."""
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise DataError("a view has no such setting", got=repr(name), hint=nearest(name, known))
        return cls(**given)

    @classmethod
    def stored(cls, known: Mapping[str, Any]) -> Settings:
        """Those of a view that is there: numbers that an earlier windrow let pass count as not given."""
        numbers = {name: number for name, number in known.get("placement", {}).items() if _is_possible(name, number)}
        return cls(**{**known, "placement": numbers})

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _is_possible(name: str, number: object) -> bool:
    """Whether a setting of placement can have a value."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < math.inf:
        return False
    return number <= 1 if name == "decay" else name == "budget" or number == int(number)


@dataclass(frozen=True)
class Definition:
    """A view's query. ``names`` are the arrays whose changes concern it."""

    plan: Plan

    @classmethod
    @functools.lru_cache(maxsize=256)  # every batch on the arrays of a view asks for it
    def of(cls, text: str) -> Definition:
        """The query that a text says."""
        found = parse(text)
        if not isinstance(found, Query) or found.into is not None:
            raise SchemaError("a view is a query", got=text, hint="As in create array view V as select …")
        if any(isinstance(step, Changes) for step in found.plan.walk()):
            hint = "Keep it with into, which computes it once"
            raise SchemaError("a view follows arrays, and changes(…) stays as it is", got=text, hint=hint)
        return cls(found.plan)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(scan.array for scan in self._scans() if not _is_pinned(scan)))

    @property
    def shape_names(self) -> tuple[str, ...]:
        """The arrays whose cells are shapes."""
        return tuple(dict.fromkeys(scan.array for scan in shape_arrays(self.plan) if not _is_pinned(scan)))

    @property
    def pinned(self) -> tuple[Scan, ...]:
        """Old versions that it reads, which never change."""
        return tuple(dict.fromkeys(scan for scan in self._scans() if _is_pinned(scan)))

    @property
    def pinned_names(self) -> tuple[str, ...]:
        """The arrays of which it reads old versions."""
        return tuple(dict.fromkeys(scan.array for scan in self.pinned))

    def _scans(self) -> Iterable[Scan]:
        yield from (step for step in self.plan.walk() if isinstance(step, Scan))
        yield from shape_arrays(self.plan)

    @property
    def own_aggregates(self) -> tuple[str, ...]:
        """The users' aggregates that it computes."""
        measures = (measure for step in self.plan.walk() for measure in getattr(step, "aggregates", ()))
        return tuple(dict.fromkeys(one.function for one in measures if not is_built_in(one.function)))

    def bind(self, moment: Moment, pinned: Mapping[Scan, BoundNamed]) -> Bound:
        """The query on the arrays as they were at a moment."""
        return optimize(bind(self.plan, lambda scan: pinned[scan] if _is_pinned(scan) else moment[scan.array])).bound


def _is_pinned(scan: Scan) -> bool:
    return scan.version is not None or scan.as_of is not None


def facts_of(definition: Definition, scalar: bool, reduced: Sequence[str]) -> dict[str, Any]:
    """What is kept of a view's query besides its text: what its users' aggregates did when it was built.

    ``reduced`` are the dimensions without which its results are stored.
    """
    return {"scalar": scalar, "fingerprints": _fingerprints(definition), "reduced": list(reduced)}


def _fingerprints(definition: Definition) -> dict[str, str]:
    found = {name: fingerprint(user_aggregate(name)) for name in definition.own_aggregates}
    operators = (step.operator for step in definition.plan.walk() if isinstance(step, Operated))
    return found | {name: fingerprint_function(find_operator(name).function) for name in operators}


def check_fingerprints(view: str, definition: Definition, known: Mapping[str, str]) -> None:
    """Refuse to patch results by another function than the one that made them."""
    for name, found in _fingerprints(definition).items():
        if known.get(name, found) != found:
            raise DataError(
                f"{name} is another function than when the view {view} was built",
                hint=f"Register the one that was used, or compute the view anew: refresh {view} full",
            )
