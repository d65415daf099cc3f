"""The rows that states are made of, group by group: one after the other, or runs of cells (``runs``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]
State = Mapping[str, Array]


class Ranges(NamedTuple):
    """The rows of the groups from ``begin`` to before ``end``: for each k from ``starts[k]`` to before ``stops[k]``."""

    begin: int
    end: int
    starts: Array
    stops: Array

    def widened(self) -> Ranges:
        """The same in 64 bits, of which most loops have their only version."""
        return self._replace(starts=self.starts.astype(np.int64), stops=self.stops.astype(np.int64))


class Groups(Protocol):
    """Values of rows, and which rows make a group. What is found of groups is spread over all that share it.

    There are ``few`` groups if they hold but some of the values, so that nothing should be done to all values. Narrow
    ranges are of 32 bits where these are enough.
    """

    @property
    def arguments(self) -> tuple[Array, ...]: ...
    @property
    def present(self) -> Mask | None: ...
    @property
    def groups(self) -> int: ...
    def there(self) -> Mask: ...
    @property
    def few(self) -> bool: ...
    @property
    def one_each(self) -> bool: ...
    def ranges(self) -> Iterator[Ranges]: ...
    def narrow_ranges(self) -> Iterator[Ranges]: ...
    def count_there(self, there: Mask) -> Int64Array: ...
    def spread(self, state: State) -> State: ...


class Rows(NamedTuple):
    """The values of rows, group by group; ``starts`` has where each group begins, and the end of the last."""

    arguments: tuple[Array, ...]
    present: Mask | None
    starts: Int64Array

    @property
    def groups(self) -> int:
        return len(self.starts) - 1

    @property
    def few(self) -> bool:
        return False

    @property
    def one_each(self) -> bool:
        return True

    def there(self) -> Mask:
        """Which rows have all arguments."""
        return values_there(self.arguments, self.present)

    def ranges(self) -> Iterator[Ranges]:
        ends = writable(self.starts)
        yield Ranges(0, self.groups, ends[None, :-1].copy(), ends[None, 1:].copy())

    def narrow_ranges(self) -> Iterator[Ranges]:
        return self.ranges()

    def count_there(self, there: Mask) -> Int64Array:
        """How many rows of each group are there."""
        from windrow.kernels.states.sums import count_groups

        counts = np.zeros(self.groups, np.int64)
        for _, _, starts, stops in self.ranges():
            count_groups(there, starts, stops, counts)
        return counts

    def spread(self, state: State) -> State:
        return state


def values_there(arguments: Sequence[Array], present: Mask | None) -> Mask:
    """Where all arguments have a value: NaN and times that are none are missing."""
    there = np.ones(np.size(arguments[0]), bool) if present is None else np.array(present, bool).reshape(-1)
    for values in arguments:
        flat = np.asarray(values).reshape(-1)
        if flat.dtype.kind in "fM":
            there &= flat == flat
    return there


def writable(values: Array) -> Array:
    """One flat array of which compiled code has one version, whatever memory it comes from."""
    flat: Array = np.require(np.asarray(values).reshape(-1), requirements=["C", "W"])
    return flat
