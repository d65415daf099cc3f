"""Shapes by their definitions, one offset at a time: slow, obvious, and what fast code is compared with."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from decimal import Decimal, localcontext

from windrow.model.box import Box
from windrow.model.shape import Norm, OffsetList, OffsetRange, Shape

Offset = tuple[int, ...]


def cells_of(box: Box) -> Iterator[Offset]:
    return itertools.product(*(range(lo, hi + 1) for lo, hi in zip(box.lo, box.hi, strict=True)))


def is_within(norm: Norm, components: list[int]) -> bool:
    """Whether a vector is no longer than a norm allows."""
    x = list(map(abs, components))
    if norm.kind == "L1":
        return sum(x) <= norm.radius
    if norm.kind == "L2":
        return math.sqrt(sum(v * v for v in x)) <= norm.radius
    if norm.kind == "Linf":
        return max(x) <= norm.radius
    if norm.kind == "Hamming":
        return sum(v != 0 for v in x) <= norm.radius
    share, slack = lp_share(norm, tuple(sorted(x)))
    return share <= 1 + slack


@functools.cache
def lp_share(norm: Norm, lengths: tuple[int, ...]) -> tuple[Decimal, Decimal]:
    """What a vector takes of the ball of an Lp norm, to the power of the norm, and by how much it may pass 1.

    Whole powers are exact; only a radius that is the root of the next whole number, but for two units in the last
    place, stands for that root. Other powers are doubles' business: a millionth of a millionth is allowed.
    """
    power, radius = norm.power, norm.radius
    assert power is not None
    if not radius:
        return Decimal(2 if any(lengths) else 0), Decimal(0)
    with localcontext() as context:
        context.prec = 60
        total = sum((_power(float(v), power) for v in lengths if v), Decimal(0))
        ball = _power(radius, power)
        if power == int(power) and (int(radius) + 1) ** int(power) * len(lengths) < 2**62:
            wider = _power(Decimal(radius) + 2 * Decimal(math.ulp(radius)), power)
            is_root = radius != int(radius) and total == int(ball) + 1 and total <= wider
            return total / ball, (wider / ball - 1) if is_root else Decimal(0)
        return total / ball, Decimal(10) ** -12


@functools.cache
def _power(base: float | Decimal, power: float) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return Decimal(base) ** Decimal(power)


def has_offset(shape: Shape, names: tuple[str, ...], offset: Offset, numbering: tuple[str, ...] = ()) -> bool:
    """Whether an offset satisfies every term and is 0 where no term speaks."""
    at = dict(zip(names, offset, strict=True))
    named = set(numbering)
    plain = tuple(name for name in names if name not in numbering)
    for term in shape.terms:
        assert isinstance(term, Norm | OffsetRange | OffsetList)
        on = (term.name,) if isinstance(term, OffsetRange) else plain if term.on is None else term.on
        named |= set(on)
        x = [at[name] for name in on]
        if isinstance(term, OffsetRange):
            good = term.start is None or term.stop is None or term.start <= x[0] <= term.stop
        elif isinstance(term, OffsetList):
            good = tuple(x) in term.offsets
        else:
            good = is_within(term, x)
        if not good:
            return False
    return all(at[name] == 0 for name in names if name not in named)


def are_neighbours(shape: Shape, names: tuple[str, ...], bounds: Box, apart: Offset, furthest: int = 16) -> bool:
    """Whether cells so far apart are neighbours, with periodic dimensions laid out many times."""
    periods = [n if name in shape.wraps else 0 for name, n in zip(names, bounds.shape, strict=True)]
    if shape.excludes_self and all(a % n == 0 if n else a == 0 for a, n in zip(apart, periods, strict=True)):
        return False
    laid = [_turns(furthest, a, n) if n else range(1) for a, n in zip(apart, periods, strict=True)]
    return any(
        has_offset(shape, names, tuple(a + k * n for a, k, n in zip(apart, turn, periods, strict=True)))
        for turn in itertools.product(*laid)
    )


def _turns(furthest: int, apart: int, period: int) -> range:
    """How often a periodic dimension is laid out for all offsets up to the furthest."""
    return range(-((furthest + apart) // period), (furthest - apart) // period + 1)
