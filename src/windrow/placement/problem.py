"""What the planner is given: chunks, the pairs of them that a batch has to join, view chunks that change, and rates.

Everything is numbered: nodes from 0, chunks, view chunks and pairs by their place in the vectors here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.errors import DataError, UnknownNameError

NOWHERE = -1
"""The home of what no node has yet: it is read from the store."""

Float64Array = npt.NDArray[np.float64]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rates:
    """Seconds a byte: for what a node receives, for what it sends, for joining and for merging."""

    receive: float
    send: float
    join: float
    merge: float

    def __post_init__(self) -> None:
        for name in ("receive", "send", "join", "merge"):
            value = getattr(self, name)
            if not np.isfinite(value) or value < 0:
                raise DataError(f"the rate of {name} must be a number of seconds, 0 or more", got=value)


def charge_receivers(network: float, join: float, merge: float) -> Rates:
    """windrow's own model: nodes read what they lack from the store, and nobody sends."""
    return Rates(network, 0.0, join, merge)


def charge_senders(network: float, join: float, merge: float) -> Rates:
    """The model of paper 004: the node that has a chunk spends the time of sending it."""
    return Rates(0.0, network, join, merge)


def charge_both(network: float, join: float, merge: float) -> Rates:
    """A link is busy at both of its ends."""
    return Rates(network, network, join, merge)


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks of the arrays, those of the batch among them.

    A chunk that the batch adds to has two entries with the same key, the old cells and the new ones: afterwards they
    are one chunk, with one home.
    """

    keys: Int64Array
    """What a chunk is called in every batch."""
    bytes: Float64Array
    homes: Int32Array
    """The node that has the chunk, or NOWHERE."""
    assigned: Int32Array
    """Where the static assignment puts the chunk, if it has no home."""

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, eq=False)
class ViewChunks:
    """The chunks of the view that the batch changes."""

    keys: Int64Array
    bytes: Float64Array
    """What is stored of the chunk now, and has to travel if its home moves."""
    most: Float64Array
    """The size after the batch: partial states of the chunk that are merged on one node take no more."""
    homes: Int32Array
    assigned: Int32Array

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of chunks to join, each once, with all view chunks that it changes.

    The right one is the chunk at whose home the baseline joins the pair: the old one of an old and a new chunk.
    """

    left: Int32Array
    right: Int32Array
    starts: Int64Array
    """Where the view chunks of each pair begin in the two vectors below; one more than there are pairs."""
    views: Int32Array
    states: Float64Array
    """Bytes of the partial state that the pair makes for the view chunk."""

    def __len__(self) -> int:
        return len(self.left)

    @cached_property
    def of_state(self) -> Int64Array:
        """The pair of each partial state."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))


@dataclass(frozen=True, eq=False)
class Problem:
    """One batch to plan for: checked when it is made, so that nothing below has to."""

    nodes: int
    chunks: Chunks
    views: ViewChunks
    pairs: Pairs
    rates: Rates = field(default_factory=lambda: charge_receivers(1.0, 0.1, 0.1))

    def __post_init__(self) -> None:
        if not isinstance(self.nodes, int | np.integer) or self.nodes < 1:
            raise DataError("planning needs at least one node", got=self.nodes)
        _check_chunks("chunk", self.chunks, self.nodes)
        _check_chunks("view chunk", self.views, self.nodes)
        if len(np.unique(self.views.keys)) < len(self.views):
            raise DataError("a view chunk is listed twice", hint="Each stands once, with all pairs that change it")
        _check_pairs(self.pairs, len(self.chunks), len(self.views))

    @cached_property
    def joined_bytes(self) -> Float64Array:
        """Bytes that each pair joins: of both chunks, or of the one that is joined with itself."""
        left, right, sizes = self.pairs.left, self.pairs.right, self.chunks.bytes
        return sizes[left] + np.where(left == right, 0.0, sizes[right])

    @cached_property
    def groups(self) -> Int64Array:
        """Chunks with the same key have the same number here."""
        found: Int64Array = np.unique(self.chunks.keys, return_inverse=True)[1].astype(np.int64)
        return found

    @cached_property
    def group_count(self) -> int:
        return int(self.groups.max()) + 1 if len(self.chunks) else 0

    @cached_property
    def group_homes(self) -> Int32Array:
        """Where each chunk was before the batch, old and new cells taken together."""
        homes: Int32Array = np.full(self.group_count, NOWHERE, np.int32)
        there = self.chunks.homes != NOWHERE
        homes[self.groups[there]] = self.chunks.homes[there]
        return homes

    @cached_property
    def settled(self) -> Int32Array:
        """The node of each chunk if nothing is planned: its home, its old cells' home, or where it is assigned."""
        before = self.group_homes[self.groups]
        first: Int32Array = np.zeros(self.group_count, np.int32)
        first[self.groups[::-1]] = self.chunks.assigned[::-1]
        return np.where(before != NOWHERE, before, first[self.groups]).astype(np.int32)

    @cached_property
    def settled_views(self) -> Int32Array:
        return np.where(self.views.homes != NOWHERE, self.views.homes, self.views.assigned).astype(np.int32)

    @cached_property
    def is_paired(self) -> npt.NDArray[np.bool_]:
        """Whether a chunk is in any pair; one that is not changes no view, and only needs a home."""
        paired = np.zeros(len(self.chunks), bool)
        paired[self.pairs.left] = True
        paired[self.pairs.right] = True
        return paired


