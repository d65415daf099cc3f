"""All pairs of places on the sky that are no further apart than an angle.

The sky is cut into bands of declination, at least as high as the angle. A circle meets its own band and the two beside
it, and in them only right ascensions within a half-width that is largest where the band is closest to a pole; a circle
that reaches a pole meets whole bands. That is a join by bands of keys. Places near 0 and 360 degrees are entered once
more on the other side. What is found so is compared by the straight distance of unit vectors, and where this is too
close to tell, by the angle itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import inner, kernel
from windrow.kernels.contract.listing import in_shares
from windrow.kernels.sparse.places import Bands, Int64Array, walk
from windrow.kernels.sparse.sorting import sort_keys

Array = npt.NDArray[Any]
Float64Array = npt.NDArray[np.float64]

_CIRCLE = 1 << 28  # steps of right ascension in keys
_STRIDE = 1 << 30  # of a band: a circle with a circle before it and after it
_MOST_BANDS = 1 << 20
_HEIGHT = 16.0  # of a band, in radii: few circles then meet three bands, and few places in them are too far away
_MARGIN = 1e-9  # by which angles are widened for what rounding may lose
_DOUBT = 4e-15  # of straight distances: below it rounding decides, not the places


class Pairs(NamedTuple):
    """Numbers of left and of right places, and how far apart they are, in degrees."""

    left: Int64Array
    right: Int64Array
    degrees: Float64Array


class _Side(NamedTuple):
    """Places in the order of their keys: their numbers, unit vectors and angles in radians."""

    keys: Int64Array
    numbers: Int64Array
    vectors: Float64Array  # (places, 3)
    angles: Float64Array  # (places, 2)


def sky_pairs(ra: Array, dec: Array, other_ra: Array, other_dec: Array, radius: float) -> Pairs:
    """All pairs at once, in order of their numbers."""
    shares = list(sky_shares(ra, dec, other_ra, other_dec, radius))
    nothing = Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    left, right, degrees = (np.concatenate(parts) for parts in zip(nothing, *shares, strict=True))
    order = sort_keys(right, max(1, len(other_ra)).bit_length())[1]
    order = order[sort_keys(left[order], max(1, len(ra)).bit_length())[1]]
    return Pairs(left[order], right[order], degrees[order])


def sky_shares(ra: Array, dec: Array, other_ra: Array, other_dec: Array, radius: float) -> Iterator[Pairs]:
    """Some pairs at a time, in no order, as many as memory should hold. Places that are NaN are near to nothing."""
    count = int(min(_MOST_BANDS, max(1.0, 180.0 // max(radius * _HEIGHT, 1e-300))))
    widths = _half_widths(count, radius)
    left = _side(ra, dec, count, None)
    right = _side(other_ra, other_dec, count, widths)
    band = left.keys // _STRIDE
    whole = widths[band] >= _CIRCLE // 2
    base = band * _STRIDE + _CIRCLE
    near = np.where(whole, base, left.keys - widths[band])
    far = np.where(whole, base + _CIRCLE - 1, left.keys + widths[band])
    offsets = np.arange(-1, 2) * _STRIDE
    limits = math.radians(radius), 4.0 * math.sin(math.radians(min(radius, 180.0)) / 2.0) ** 2
    for block in walk(right.keys, Bands(near, far, offsets, offsets)):
        sizes = np.subtract(block.stops, block.starts, dtype=np.int64).sum(0)
        for begin, end in in_shares(sizes):
            own = slice(block.begin + begin, block.begin + end)
            some = left.numbers[own], left.vectors[own], left.angles[own]
            places = block.starts[:, begin:end], block.stops[:, begin:end]
            room = int(sizes[begin:end].sum())
            pairs = Pairs(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
            found = _within(*places, *some, right.numbers, right.vectors, right.angles, *limits, *pairs)
            if found:
                yield Pairs(*(part[:found] for part in pairs))


def _half_widths(count: int, radius: float) -> Int64Array:
    """How far in right ascension the circles around the places of each band reach, in steps of keys."""
    edges = np.linspace(-90.0, 90.0, count + 1)
    steepest = np.maximum(np.abs(edges[:-1]), np.abs(edges[1:])) + _MARGIN
    reaches_pole = steepest + radius * (1.0 + _MARGIN) >= 90.0 - _MARGIN
    cosine = np.cos(np.radians(np.where(reaches_pole, 0.0, steepest)))
    sine = np.sin(np.radians(min(radius, 90.0)))
    width = np.degrees(np.arcsin(np.minimum(1.0, sine / cosine))) * (1.0 + _MARGIN) + _MARGIN
    steps = np.ceil(width / 360.0 * _CIRCLE).astype(np.int64) + 1
    return np.where(reaches_pole, _CIRCLE // 2, np.minimum(steps, _CIRCLE // 2))


def _side(ra: Array, dec: Array, count: int, widths: Int64Array | None) -> _Side:
    """Places in order; with half-widths, those close to 0 and 360 degrees also on the other side."""
    ra, dec = np.ascontiguousarray(ra, np.float64), np.ascontiguousarray(dec, np.float64)
    reach = np.full(count, -1, np.int64)
    if widths is not None:
        beside = np.pad(widths, 1, mode="edge")
        reach = np.maximum(widths, np.maximum(beside[:-2], beside[2:]))
    entries = _entries(ra, dec, reach, np.empty(0, np.int64), np.empty(0, np.int64))
    keys, numbers = np.empty(entries, np.int64), np.empty(entries, np.int64)
    _entries(ra, dec, reach, keys, numbers)
    keys, order = sort_keys(keys, (count * _STRIDE).bit_length())
    numbers = numbers[order]
    angles = _angles(ra, dec, numbers)
    return _Side(keys, numbers, _vectors(angles), angles)


@inner
def _turned(ra: float) -> float:
    """A right ascension from 0 to 360 degrees; a division takes longer than all else that is done to a place."""
    return ra if 0.0 <= ra < 360.0 else ra % 360.0


@kernel
def _entries(ra: Array, dec: Array, reach: Array, keys: Array, numbers: Array) -> int:
    """Keys and numbers of places, those within reach of 0 and 360 degrees twice; how many, if there is no room yet."""
    count, kept, entered = len(reach), len(keys) > 0, 0
    for number in range(len(ra)):
        if not (math.isfinite(ra[number]) and math.isfinite(dec[number])):
            continue
        step = min(np.int64(_turned(ra[number]) / 360.0 * _CIRCLE), np.int64(_CIRCLE - 1))
        band = min(max(np.int64((dec[number] + 90.0) / 180.0 * count), np.int64(0)), np.int64(count - 1))
        key = band * _STRIDE + _CIRCLE + step
        for turn, is_near in ((0, True), (1, step <= reach[band]), (-1, step >= _CIRCLE - reach[band])):
            if is_near:
                if kept:
                    keys[entered], numbers[entered] = key + turn * _CIRCLE, number
                entered += 1
    return entered


@kernel
def _angles(ra: Array, dec: Array, numbers: Array) -> Array:
    """The angles of places in radians."""
    angles = np.empty((len(numbers), 2))
    for place in range(len(numbers)):
        number = np.uint64(numbers[place])
        angles[place, 0], angles[place, 1] = math.radians(_turned(ra[number])), math.radians(dec[number])
    return angles


@kernel
def _vectors(angles: Array) -> Array:
    vectors = np.empty((len(angles), 3))
    for place in range(len(angles)):
        east, north = angles[place, 0], angles[place, 1]
        across = math.cos(north)
        vectors[place, 0], vectors[place, 1] = across * math.cos(east), across * math.sin(east)
        vectors[place, 2] = math.sin(north)
    return vectors


@inner
def _separation(east: float, north: float, other_east: float, other_north: float) -> float:
    """The angle between two directions in Vincenty's form, right to the last digits for all of them."""
    turned = other_east - east
    sine, cosine = math.sin(north), math.cos(north)
    other_sine, other_cosine = math.sin(other_north), math.cos(other_north)
    one = other_cosine * math.sin(turned)
    two = cosine * other_sine - sine * other_cosine * math.cos(turned)
    return math.atan2(math.hypot(one, two), sine * other_sine + cosine * other_cosine * math.cos(turned))


@kernel
def _within(
    starts: Array, stops: Array, numbers: Array, vectors: Array, angles: Array, other_numbers: Array,
    other_vectors: Array, other_angles: Array, radius: float, limit: float, left: Array, right: Array, degrees: Array,
) -> int:  # fmt: skip
    """Keep the pairs whose squared straight distance is within the limit; how many there are."""
    doubt = _DOUBT * math.sqrt(limit) + 1e-30
    found = 0
    for cell in range(len(numbers)):
        x, y, z = vectors[cell, 0], vectors[cell, 1], vectors[cell, 2]
        for run in range(len(starts)):
            for place in range(np.uint64(starts[run, cell]), np.uint64(stops[run, cell])):
                one, two, three = other_vectors[place, 0] - x, other_vectors[place, 1] - y, other_vectors[place, 2] - z
                distance = one * one + two * two + three * three
                if distance > limit + doubt:
                    continue
                angle = _separation(angles[cell, 0], angles[cell, 1], other_angles[place, 0], other_angles[place, 1])
                if distance < limit - doubt or angle <= radius:
                    left[found], right[found] = numbers[cell], other_numbers[place]
                    degrees[found] = math.degrees(angle)
                    found += 1
    return found
