"""Which slices each task gets: its own, and those of its neighbours that its frames reach.

A slice falls into pieces by partition: rows of the partitions that its cuts go through, and all others. Only partitions
that cuts go through can lie in several tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.dataframes.cuts import Cuts
from windrow.dataframes.spec import BoundFrame, FrameTask


@dataclass(frozen=True)
class Piece:
    """The rows of one slice and one partition, or of one slice and all partitions that no cut goes through."""

    number: int  # three times the slice's, plus which of its cuts
    rows: int
    least: Any = None  # the smallest and largest ordinary order key, as numbers that rise along the order
    most: Any = None
    unordinary: int = 0  # rows whose key is NULL or NaN
    peer_groups: int = 0

    @property
    def slice(self) -> int:
        return self.number // 3


@dataclass(frozen=True)
class Share:
    """What one task has: its slices from ``first`` to before ``last``."""

    number: int
    first: int
    last: int
    rows: int


@dataclass(frozen=True, eq=False)
class Division:
    """All tasks: whose each piece is, and from which task to which its rows are needed."""

    shares: tuple[Share, ...]
    home: Mapping[int, int]
    lowest: Mapping[int, int]
    highest: Mapping[int, int]
    pieces: tuple[Piece, ...]
    crossed: Mapping[int, tuple[Piece, ...]]  # the pieces in order of each partition that cuts go through

    @property
    def copies(self) -> int:
        """Rows that go to other tasks than their own."""
        return sum(p.rows * (self.highest[p.number] - self.lowest[p.number]) for p in self.pieces)

    def spread(self) -> Iterable[int]:
        """The partitions that lie in several tasks."""
        return [group for group, pieces in self.crossed.items() if len({self.home[p.number] for p in pieces}) > 1]


def divide(task: FrameTask, cuts: Cuts, pieces: Sequence[Piece], tasks: int) -> Division:
    """Neighbouring slices joined into tasks of about the same number of rows."""
    rows = [0] * cuts.slices
    for piece in pieces:
        rows[piece.slice] += piece.rows
    shares = _shares(rows, tasks)
    owner = {slice_: share.number for share in shares for slice_ in range(share.first, share.last)}
    home = {piece.number: owner[piece.slice] for piece in pieces}
    lowest, highest = dict(home), dict(home)
    crossed: dict[int, list[Piece]] = {}
    for piece in sorted(pieces, key=lambda p: p.number):
        group = cuts.crossed(piece.number)
        if group is not None:
            crossed.setdefault(group, []).append(piece)
    for members in crossed.values():
        for share in shares:
            own = [k for k, piece in enumerate(members) if home[piece.number] == share.number]
            if own:
                first, last = _find_reached(task, cuts, members, own[0], own[-1])
                for piece in members[first : last + 1]:
                    lowest[piece.number] = min(lowest[piece.number], share.number)
                    highest[piece.number] = max(highest[piece.number], share.number)
    ordered = {group: tuple(members) for group, members in crossed.items()}
    return Division(tuple(shares), home, lowest, highest, tuple(pieces), ordered)


def divide_as_cut(cuts: Cuts, rows: Mapping[int, int]) -> Division:
    """Each slice is a task, since cuts are such that no row needs others; ``rows`` are those of each piece."""
    pieces = tuple(Piece(number, count) for number, count in sorted(rows.items()))
    crossed: dict[int, list[Piece]] = {}
    for piece in pieces:
        group = cuts.crossed(piece.number)
        if group is not None:
            crossed.setdefault(group, []).append(piece)
    home = {piece.number: piece.slice for piece in pieces}
    counts = [sum(piece.rows for piece in pieces if piece.slice == slice_) for slice_ in range(cuts.slices)]
    shares = tuple(Share(slice_, slice_, slice_ + 1, count) for slice_, count in enumerate(counts))
    return Division(shares, home, home, home, pieces, {group: tuple(members) for group, members in crossed.items()})


def _shares(rows: Sequence[int], tasks: int) -> list[Share]:
    shares: list[Share] = []
    total, begin, held, done = sum(rows), 0, 0, 0
    for slice_, count in enumerate(rows):
        held += count
        enough = done + held >= total * (len(shares) + 1) / tasks
        if (enough and len(shares) < tasks - 1) or slice_ == len(rows) - 1:
            shares.append(Share(len(shares), begin, slice_ + 1, held))
            begin, done, held = slice_ + 1, done + held, 0
    return shares


def _find_reached(task: FrameTask, cuts: Cuts, members: Sequence[Piece], first: int, last: int) -> tuple[int, int]:
    """The pieces of a partition that the frames of rows in the pieces ``first`` to ``last`` may reach."""
    own = members[first : last + 1]
    low, high = first, last
    for frame in task.envelopes:
        before = _stretch(frame, cuts, own, members[:first][::-1], backwards=True)
        after = _stretch(frame, cuts, own, members[last + 1 :], backwards=False)
        low, high = min(low, first - before), max(high, last + after)
    return low, high


def _stretch(frame: BoundFrame, cuts: Cuts, own: Sequence[Piece], others: Sequence[Piece], backwards: bool) -> int:
    """How many of the pieces next to its own a task needs for a frame."""
    offset: Any = frame.start.offset if backwards else frame.end.offset
    if offset is None:
        return len(others)
    ways: dict[str, Callable[[], int]] = {
        "rows": lambda: _until(others, [p.rows for p in others], abs(offset)),
        "groups": lambda: max(_groups(others, abs(offset)), _peers(cuts, own, others, backwards)),
        "range": lambda: max(_near(own, others, offset, backwards), _peers(cuts, own, others, backwards)),
    }
    return ways[frame.unit]()


def _until(others: Sequence[Piece], amounts: Sequence[int], wanted: int) -> int:
    held = 0
    for number, amount in enumerate(amounts):
        if held >= wanted:
            return number
        held += amount
    return len(others)


def _groups(others: Sequence[Piece], wanted: int) -> int:
    # Rows with equal keys may lie on both sides of a cut, so one group of each piece may have been counted before; and
    # one more group must begin, or the last one wanted may not be whole.
    return _until(others, [max(p.peer_groups - 1, 0) for p in others], wanted + 1) if wanted else 0


def _near(own: Sequence[Piece], others: Sequence[Piece], offset: Any, backwards: bool) -> int:
    keys = [key for piece in own for key in (piece.least, piece.most) if key is not None]
    needed = 0
    if not offset:
        return 0
    for number, piece in enumerate(others):
        both = piece.unordinary and any(one.unordinary for one in own)
        edge = piece.most if backwards else piece.least
        near = bool(keys) and edge is not None and (
            edge >= min(keys) + offset if backwards else edge <= max(keys) + offset
        )  # fmt: skip
        if near or both:
            needed = number + 1
    return needed


def _peers(cuts: Cuts, own: Sequence[Piece], others: Sequence[Piece], backwards: bool) -> int:
    """How many neighbouring pieces hold rows whose key equals that of the task's outermost rows."""
    edge = own[0] if backwards else own[-1]
    slice_, key, needed = edge.slice, None, 0
    for number, piece in enumerate(others):
        between = range(piece.slice, slice_) if backwards else range(slice_, piece.slice)
        joins = {cuts.joins_peers[cut] for cut in between}
        if joins == {None} or None in joins or len(joins | ({key} - {None})) != 1:
            return needed
        key, slice_, needed = joins.pop(), piece.slice, number + 1
    return needed