def make_chunks(sizes: npt.ArrayLike, homes: npt.ArrayLike, assigned: npt.ArrayLike, keys: Any = None) -> Chunks:
    """Chunks from plain lists; without keys, each is a chunk of its own."""
    size = _floats(sizes)
    key = np.arange(len(size)) if keys is None else keys
    return Chunks(_longs(key), size, _nodes(homes), _nodes(assigned))


def make_views(sizes: npt.ArrayLike, homes: npt.ArrayLike, assigned: npt.ArrayLike, most: Any = None) -> ViewChunks:
    """View chunks from plain lists; without ``most``, partial states grow without bound."""
    size = _floats(sizes)
    limit = np.full(len(size), np.inf) if most is None else most
    return ViewChunks(_longs(np.arange(len(size))), size, _floats(limit), _nodes(homes), _nodes(assigned))


def make_pairs(pairs: Sequence[tuple[int, int, dict[int, float]]]) -> Pairs:
    """Pairs from (left, right, bytes of partial state by view chunk)."""
    states = [(view, size) for _, _, of_pair in pairs for view, size in of_pair.items()]
    starts = np.cumsum([0, *(len(of_pair) for _, _, of_pair in pairs)])
    return Pairs(
        _nodes([left for left, _, _ in pairs]),
        _nodes([right for _, right, _ in pairs]),
        _longs(starts),
        _nodes([view for view, _ in states]),
        _floats([size for _, size in states]),
    )


def _floats(values: npt.ArrayLike) -> Float64Array:
    return np.ascontiguousarray(values, np.float64)


def _nodes(values: npt.ArrayLike) -> Int32Array:
    return np.ascontiguousarray(values, np.int32)


def _longs(values: npt.ArrayLike) -> Int64Array:
    return np.ascontiguousarray(values, np.int64)


def _check_chunks(what: str, chunks: Chunks | ViewChunks, nodes: int) -> None:
    lengths = {len(chunks.keys), len(chunks.bytes), len(chunks.homes), len(chunks.assigned)}
    if len(lengths) > 1:
        raise DataError(f"every {what} needs a key, a size, a home and an assignment", got=sorted(lengths))
    wrong = np.flatnonzero(~np.isfinite(chunks.bytes) | (chunks.bytes < 0))
    if len(wrong):
        raise DataError(f"the size of a {what} must be 0 or more", got=f"{chunks.bytes[wrong[0]]} ({what} {wrong[0]})")
    lost = np.flatnonzero((chunks.homes < NOWHERE) | (chunks.homes >= nodes))
    if len(lost):
        raise UnknownNameError(
            f"{what} {lost[0]} is at home on a node that is not there",
            got=int(chunks.homes[lost[0]]),
            hint=f"The nodes are 0 to {nodes - 1}; renumber_homes forgets those that left",
        )
    outside = np.flatnonzero((chunks.assigned < 0) | (chunks.assigned >= nodes))
    if len(outside):
        raise UnknownNameError(
            f"{what} {outside[0]} is assigned to a node that is not there",
            got=int(chunks.assigned[outside[0]]),
            hint=f"The nodes are 0 to {nodes - 1}",
        )


def _check_pairs(pairs: Pairs, chunks: int, views: int) -> None:
    if len(pairs.right) != len(pairs) or len(pairs.starts) != len(pairs) + 1 or len(pairs.states) != len(pairs.views):
        raise DataError("every pair needs two chunks and its partial states")
    if pairs.starts[0] != 0 or pairs.starts[-1] != len(pairs.views) or (np.diff(pairs.starts) < 0).any():
        raise DataError("the view chunks of pairs must follow one another", got=pairs.starts[:5])
    for side in (pairs.left, pairs.right):
        if len(side) and (side.min() < 0 or side.max() >= chunks):
            raise UnknownNameError("a pair names a chunk that is not there", hint=f"There are {chunks}")
    if len(pairs.views) and (pairs.views.min() < 0 or pairs.views.max() >= views):
        raise UnknownNameError("a pair names a view chunk that is not there", hint=f"There are {views}")
    if not (np.isfinite(pairs.states) & (pairs.states >= 0)).all():
        raise DataError("the size of a partial state must be 0 or more")
    low, high = np.minimum(pairs.left, pairs.right).astype(np.int64), np.maximum(pairs.left, pairs.right)
    if len(np.unique(low * max(1, chunks) + high)) < len(pairs):
        raise DataError("a pair is listed twice", hint="Each stands once, with all view chunks that it changes")
    if len(np.unique(pairs.of_state * max(1, views) + pairs.views)) < len(pairs.views):
        raise DataError("a pair names a view chunk twice", hint="Add up its partial states")
