"""Aggregates over the neighbours of sparse cells, or lists of the neighbours for any other kernel to reduce."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError
from windrow.kernels.compiler.jit import kernel
from windrow.kernels.compiler.overflow import sum_overflows
from windrow.kernels.contract.outcomes import NO_VALUES, Outcome, prepared
from windrow.kernels.sparse.rows import Int64Array, Neighbourhoods, Rows, find_ranges, first_at_least, link, links_of

Array = npt.NDArray[Any]


def neighbour_counts(rows: Rows, hoods: Neighbourhoods, there: npt.NDArray[np.bool_] | None = None) -> Int64Array:
    """How many cells each neighbourhood holds, or how many of those that are ``there``."""
    counts = np.zeros(len(hoods.near), np.int64)
    if there is None:
        before = np.zeros(0, np.int64)
    else:
        before = np.zeros(len(there) + 1, np.int64)
        np.cumsum(there, out=before[1:])
    _count(rows, hoods, before, counts)
    return counts


def neighbour_lists(rows: Rows, hoods: Neighbourhoods, counts: Int64Array) -> Int64Array:
    """The cells of each neighbourhood, one neighbourhood after the other; ``counts`` says how many each has."""
    ends = np.cumsum(counts)
    cells = np.empty(int(ends[-1]) if len(ends) else 0, np.int64)
    _list(rows, hoods, ends - counts, cells)
    return cells


def strip_sizes(rows: Rows, hoods: Neighbourhoods) -> Int64Array:
    """For each group of neighbourhoods, how many cells they hold together."""
    sizes = np.zeros(len(hoods.start) - 1, np.int64)
    _strips(rows, hoods, sizes, np.zeros(0, np.int64))
    return sizes


def strips(rows: Rows, hoods: Neighbourhoods, sizes: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The cells that each group of windows holds together, in the order of the last dimension, and each window's range.

    A window then slides over its group's cells, as far as the groups' windows are boxes.
    """
    cells = np.empty(int(sizes.sum()), np.int64)
    _strips(rows, hoods, sizes, cells)
    places = np.unique(rows.last[cells])
    groups = np.arange(len(sizes), dtype=np.int64) * len(places)
    key = np.repeat(groups, sizes) + np.searchsorted(places, rows.last[cells])
    order = np.argsort(key, kind="stable")  # rows are sorted already, so that this merges them
    key = key[order]
    own = np.repeat(groups, np.diff(hoods.start))
    lo = np.searchsorted(key, own + np.searchsorted(places, hoods.near, "left"))
    hi = np.searchsorted(key, own + np.searchsorted(places, hoods.far, "right")) - 1
    return cells[order], lo.astype(np.int64), np.maximum(hi, lo - 1).astype(np.int64)


def reduce_ranges(
    operation: str, values: Array, present: npt.NDArray[np.bool_] | None, rows: Rows, hoods: Neighbourhoods
) -> Outcome:
    """Sum, minimum or maximum straight from the ranges; as ``naive_windows`` otherwise."""
    flat, there = prepared(values, present)
    exact, counts = np.zeros(len(hoods.near), flat.dtype), np.zeros(len(hoods.near), np.int64)
    if operation != "sum":
        _extreme(operation == "max", flat, there, rows, hoods, exact, counts)
        return Outcome(NO_VALUES, exact, counts)
    reals, lost = np.zeros(len(counts)), np.zeros(len(counts))
    if _sum(flat, there, rows, hoods, reals, lost, exact, counts):
        raise DataError("an integer sum overflows int64", hint="Cast the attribute to float64 first")
    return Outcome(np.where(np.isfinite(lost), reals + lost, reals), exact, counts)


@kernel
def _count(rows: Rows, hoods: Neighbourhoods, before: Array, counts: Array) -> None:
    links = links_of(rows, hoods)
    for group in range(len(hoods.start) - 1):
        for k in range(link(rows, hoods, group, links)):
            find_ranges(rows, hoods, group, k, links)
            first = hoods.start[group]
            for cell in range(first, hoods.start[group + 1]):
                begin, end = links.begin[cell - first], links.end[cell - first]
                end = max(begin, end)
                counts[cell] += end - begin if len(before) == 0 else before[end] - before[begin]


@kernel
def _list(rows: Rows, hoods: Neighbourhoods, filled: Array, cells: Array) -> None:
    links = links_of(rows, hoods)
    for group in range(len(hoods.start) - 1):
        for k in range(link(rows, hoods, group, links)):
            find_ranges(rows, hoods, group, k, links)
            first = hoods.start[group]
            for cell in range(first, hoods.start[group + 1]):
                begin, end = links.begin[cell - first], links.end[cell - first]
                for neighbour in range(begin, end):
                    cells[filled[cell]] = neighbour
                    filled[cell] += 1


@kernel
def _strips(rows: Rows, hoods: Neighbourhoods, sizes: Array, cells: Array) -> None:
    links = links_of(rows, hoods)
    filled = 0
    ends = np.zeros(2, np.int64)
    found = np.zeros(2, np.int64)
    for group in range(len(hoods.start) - 1):
        ends[0], ends[1] = hoods.near[hoods.start[group]], hoods.far[hoods.start[group + 1] - 1] + 1
        before = filled
        for k in range(link(rows, hoods, group, links)):
            first_at_least(rows.last, rows.start[links.row[k]], rows.start[links.row[k] + 1], ends, 0, found)
            if len(cells) > 0:
                for place in range(found[0], found[1]):
                    cells[filled + place - found[0]] = place
            filled += max(0, found[1] - found[0])
        sizes[group] = filled - before


@kernel
def _extreme(
    largest: bool, flat: Array, there: Array, rows: Rows, hoods: Neighbourhoods, exact: Array, counts: Array
) -> None:
    links = links_of(rows, hoods)
    for group in range(len(hoods.start) - 1):
        for k in range(link(rows, hoods, group, links)):
            find_ranges(rows, hoods, group, k, links)
            first = hoods.start[group]
            for cell in range(first, hoods.start[group + 1]):
                begin, end = links.begin[cell - first], links.end[cell - first]
                best, found = exact[cell], counts[cell]
                for neighbour in range(begin, end):
                    if there[neighbour]:
                        value = flat[neighbour]
                        if found == 0 or (value > best if largest else value < best):
                            best = value
                        found += 1
                exact[cell], counts[cell] = best, found


@kernel
def _sum(
    flat: Array, there: Array, rows: Rows, hoods: Neighbourhoods, reals: Array, lost: Array, exact: Array,
    counts: Array,
) -> bool:  # fmt: skip
    """Floats are summed with a running correction of what rounding lost, integers exactly; True if one overflowed."""
    links = links_of(rows, hoods)
    overflowed = False
    for group in range(len(hoods.start) - 1):
        for k in range(link(rows, hoods, group, links)):
            find_ranges(rows, hoods, group, k, links)
            first = hoods.start[group]
            for cell in range(first, hoods.start[group + 1]):
                begin, end = links.begin[cell - first], links.end[cell - first]
                for neighbour in range(begin, end):
                    if there[neighbour]:
                        value = float(flat[neighbour])
                        added = reals[cell] + value
                        if abs(reals[cell]) >= abs(value):
                            lost[cell] += (reals[cell] - added) + value
                        else:
                            lost[cell] += (value - added) + reals[cell]
                        reals[cell] = added
                        overflowed |= sum_overflows(exact[cell], flat[neighbour])
                        exact[cell] += flat[neighbour]
                        counts[cell] += 1
    return overflowed
