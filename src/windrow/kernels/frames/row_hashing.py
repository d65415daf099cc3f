"""Spark's hash of rows (xxhash64), column by column: what a column adds to the hashes of the columns before it.

Rows with equal keys are put in order by this hash. Spark works it out where rows are cut, tasks where rows are sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel

Hashes = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

SEED = 42
P1, P2, P3 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
P4, P5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)


@inner
def _rotate(value: Any, bits: Any) -> Any:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@inner
def _mix(value: Any) -> Any:
    value = (value ^ (value >> np.uint64(33))) * P2
    value = (value ^ (value >> np.uint64(29))) * P3
    return value ^ (value >> np.uint64(32))


@inner
def _add_word(found: Any, word: Any) -> Any:
    return _rotate(found ^ (_rotate(word * P2, 31) * P1), 27) * P1 + P4


@inner
def _add_half(found: Any, half: Any) -> Any:
    return _rotate(found ^ (half * P1), 23) * P2 + P3


@kernel
def hash_longs(values: npt.NDArray[np.uint64], present: Flags, hashes: Hashes) -> None:
    """Values of eight bytes; those that are not present leave a hash as it is."""
    for k in range(len(values)):
        if present[k]:
            hashes[k] = _mix(_add_word(hashes[k] + P5 + np.uint64(8), values[k]))


@kernel
def hash_ints(values: npt.NDArray[np.uint32], present: Flags, hashes: Hashes) -> None:
    """The same of values of four bytes."""
    for k in range(len(values)):
        if present[k]:
            hashes[k] = _mix(_add_half(hashes[k] + P5 + np.uint64(4), np.uint64(values[k])))


@kernel
def hash_bytes(data: npt.NDArray[np.uint8], ends: Any, present: Flags, hashes: Hashes) -> None:
    """The same of strings: the ``k``-th is from ``ends[k]`` to before ``ends[k + 1]``."""
    for k in range(len(hashes)):
        if present[k]:
            hashes[k] = _hash_text(data, np.int64(ends[k]), np.int64(ends[k + 1]), hashes[k])


@inner
def _read(data: Any, place: Any, size: Any) -> Any:
    found = np.uint64(0)
    for k in range(size):
        found |= np.uint64(data[place + k]) << np.uint64(8 * k)
    return found


@inner
def _turn(state: Any, word: Any) -> Any:
    return _rotate(state + word * P2, 31) * P1


@inner
def _fold(found: Any, state: Any) -> Any:
    return (found ^ _turn(np.uint64(0), state)) * P1 + P4


@inner
def _hash_text(data: Any, begin: Any, end: Any, seed: Any) -> Any:
    place = begin
    if end - begin >= 32:
        one, two, three, four = seed + P1 + P2, seed + P2, seed, seed - P1
        while place <= end - 32:
            one, two = _turn(one, _read(data, place, 8)), _turn(two, _read(data, place + 8, 8))
            three, four = _turn(three, _read(data, place + 16, 8)), _turn(four, _read(data, place + 24, 8))
            place += 32
        found = _rotate(one, 1) + _rotate(two, 7) + _rotate(three, 12) + _rotate(four, 18)
        found = _fold(_fold(_fold(_fold(found, one), two), three), four)
    else:
        found = seed + P5
    found += np.uint64(end - begin)
    while place <= end - 8:
        found = _add_word(found, _read(data, place, 8))
        place += 8
    if place <= end - 4:
        found = _add_half(found, _read(data, place, 4))
        place += 4
    while place < end:
        found = _rotate(found ^ (np.uint64(data[place]) * P5), 11) * P1
        place += 1
    return _mix(found)
