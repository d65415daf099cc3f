"""Steps on slots for windows with missing cells and for results, as LLVM vector code; see ``vectors``.

``like`` is an array whose type says how many lanes a slot has; counts and ranks are int32 whatever that type is.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from windrow.kernels.compiler.vectors import (
    SLOT_BYTES,
    any_set,
    cgutils,
    load_vector,
    moved,
    pointer_to,
    registers,
    step,
    store_vector,
    vector_type,
)

# Counts of missing cells are kept with the count of those replaced by -inf above this bit.
LOW_BIT = 16
_WHOLE = ir.IntType(32)


def _slot(context: Any, builder: Any, array_type: Any, array: Any, place: Any, lanes: int, shift: int = 0) -> Any:
    """``lanes`` items at ``array[place + shift]``."""
    vector = ir.VectorType(context.get_value_type(array_type.dtype), lanes)
    return load_vector(builder, pointer_to(context, builder, array_type, array, moved(builder, place, shift)), vector)


def _put(context: Any, builder: Any, array_type: Any, array: Any, place: Any, value: Any, shift: int = 0) -> None:
    store_vector(builder, value, pointer_to(context, builder, array_type, array, moved(builder, place, shift)))


def _lanes(context: Any, like_type: Any) -> int:
    return int(vector_type(context, like_type, SLOT_BYTES).count)


def _all(value: Any, lanes: int) -> Any:
    """A constant in every lane."""
    return ir.Constant(ir.VectorType(value.type, lanes), [value.constant] * lanes)


def _spread(builder: Any, value: Any, lanes: int) -> Any:
    """A number known at run time in every lane."""
    one = builder.insert_element(ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined), value, _WHOLE(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_WHOLE, lanes), [0] * lanes))


@step
def replace_slot(typing: Any, work: Any, place: Any, phase: Any, column: Any, share: Any, codes: Any) -> Any:
    """Replace NaN in the slot ``work[place]`` by -inf, for ``share`` of them, or +inf; count them in ``codes[column]``.

    ``phase[column]`` carries on from slot to slot what each lane has not yet given to -inf. ``share`` has work's type.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        work_type, _, phase_type, _, _, codes_type = signature.args
        work, place, phase, column, share, codes = args
        for shift, vector in registers(context, work_type):
            value = _slot(context, builder, work_type, work, place, vector.count, shift)
            owed = _slot(context, builder, phase_type, phase, column, vector.count, shift)
            value, owed, code = _replaced(builder, value, owed, share)
            _put(context, builder, work_type, work, place, value, shift)
            _put(context, builder, phase_type, phase, column, owed, shift)
            _put(context, builder, codes_type, codes, column, code, shift)
        return context.get_dummy_value()

    return types.void(work, place, phase, column, share, codes), generate


def _replaced(builder: Any, value: Any, owed: Any, share: Any) -> tuple[Any, Any, Any]:
    """Values without NaN, what is owed to -inf now, and counts."""
    lanes, item = value.type.count, value.type.element
    zero, one, high, low = (_all(ir.Constant(item, x), lanes) for x in (0.0, 1.0, float("inf"), float("-inf")))
    missing = builder.fcmp_unordered("uno", value, value)
    owed = builder.fadd(owed, builder.select(missing, _spread(builder, share, lanes), zero))
    due = builder.fcmp_ordered(">=", owed, one)
    owed = builder.fsub(owed, builder.select(due, one, zero))
    # Adding 0.0 changes nothing that matters, and keeps LLVM from a masked store, which is slow on some machines.
    value = builder.fadd(builder.select(missing, builder.select(due, low, high), value), zero)
    none, single, paid = (_all(_WHOLE(x), lanes) for x in (0, 1, 1 << LOW_BIT))
    code = builder.add(builder.select(missing, single, none), builder.select(due, paid, none))
    return value, owed, code


@step
def add_slots(typing: Any, like: Any, sums: Any, place: Any, one: Any, first: Any, other: Any, second: Any) -> Any:
    """``sums[place] = one[first] + other[second]``, slots of int32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = _lanes(context, signature.args[0])
        left, right = (_slot(context, builder, signature.args[k], args[k], args[k + 1], lanes) for k in (3, 5))
        _put(context, builder, signature.args[1], args[1], args[2], builder.add(left, right))
        return context.get_dummy_value()

    return types.void(like, sums, place, one, first, other, second), generate


@step
def subtract_slots(typing: Any, like: Any, sums: Any, place: Any, totals: Any, after: Any, before: Any) -> Any:
    """``sums[place] = totals[after] - totals[before]``, slots of int32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = _lanes(context, signature.args[0])
        high, low = (_slot(context, builder, signature.args[3], args[3], args[k], lanes) for k in (4, 5))
        _put(context, builder, signature.args[1], args[1], args[2], builder.sub(high, low))
        return context.get_dummy_value()

    return types.void(like, sums, place, totals, after, before), generate


