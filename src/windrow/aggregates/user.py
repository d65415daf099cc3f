"""User-defined aggregates: a class of numba-compilable functions becomes an aggregate like any other.

They are registered by the decorator ``wr.aggregate``, or by a package through the entry-point group
``windrow.aggregates``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.definitions import DEFINITIONS, Definition
from windrow.errors import DataError, UnknownNameError, nearest
from windrow.kernels.results import Outcome
from windrow.kernels.sweep import Sweep
from windrow.kernels.user import StateFunctions, user_windows
from windrow.model.schema import check_name
from windrow.model.types import DataType, data_type

_ARGUMENTS = {"empty": 0, "add": 2, "result": 1, "remove": 2, "merge": 2}
_NEEDED = ("empty", "add", "result")


class UserAggregate:
    """A registered aggregate; called with an attribute it gives what ``agg`` takes: ``Spread("a")``."""

    def __init__(self, name: str, functions: StateFunctions, result: DataType) -> None:
        self.name = name
        self.functions = functions
        self.result = result

    def __call__(self, attribute: str) -> Aggregate:
        return Aggregate(self.name, attribute, user=self)

    @property
    def definition(self) -> Definition:
        return Definition(
            self.name,
            "user",
            "ranked",
            lambda _found: self.result,
            _finish,
            mergeable=self.functions.merge is not None,
            removable=self.functions.remove is not None,
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


def aggregate(name: str, result: str = "float64") -> Callable[[type], UserAggregate]:
    """Register a class with ``empty``, ``add``, ``result`` and optionally ``remove`` and ``merge`` as an aggregate."""
    check_name(name, "an aggregate")
    if name.lower() in DEFINITIONS:
        raise DataError("a built-in aggregate has that name", got=repr(name))

    def register(definition: type) -> UserAggregate:
        functions = {key: getattr(definition, key, None) for key in _ARGUMENTS}
        _check(name, functions)
        made = UserAggregate(name, StateFunctions(**functions), data_type(result))  # type: ignore[arg-type]
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


def user_aggregate(name: str) -> UserAggregate:
    """A registered aggregate by name, looking into installed packages if need be."""
    if name.lower() not in REGISTERED:
        for entry in entry_points(group="windrow.aggregates"):
            loaded = entry.load()
            if isinstance(loaded, UserAggregate):
                REGISTERED.setdefault(loaded.name.lower(), loaded)
    if name.lower() not in REGISTERED:
        known = [*DEFINITIONS, *REGISTERED]
        raise UnknownNameError("no such aggregate", got=repr(name), hint=nearest(name.lower(), known))
    return REGISTERED[name.lower()]
