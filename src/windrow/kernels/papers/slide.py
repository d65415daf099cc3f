"""The papers' loop: a base window moves along one axis, window unit by window unit (000 §3.1, 001 §3.3, 002 §3).

What is remembered of a window is a *structure*: a named tuple whose type says what happens when a unit enters or
leaves. Every structure is moved by this one loop, compiled for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import BARE, bare, overload
from windrow.kernels.contract.geometry import Geometry, geometry, sweep_axis
from windrow.kernels.contract.sweeps import AnySweep

Array = npt.NDArray[Any]
Function = Callable[..., Any]


class Unit(NamedTuple):
    """One window unit: its present cells are ``flat[start + offset]`` where ``there`` says so."""

    flat: Array
    there: npt.NDArray[np.bool_]
    offsets: npt.NDArray[np.int64]
    start: int


class Results(NamedTuple):
    """What answers are written to, flat."""

    reals: npt.NDArray[np.float64]
    exact: Array
    counts: npt.NDArray[np.int64]


class Path(NamedTuple):
    """Where windows move: along ``axis``, in a compute round for each place of the other axes."""

    place: Geometry
    axis: int
    offsets: npt.NDArray[np.int64]  # room for the cells of a unit


def path_of(shape: Sequence[int], sweeps: Sequence[AnySweep], forced: int | None = None) -> Path:
    """The path along the axis with the widest window (002 §4.3), or along the one that is forced."""
    axis = sweep_axis(shape, sweeps) if forced is None else forced
    widths = [min(extent, sweep.width) for extent, sweep in zip(shape, sweeps, strict=True)]
    cells = math.prod(max(0, width) for other, width in enumerate(widths) if other != axis)
    return Path(geometry(shape, sweeps), axis, np.zeros(max(1, cells), np.int64))


_FUNCTIONS: dict[type, dict[str, Function]] = {}


def structure(
    kind: type,
    *,
    enter: Function,
    leave: Function,
    answer: Function,
    exchange: Function | None = None,
    forget: Function | None = None,
) -> None:
    """Say what a structure does: ``enter(structure, unit)``, ``leave(structure, unit)`` of the oldest unit, and
    ``answer(structure, results, at)``.

    If it can do better than that, ``exchange(structure, gone, unit)`` does both, and ``forget(structure, oldest,
    stride, units)`` lets all units leave, which lie at that distance from one another.
    """
    _FUNCTIONS[kind] = {
        "enter_unit": enter,
        "leave_unit": leave,
        "answer_at": answer,
        "exchange_units": exchange or _one_by_one,
        "forget_units": forget or _one_after_the_other,
    }


def _one_by_one(structure: Any, gone: Unit, unit: Unit) -> None:
    leave_unit(structure, gone)
    enter_unit(structure, unit)


def _one_after_the_other(structure: Any, oldest: Unit, stride: int, units: int) -> None:
    for number in range(units):
        leave_unit(structure, Unit(oldest.flat, oldest.there, oldest.offsets, oldest.start + number * stride))


def enter_unit(structure: Any, unit: Unit) -> None: ...


def leave_unit(structure: Any, unit: Unit) -> None: ...


def answer_at(structure: Any, results: Results, at: int) -> None: ...


def exchange_units(structure: Any, gone: Unit, unit: Unit) -> None: ...


def forget_units(structure: Any, oldest: Unit, stride: int, units: int) -> None: ...


# How each of these is compiled depends on the structure's type.
def _of(name: str) -> Function:
    def function_of(structure: Any, *_arguments: Any) -> Function:
        return _FUNCTIONS[structure.instance_class][name]

    return function_of


for _generic in (enter_unit, leave_unit, answer_at, exchange_units, forget_units):
    overload(_generic, strict=False, jit_options={"forceinline": True, **BARE})(_of(_generic.__name__))


def slide(structure: Any, flat: Array, there: Array, path: Path, results: Results) -> None:
    """Move a structure along all rounds of a path; compiled by each module that has one."""
    place, axis = path.place, path.axis
    stride = place.stride[axis]
    rounds, apart = round_count(place, axis)
    for round_ in range(rounds):
        output, cells = cross_section(path, round_)
        offsets = path.offsets[:cells]
        entered = left = np.int64(0)
        for k in range(place.outputs[axis]):
            first, last = place.lo[axis, k], place.hi[axis, k]
            if first > entered:
                forget_units(structure, Unit(flat, there, offsets, left * stride), stride, entered - left)
                entered = left = first
            while left < first and entered <= last:
                gone, unit = Unit(flat, there, offsets, left * stride), Unit(flat, there, offsets, entered * stride)
                exchange_units(structure, gone, unit)
                left += 1
                entered += 1
            while left < first:
                leave_unit(structure, Unit(flat, there, offsets, left * stride))
                left += 1
            while entered <= last:
                enter_unit(structure, Unit(flat, there, offsets, entered * stride))
                entered += 1
            answer_at(structure, results, output + k * apart)
        forget_units(structure, Unit(flat, there, offsets, left * stride), stride, entered - left)


@bare
def round_count(place: Geometry, axis: int) -> tuple[Any, Any]:
    """How many compute rounds there are, and how far apart a round's outputs lie."""
    rounds = np.int64(1)
    apart = np.int64(1)
    for other in range(len(place.outputs)):
        if other != axis:
            rounds *= place.outputs[other]
        if other > axis:
            apart *= place.outputs[other]
    return rounds, apart


@bare
def cross_section(path: Path, round_: int) -> tuple[Any, Any]:
    """Lay out the cells of a round's units; the round's first output, and how many cells a unit has."""
    place, offsets = path.place, path.offsets
    output = np.int64(0)
    cells = apart = np.int64(1)
    offsets[0] = 0
    for axis in range(len(place.outputs) - 1, -1, -1):
        if axis != path.axis:
            index = round_ % place.outputs[axis]
            round_ //= place.outputs[axis]
            output += index * apart
            lo, hi = place.lo[axis, index], place.hi[axis, index]
            for layer in range(hi - lo, -1, -1):
                for cell in range(cells):
                    offsets[layer * cells + cell] = offsets[cell] + (lo + layer) * place.stride[axis]
            cells *= max(hi - lo + 1, 0)
        apart *= place.outputs[axis]
    return output, cells
