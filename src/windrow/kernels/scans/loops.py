"""Loops over rows of totals, compiled for each way to merge and each type.

Rows are named by addresses, lengths are in bytes of totals. Rows of the workspace begin at a cache line and are padded,
so that loops over them take whole lines and may run over their ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from windrow.kernels.compiler.machine_code import addresses, name_of, sources_of
from windrow.kernels.scans import along_text as scan_along_text
from windrow.kernels.scans import plane_text as scan_plane_text
from windrow.kernels.scans import text as scan_text
from windrow.kernels.scans.plane_text import PlaneText
from windrow.kernels.scans.text import LoopText

MOST_ROWS = 8  # that one loop merges


class Kit(NamedTuple):
    """What compiled code needs to bring rows in: addresses of loops, and bytes of a cell and of a total."""

    fill: int  # (row, length): nothing but the identity
    bring: int  # (cells, row, length): cells as contributions, NaN as none; whether there was one. At least a line.
    pick: int  # (row, step, length, to): every step-th total
    cell: int
    total: int


@dataclass(frozen=True)
class Merge:
    """How partial results become one, and from cells of which type.

    ``rule`` is one of: sum; squares (adds the squares of the cells); carried (adds partial sums, in which a NaN is not
    a missing cell but the sum of opposite infinities); min; max. Loops are compiled one by one, as they are needed.
    """

    rule: str
    cell: str
    total: str

    @functools.cached_property
    def kit(self) -> Kit:
        names = ["fill", "bring", "pick"]
        fill, bring, pick = addresses(self._name("kit"), names, lambda: self._text().kit())
        return Kit(fill, bring, pick, np.dtype(self.cell).itemsize, np.dtype(self.total).itemsize)

    @property
    def checked(self) -> bool:
        """Whether cells may be missing."""
        return self._text().checked

    def join(self, rows: int, extra: bool = False) -> int:
        """The loop (to, row, stride, extra row, length) that merges so many rows, a stride apart."""
        return self._loop(f"join {rows} {extra}", lambda: self._text().join(rows, extra))

    def advance(self, rows: int, extra: bool) -> int:
        """The loop (place, row, stride, extra row, slot, before, prefix, suffix, ahead, length) that completes windows.

        It merges rows as ``join`` does into a slot, these with the rows before into the prefix, and that with the
        suffix of the block before into the result.
        """
        return self._loop(f"advance {rows} {extra}", lambda: self._text().advance(rows, extra))

    def direct(self, outputs: int, height: int, careful: bool) -> int:
        """The loop (rows, to, room, ahead, skew, last) that merges rows of cells into so many rows of windows."""
        return self._loop(
            f"direct {outputs} {height} {careful}", lambda: self._plane().direct(outputs, height, careful)
        )

    def suffix(self, rows: int, careful: bool) -> int:
        """The loop (rows, below, to, room, ahead, skew, last) that merges so many rows with those below."""
        return self._loop(f"suffix {rows} {careful}", lambda: self._plane().suffix(rows, careful))

    def prefix(self, rows: int, careful: bool) -> int:
        """The loop (rows, below, before, after, to, room, ahead, skew, last) that block-scans so many windows."""
        return self._loop(f"prefix {rows} {careful}", lambda: self._plane().prefix(rows, careful))

    def finish(self, rows: int, extra: bool, divisor: str = "") -> int:
        """The loop (to, row, stride, extra row, ahead, skew, last) that merges rows as ``join`` does, into results.

        Averages are divided by how many cells windows cover (``CELLS``), or by counts of some type. Before the last
        three arguments the former take two rows of numbers and two numbers as bits: how wide and high windows are,
        and the inverses of that; the latter take a row of counts.
        """
        return self._loop(f"finish {rows} {extra} {divisor}", lambda: self._plane().finish(rows, extra, divisor))

    def stretch(self, width: int, divisor: str = "") -> int:
        """The loop (to, first, final, row, ahead, last) that widens a row to windows of so many cells.

        The first line goes to ``first``, the last one to ``final``. Averages as in ``finish``.
        """
        return self._loop(f"stretch {width} {divisor}", lambda: self._plane().stretch(width, divisor))

    def bare(self) -> int:
        """The loop (row, last) that tells whether a row of results holds what a merge of nothing gives."""
        return self._loop("bare", lambda: self._plane().bare())

    def _text(self) -> LoopText:
        return LoopText(self.rule, np.dtype(self.cell), np.dtype(self.total))

    def _plane(self) -> PlaneText:
        return PlaneText(self.rule, np.dtype(self.cell), np.dtype(self.total))

    def _loop(self, what: str, lines: Callable[[], Iterator[str]]) -> int:
        return addresses(self._name(what), ["loop"], lines)[0]

    def _name(self, what: str) -> str:
        return _name(self.rule, self.cell, self.total, what)


@functools.lru_cache(maxsize=4096)
def _name(*content: str) -> str:
    return name_of("scan", *content, _source())


@functools.cache
def _source() -> str:
    return sources_of(scan_text, scan_along_text, scan_plane_text)
