"""Windows of user-defined aggregates, by the best way that the functions given allow.

With ``remove`` one state slides along the sweep axis; with ``merge`` each window unit has a state and two stacks keep
their total; with neither, every window is added up anew. Loops are compiled for each aggregate, around its functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.contract.sweeps import AnySweep

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class StateFunctions:
    """What a user-defined aggregate is made of; the state is a tuple of numbers, or of arrays of bounded size."""

    empty: Callable[[], tuple[Any, ...]]
    add: Callable[[tuple[Any, ...], Any], tuple[Any, ...]]
    result: Callable[[tuple[Any, ...]], Any]
    remove: Callable[[tuple[Any, ...], Any], tuple[Any, ...]] | None = None
    merge: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]] | None = None
    # Names what is compiled of them, in every process that gets a copy.
    token: str = field(default_factory=lambda: uuid4().hex)
    name: str = ""

    @property
    def strategy(self) -> str:
        if self.remove is not None:
            return "add and remove along the sweep axis"
        return "merge window units, two stacks" if self.merge is not None else "add up every window"


_COMPILED: dict[tuple[str, str], Any] = {}


def user_windows(
    functions: StateFunctions,
    values: Array,
    present: npt.NDArray[np.bool_] | None,
    sweeps: Sequence[AnySweep],
    result: np.dtype[Any],
    strategy: str = "auto",
    swept: int | None = None,
) -> tuple[Array, npt.NDArray[np.int64]]:
    """The aggregate in every window, and how many present values each had; ``swept`` forces the axis of the sweep."""
    from windrow.kernels.papers.slide import path_of

    flat = np.ascontiguousarray(values.view(np.int64) if values.dtype.kind == "M" else values).reshape(-1)
    there = np.ones(len(flat), bool) if present is None else np.ascontiguousarray(present).reshape(-1)
    if flat.dtype.kind == "f":
        there = there & ~np.isnan(flat)
    shape = tuple(sweep.count for sweep in sweeps)
    out, counts = np.zeros(shape, result), np.zeros(shape, np.int64)
    loop = _compiled(functions, strategy)
    path = path_of(values.shape, sweeps, swept)
    run_user_loop(functions, loop, flat, there, path, out.reshape(-1), counts.reshape(-1))
    return out, counts


def run_user_loop(functions: StateFunctions, loop: Callable[..., Any], *arguments: Any) -> None:
    """Run a loop around an aggregate's functions; what goes wrong in them is said with the aggregate's name."""
    from windrow.kernels.compiler.jit import CompilationError

    what = f"the user-defined aggregate {functions.name}".rstrip()
    try:
        loop(*arguments)
    except CompilationError as error:
        raise DataError(f"{what} does not compile", got=_reason(error)) from error
    except IndexError as error:
        hint = "Make its state's arrays as large as one window needs, and let remove give places back"
        raise DataError(f"{what} reached beyond an array of its state", got=str(error), hint=hint) from error
    except Exception as error:
        raise DataError(f"{what} failed", got=f"{type(error).__name__}: {error}") from error


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or ["no reason given"])[0][:300]


def _compiled(functions: StateFunctions, strategy: str) -> Any:
    from windrow.kernels.user.loops import state_loop

    key = (functions.token, strategy)
    if key not in _COMPILED:
        _COMPILED[key] = state_loop(functions, strategy)
    return _COMPILED[key]
