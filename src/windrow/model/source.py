"""Where dense data can come from: a file, another array, an ndarray, a computation. All look alike to a writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy.typing as npt

from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.schema import Schema

Blocks = Mapping[str, npt.NDArray[Any]]
"""Attribute name (or companion name, ``x__valid``) to the values of one box."""


class GridSource(Protocol):
    """Dense data readable box by box. It pickles, so that a Spark worker can read its own part."""

    @property
    def schema(self) -> Schema:
        """Dimensions (bounded, with chunk sizes that suit reading) and attributes of the data."""
        ...

    @property
    def labels(self) -> Mapping[str, Labels]:
        """Coordinate labels of those dimensions that have them, one label per cell."""
        ...

    def read(self, box: Box) -> Blocks:
        """The values of every attribute in ``box``, and the companion of every attribute that has one."""
        ...


class ChangedBlocks(dict[str, npt.NDArray[Any]]):
    """Blocks of which only some cells were changed, and how many."""

    def __init__(self, blocks: Blocks, cells: int) -> None:
        super().__init__(blocks)
        self.cells = cells
