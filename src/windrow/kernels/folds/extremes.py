"""Extremes of groups: values as whole numbers in the same order, so that one loop finds the largest of any type.

The bits of a float, read as a whole number, are in the order of its values once those of negative ones are turned; an
unsigned number once its first bit is; and the smallest value is the largest if all bits are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class KeyRule:
    """How values of a type become keys; the key of what is missing is the lowest number."""

    dtype: np.dtype[Any]
    largest: bool

    @property
    def key_dtype(self) -> np.dtype[Any]:
        return np.dtype(f"i{self.dtype.itemsize}")

    @property
    def flip(self) -> int:
        return 0 if self.largest else -1

    @property
    def first_bit(self) -> int:
        """What turns the first bit of unsigned numbers."""
        return int(np.iinfo(self.key_dtype).min) if self.dtype.kind in "ub" else 0

    @property
    def infinity(self) -> int:
        """The bits of the largest float that is a number; -1 for what is no float."""
        if self.dtype.kind != "f":
            return -1
        return int(np.array(np.inf, self.dtype).view(self.key_dtype))

    @property
    def lowest(self) -> int:
        return int(np.iinfo(self.key_dtype).min)

    def values(self, keys: Array) -> Array:
        """The values that keys stand for; the sign of 0.0 is lost, which else were chance."""
        bits = keys ^ self.key_dtype.type(self.flip)
        if self.dtype.kind == "f":
            turned = bits >> (8 * self.dtype.itemsize - 1) & self.key_dtype.type(np.iinfo(self.key_dtype).max)
            found: Array = (bits ^ turned).view(self.dtype)
            return found + self.dtype.type(0)
        found = (bits ^ self.key_dtype.type(self.first_bit)).view(self.dtype)
        return found


@kernel
def fold_extremes(
    bits: Array, present: Array, offsets: Array, bases: Array, runs: Array, codes: Array,
    infinity: int, first_bit: int, flip: int, seen: Array, best: Array,
) -> None:  # fmt: skip
    """The highest keys of groups; rows and runs are those of ``lanes``."""
    for row in range(len(offsets)):
        for run in range(len(codes)):
            group = bases[row] + codes[run]
            start, stop = offsets[row] + runs[run], offsets[row] + runs[run + 1]
            lowest = best[group]
            if len(present):
                found, count = _highest_present(bits[start:stop], present[start:stop], infinity, first_bit, flip)
                seen[group] |= count > 0
            elif infinity < 0:
                found = _highest_whole(bits[start:stop], first_bit ^ flip)
                seen[group] |= stop > start
            else:
                found, count = _highest_float(bits[start:stop], infinity, flip)
                seen[group] |= count
            best[group] = max(lowest, found)


@inner
def _lowest(bits: Array) -> Any:
    return -(1 << (8 * bits.itemsize - 1))


@inner
def _highest_whole(bits: Array, turn: int) -> Any:
    highest = _lowest(bits)
    for place in range(len(bits)):
        key = bits[place] ^ turn
        highest = key if key > highest else highest
    return highest


@inner
def _highest_float(bits: Array, infinity: int, flip: int) -> tuple[Any, bool]:
    lowest, rest = _lowest(bits), ~_lowest(bits)
    highest = lowest
    shift = 8 * bits.itemsize - 1
    for place in range(len(bits)):
        bit = np.int64(bits[place])
        key = (bit ^ ((bit >> shift) & rest)) ^ flip
        key = key if (bit & rest) <= infinity else lowest
        highest = key if key > highest else highest
    return highest, highest > lowest  # the lowest key is none of a number


@inner
def _highest_present(bits: Array, present: Array, infinity: int, first_bit: int, flip: int) -> tuple[Any, int]:
    lowest, rest = _lowest(bits), ~_lowest(bits)
    highest, count = lowest, 0
    shift = 8 * bits.itemsize - 1
    for place in range(len(bits)):
        bit = np.int64(bits[place])
        there = present[place] != 0
        if infinity >= 0:
            there = there & ((bit & rest) <= infinity)
            key = (bit ^ ((bit >> shift) & rest)) ^ flip
        else:
            key = bit ^ first_bit ^ flip
        count += there
        key = key if there else lowest
        highest = key if key > highest else highest
    return highest, count
