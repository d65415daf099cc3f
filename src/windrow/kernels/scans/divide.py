"""Sums become averages: divided by how many cells each window covers, or by how many of them are present."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.contract.geometry import outer_product

ROWS_BYTES = 2**18  # rows that are divided while they are in the cache


def share_out(totals: NDArray[Any], covered: Sequence[NDArray[np.int64]], out: NDArray[np.float64]) -> None:
    """Totals of windows in which nothing is missing, divided by their cells; no array of all counts is made."""
    *leading, last = [np.maximum(counts, 1) for counts in covered]
    if not totals.size:
        return
    rows, averages = totals.reshape(-1, len(last)), out.reshape(-1, len(last))
    lengths, widths = outer_product(leading).reshape(-1, 1).astype(np.float64), last.astype(np.float64)
    at_once = max(1, ROWS_BYTES // (8 * len(last)))
    counts = np.empty((min(at_once, len(rows)), len(last)))
    for start in range(0, len(rows), at_once):
        part = averages[start : start + at_once]
        if totals is not out:
            part[...] = rows[start : start + at_once]
        divisors = counts[: len(part)]
        np.multiply(lengths[start : start + at_once], widths, out=divisors)
        np.divide(part, divisors, out=part)


def divide(totals: NDArray[np.float64], counts: NDArray[Any]) -> bool:
    """Divide contiguous totals by unsigned counts, in place; whether there is a 0 among these, which makes a NaN."""
    from windrow.kernels.compiler.addresses import run_at

    sums, divisors = totals.reshape(-1), counts.reshape(-1)
    whole = len(sums) // _lanes() * _lanes()
    found = False
    if whole:
        found = run_at(_loop(divisors.dtype.str), (sums.ctypes.data, divisors.ctypes.data, whole)) != 0
    with np.errstate(invalid="ignore", divide="ignore"):
        sums[whole:] /= divisors[whole:]
    return found or not divisors[whole:].all()


def _lanes() -> int:
    from windrow.kernels.compiler.vectors import vector_bytes

    return vector_bytes() // 8


@functools.cache
def _loop(counts: str) -> int:
    from windrow.kernels.compiler.machine_code import addresses, name_of

    lines = list(_text(_lanes(), 8 * np.dtype(counts).itemsize))
    return addresses(name_of("divide", *lines), ["loop"], lambda: lines)[0]


def _text(lanes: int, bits: int) -> Iterator[str]:
    """The loop (totals, counts, number of them); it gives whether a count is 0."""
    vector, flags = f"<{lanes} x double>", f"<{lanes} x i64>"
    yield "define i64 @loop(i64 %totals, i64 %counts, i64 %number) {\nentry:"
    yield " %totals.p = inttoptr i64 %totals to ptr\n %counts.p = inttoptr i64 %counts to ptr\n br label %body\nbody:"
    yield f" %i = phi i64 [0, %entry], [%next, %body]\n %seen = phi {flags} [zeroinitializer, %entry], [%found, %body]"
    yield " %total.a = getelementptr double, ptr %totals.p, i64 %i"
    yield f" %count.a = getelementptr i{bits}, ptr %counts.p, i64 %i"
    yield f" %total = load {vector}, ptr %total.a, align 8"
    yield f" %count = load <{lanes} x i{bits}>, ptr %count.a, align {bits // 8}"
    yield f" %divisor = uitofp <{lanes} x i{bits}> %count to {vector}"
    yield f" %average = fdiv {vector} %total, %divisor\n store {vector} %average, ptr %total.a, align 8"
    yield f" %none = fcmp oeq {vector} %divisor, zeroinitializer"
    yield f" %none.b = sext <{lanes} x i1> %none to {flags}\n %found = or {flags} %seen, %none.b"
    yield f" %next = add i64 %i, {lanes}\n %more = icmp slt i64 %next, %number"
    yield f" br i1 %more, label %body, label %done\ndone:\n %bits = bitcast {flags} %found to i{64 * lanes}"
    yield f" %any = icmp ne i{64 * lanes} %bits, 0\n %result = zext i1 %any to i64\n ret i64 %result\n}}"
