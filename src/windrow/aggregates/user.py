"""User-defined aggregates: a class of numba-compilable functions becomes an aggregate like any other.

They are registered by the decorator ``wr.aggregate``, or by a package through the entry-point group
``windrow.aggregates``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.definition import Definition
from windrow.aggregates.plugins import AGGREGATES, load_plugins, refuse_broken
from windrow.aggregates.registry import DEFINITIONS, SYNONYMS, is_built_in
from windrow.aggregates.rounding import OF_USER
from windrow.errors import DataError, UnknownNameError, nearest
from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.contract.sweeps import Sweep
from windrow.kernels.user.windows import StateFunctions, user_windows
from windrow.model.schema import check_name
from windrow.model.types import DataType, data_type

_ARGUMENTS = {"empty": 0, "add": 2, "result": 1, "remove": 2, "merge": 2}
_NEEDED = ("empty", "add", "result")


class UserAggregate:
    """A registered aggregate; called with an attribute it gives what ``agg`` takes: ``Spread("a")``."""

    def __init__(self, name: str, functions: StateFunctions, result: DataType, exact_remove: bool = False) -> None:
        self.name = name
        self.functions = functions
        self.result = result
        self.exact_remove = exact_remove

    def __call__(self, attribute: str) -> Aggregate:
        return Aggregate(self.name, attribute, user=self)

    @property
    def definition(self) -> Definition:
        return Definition(
            self.name,
            f"a user's own: {self.functions.strategy}",
            ("ranked",),
            lambda _found: self.result,
            operation="user",
            finish=_finish,
            rounding=OF_USER,
        )

    def check(self, found: DataType) -> None:
        """Compile it for a type and try it on two cells, so that what cannot work fails before any work."""
        sample = np.ones(2, found.dtype)
        user_windows(self.functions, sample, None, [Sweep(0, 2, -1, 0)], self.result.dtype)

    def __repr__(self) -> str:
        return f"<windrow aggregate {self.name}: {self.functions.strategy}, gives {self.result}>"


def _finish(outcome: Outcome, _found: DataType) -> Any:
    return outcome.exact


REGISTERED: dict[str, UserAggregate] = {}


def aggregate(name: str, result: str = "float64", exact_remove: bool = False) -> Callable[[type], UserAggregate]:
    """Register a class with ``empty``, ``add``, ``result`` and optionally ``remove`` and ``merge`` as an aggregate.

    ``exact_remove`` says that ``remove`` undoes ``add`` exactly, in whatever order values come and go: then views keep
    the state, and need not look at all values of a cell again.
    """
    check_name(name, "an aggregate")
    if is_built_in(name):
        raise DataError("a built-in aggregate has that name", got=repr(name))

    def register(definition: type) -> UserAggregate:
        functions = {key: getattr(definition, key, None) for key in _ARGUMENTS}
        _check(name, functions)
        if exact_remove and functions["remove"] is None:
            raise DataError(f"aggregate {name} lacks the function remove", hint="exact_remove says that it is exact")
        made = UserAggregate(name, StateFunctions(**functions, name=name), data_type(result), exact_remove)  # type: ignore[arg-type]
        REGISTERED[name.lower()] = made
        return made

    return register


def _check(name: str, functions: dict[str, Any]) -> None:
    for key, arguments in _ARGUMENTS.items():
        function = functions[key]
        if function is None:
            if key in _NEEDED:
                raise DataError(f"aggregate {name} lacks the function {key}", hint="It needs empty, add and result")
            continue
        if not callable(function) or len(inspect.signature(function).parameters) != arguments:
            raise DataError(f"aggregate {name}: {key} must be a function of {arguments} arguments", got=repr(function))


def installed_aggregates() -> dict[str, UserAggregate]:
    """All that users and installed packages registered."""
    for loaded in load_plugins(AGGREGATES, UserAggregate).found:
        REGISTERED.setdefault(loaded.name.lower(), loaded)
    return REGISTERED


def user_aggregate(name: str) -> UserAggregate:
    """A registered aggregate by name, looking into installed packages if need be."""
    if name.lower() not in REGISTERED and name.lower() not in installed_aggregates():
        refuse_broken(AGGREGATES, UserAggregate, name)
        known = [*DEFINITIONS, *SYNONYMS, *REGISTERED]
        raise UnknownNameError("no such aggregate", got=repr(name), hint=nearest(name.lower(), known))
    return REGISTERED[name.lower()]
