"""Leaves of a search tree: a few values side by side in ascending order, changed as whole vectors.

A value moves in or out without a branch: every place looks at itself and at its neighbour. Places behind the last value
hold the highest value of the type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from windrow.kernels.compiler.vectors import (
    load_vector,
    moved,
    pointer_to,
    step,
    store_vector,
    vector_bytes,
    vector_type,
)

LEAF = 32
_WHOLE = ir.IntType(32)


def limits(dtype: Any) -> tuple[Any, Any]:
    """The lowest and the highest value of a type."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return -np.inf, np.inf
    return int(np.iinfo(kind).min), int(np.iinfo(kind).max)


@step
def insert_value(typing: Any, values: Any, place: Any, value: Any) -> Any:
    """Put a value into the leaf at ``values[place]``, which must have room for it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        leaf = _Leaf(context, builder, signature.args[0], args[0], args[1])
        leaf.store(leaf.inserted(leaf.loaded(), leaf.spread(args[2])))
        return context.get_dummy_value()

    return types.void(values, place, values.dtype), generate


@step
def remove_value(typing: Any, values: Any, place: Any, value: Any) -> Any:
    """Take a value that is there out of the leaf at ``values[place]``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        leaf = _Leaf(context, builder, signature.args[0], args[0], args[1])
        leaf.store(leaf.removed(leaf.loaded(), leaf.spread(args[2])))
        return context.get_dummy_value()

    return types.void(values, place, values.dtype), generate


@step
def exchange_values(typing: Any, values: Any, place: Any, gone: Any, value: Any) -> Any:
    """Take one value that is there out of the leaf at ``values[place]``, and put another in."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        leaf = _Leaf(context, builder, signature.args[0], args[0], args[1])
        kept = leaf.removed(leaf.loaded(), leaf.spread(args[2]))
        leaf.store(leaf.inserted(kept, leaf.spread(args[3])))
        return context.get_dummy_value()

    return types.void(values, place, values.dtype, values.dtype), generate


class _Leaf:
    """A leaf in vector registers."""

    def __init__(self, context: Any, builder: Any, array_type: Any, array: Any, place: Any) -> None:
        self.builder, self.kind = builder, array_type.dtype
        self.vector = vector_type(context, array_type, vector_bytes())
        self.places = [
            pointer_to(context, builder, array_type, array, moved(builder, place, shift))
            for shift in range(0, LEAF, self.vector.count)
        ]

    def loaded(self) -> list[Any]:
        return [load_vector(self.builder, place, self.vector) for place in self.places]

    def store(self, parts: list[Any]) -> None:
        for place, part in zip(self.places, parts, strict=True):
            store_vector(self.builder, part, place)

    def spread(self, value: Any) -> Any:
        """One value in every lane."""
        nothing = ir.Constant(self.vector, ir.Undefined)
        one = self.builder.insert_element(nothing, value, _WHOLE(0))
        return self.builder.shuffle_vector(one, one, self._lanes(lambda lane: 0))

    def inserted(self, parts: list[Any], value: Any) -> list[Any]:
        """Each place keeps what is below the value, and else takes the larger of the value and its left neighbour."""
        before = [self._limit(0), *parts[:-1]]
        result = []
        for left, part in zip(before, parts, strict=True):
            neighbour = self.builder.shuffle_vector(left, part, self._lanes(lambda lane: self.vector.count - 1 + lane))
            smaller = self.builder.select(self._less(part, value), part, value)
            result.append(self.builder.select(self._less(smaller, neighbour), neighbour, smaller))
        return result

    def removed(self, parts: list[Any], value: Any) -> list[Any]:
        """Each place keeps what is below the value, and else takes its right neighbour."""
        after = [*parts[1:], self._limit(1)]
        result = []
        for part, right in zip(parts, after, strict=True):
            neighbour = self.builder.shuffle_vector(part, right, self._lanes(lambda lane: lane + 1))
            result.append(self.builder.select(self._less(part, value), part, neighbour))
        return result

    def _lanes(self, number: Callable[[int], int]) -> Any:
        count = self.vector.count
        return ir.Constant(ir.VectorType(_WHOLE, count), [number(lane) for lane in range(count)])

    def _limit(self, side: int) -> Any:
        return ir.Constant(self.vector, [limits(str(self.kind))[side]] * self.vector.count)

    def _less(self, one: Any, other: Any) -> Any:
        if isinstance(self.kind, types.Float):
            return self.builder.fcmp_ordered("<", one, other)
        compare = self.builder.icmp_signed if self.kind.signed else self.builder.icmp_unsigned
        return compare("<", one, other)
