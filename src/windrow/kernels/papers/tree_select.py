"""Percentiles and quantiles of a moving window: its values in a search tree (000 §3.4, 001 §3.3)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiler.jit import bare_kernel
from windrow.kernels.contract.outcomes import RankArrays
from windrow.kernels.order.direct import between
from windrow.kernels.papers import ordered_tree
from windrow.kernels.papers.slide import Results, Unit, slide, structure


class Selection(NamedTuple):
    """The present values of a window, how many there are, and which ranks are wanted of how many."""

    tree: ordered_tree.Tree
    tables: RankArrays
    present: npt.NDArray[np.int64]


def empty_selection(most_values: int, dtype: Any, tables: RankArrays) -> Selection:
    return Selection(ordered_tree.empty_tree(most_values, dtype), tables, np.zeros(1, np.int64))


def _forget(selection: Selection, _oldest: Unit, _stride: int, _units: int) -> None:
    ordered_tree.clear(selection.tree)
    selection.present[0] = 0


def _leave(selection: Selection, unit: Unit) -> None:
    for offset in unit.offsets:
        at = unit.start + offset
        if unit.there[at]:
            ordered_tree.remove(selection.tree, unit.flat[at])
            selection.present[0] -= 1


def _enter(selection: Selection, unit: Unit) -> None:
    for offset in unit.offsets:
        at = unit.start + offset
        if unit.there[at]:
            ordered_tree.insert(selection.tree, unit.flat[at])
            selection.present[0] += 1


def _exchange(selection: Selection, gone: Unit, unit: Unit) -> None:
    """Cells at the same place of both units change in one step."""
    for offset in unit.offsets:
        old, new = gone.start + offset, unit.start + offset
        if unit.there[old] and unit.there[new]:
            if unit.flat[old] != unit.flat[new]:
                ordered_tree.exchange(selection.tree, unit.flat[old], unit.flat[new])
        elif unit.there[old]:
            ordered_tree.remove(selection.tree, unit.flat[old])
            selection.present[0] -= 1
        elif unit.there[new]:
            ordered_tree.insert(selection.tree, unit.flat[new])
            selection.present[0] += 1


def _answer(selection: Selection, results: Results, at: int) -> None:
    present, tables = selection.present[0], selection.tables
    results.counts[at] = present
    if present > 0:
        lower = ordered_tree.select(selection.tree, np.int64(tables.lower[present]))
        results.exact[at] = lower
        if tables.weight[present] == 0.0:
            results.reals[at] = lower
        else:
            upper = ordered_tree.select(selection.tree, np.int64(tables.upper[present]))
            results.reals[at] = between(float(lower), float(upper), tables.weight[present])


structure(Selection, enter=_enter, leave=_leave, answer=_answer, exchange=_exchange, forget=_forget)
slide_selection = bare_kernel(slide, __name__)