@step
def pick_slot(
    typing: Any, found: Any, place: Any, ranks: Any, sums: Any, cells: Any, slope: Any, intercept: Any, first: Any,
    results: Any, target: Any,
) -> Any:  # fmt: skip
    """For each lane the one of ``ranks`` slots from ``found[place]`` on that it wants; whether one wants another.

    ``sums[0]`` has the counts of its missing cells. Of N present values the wanted rank is ``floor(N * slope +
    intercept)``, in float32; the first slot is rank ``first`` of windows of ``cells`` cells. Without present values
    the result is NaN.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found_type, sums_type, results_type = (signature.args[k] for k in (0, 3, 8))
        found, place, ranks, sums, cells, slope, intercept, first, results, target = args
        zero = ir.Constant(ir.IntType(64), 0)
        pitch = ir.Constant(ir.IntType(64), _lanes(context, found_type))
        flags = []
        for shift, vector in registers(context, found_type):
            counts = _slot(context, builder, sums_type, sums, zero, vector.count, shift)
            rank, nothing = _wanted(builder, counts, cells, slope, intercept, first)
            # One unsigned comparison tells both ranks below and ranks above from those that are there.
            outside = builder.icmp_unsigned(">=", rank, _spread(builder, builder.trunc(ranks, _WHOLE), vector.count))
            flags.append(builder.and_(outside, builder.not_(nothing)))
            kept = cgutils.alloca_once_value(builder, _all(ir.Constant(vector.element, float("nan")), vector.count))
            with cgutils.for_range(builder, ranks) as loop:
                at = builder.add(place, builder.mul(loop.index, pitch))
                value = _slot(context, builder, found_type, found, at, vector.count, shift)
                number = _spread(builder, builder.trunc(loop.index, _WHOLE), vector.count)
                same = builder.icmp_signed("==", rank, number)
                builder.store(builder.select(same, value, builder.load(kept)), kept)
            picked = _result(context, builder, builder.load(kept), results_type)
            _put(context, builder, results_type, results, target, picked, shift)
        return any_set(builder, flags)

    return types.boolean(found, place, ranks, sums, cells, slope, intercept, first, results, target), generate


def _wanted(builder: Any, counts: Any, cells: Any, slope: Any, intercept: Any, first: Any) -> tuple[Any, Any]:
    """Which slot each lane wants, and the lanes that have no present value, which want slot -1."""
    lanes = counts.type.count
    missing = builder.and_(counts, _all(_WHOLE((1 << LOW_BIT) - 1), lanes))
    present = builder.sub(_spread(builder, builder.trunc(cells, _WHOLE), lanes), missing)
    real = builder.sitofp(present, ir.VectorType(ir.FloatType(), lanes))
    real = builder.fadd(builder.fmul(real, _spread(builder, slope, lanes)), _spread(builder, intercept, lanes))
    rank = builder.add(builder.fptosi(real, counts.type), builder.lshr(counts, _all(_WHOLE(LOW_BIT), lanes)))
    rank = builder.sub(rank, _spread(builder, builder.trunc(first, _WHOLE), lanes))
    nothing = builder.icmp_signed("==", present, _all(_WHOLE(0), lanes))
    return builder.select(nothing, _all(_WHOLE(-1), lanes), rank), nothing


@step
def settle_slot(typing: Any, found: Any, place: Any, results: Any, target: Any) -> Any:
    """``results[target] = found[place]``, in the results' type, with one kind of zero."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found_type, _, results_type, _ = signature.args
        found, place, results, target = args
        value = _slot(context, builder, found_type, found, place, _lanes(context, found_type))
        _put(context, builder, results_type, results, target, _result(context, builder, value, results_type))
        return context.get_dummy_value()

    return types.void(found, place, results, target), generate


@step
def between_slots(typing: Any, found: Any, place: Any, other: Any, weight: Any, results: Any, target: Any) -> Any:
    """``results[target]`` lies ``weight`` of the way from ``found[place]`` to ``found[other]``, as float64.

    Returns whether a distance is infinite, so that the slot has to be done again with care.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found_type, _, _, _, results_type, _ = signature.args
        found, place, other, weight, results, target = args
        lanes = _lanes(context, found_type)
        one, two = (
            _result(context, builder, _slot(context, builder, found_type, found, at, lanes), results_type)
            for at in (place, other)
        )
        distance = builder.fsub(two, one)
        moved = builder.fadd(one, builder.fmul(distance, _spread(builder, weight, lanes)))
        same = builder.fcmp_ordered("==", one, two)
        _put(context, builder, results_type, results, target, builder.select(same, one, moved))
        # Zero times an infinity is NaN, as is what comes of it.
        endless = builder.fmul(distance, _all(ir.Constant(distance.type.element, 0.0), lanes))
        return any_set(builder, [builder.fcmp_unordered("uno", endless, endless)])

    return types.boolean(found, place, other, weight, results, target), generate


def _result(context: Any, builder: Any, value: Any, results_type: Any) -> Any:
    """A vector in the results' type; adding 0.0 makes -0.0 a 0.0, since which zero was found depends on the tile."""
    wanted = ir.VectorType(context.get_value_type(results_type.dtype), value.type.count)
    if wanted != value.type:
        value = builder.fpext(value, wanted)
    return builder.fadd(value, _all(ir.Constant(wanted.element, 0.0), wanted.count))
