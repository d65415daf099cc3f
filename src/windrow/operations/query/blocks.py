"""Cutting computed results into blocks, one a task: whole chunks, small halos, memory within the limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from windrow.errors import MemoryLimitError
from windrow.execution.engine import Engine
from windrow.execution.executor import Executor
from windrow.model.box import Box
from windrow.model.grid import ChunkGrid
from windrow.model.schema import Schema
from windrow.model.source import Blocks, GridSource

TASK_BYTES = 768 * 2**20
"""What a task may hold, unless one result chunk needs more; a worker's memory may set a lower limit."""

TASKS_PER_WORKER = 4
"""More tasks balance better, and less is repeated when one is lost; but each reads its own halo."""

MORE_READING = 1.2
"""How much more may be read in all for the sake of smaller tasks."""


@runtime_checkable
class ComputedSource(GridSource, Protocol):
    """Dense data that a query reads or computes when it is read: a stored array, or a step on another source."""

    def read(self, box: Box, attributes: Iterable[str] | None = None) -> Blocks:
        """The values in ``box`` of the named attributes (all by default) and of their companions."""
        ...

    @property
    def keep_whole(self) -> tuple[int, ...]:
        """The axes that are best not cut, because a cut there is paid for by a halo."""
        ...

    @property
    def reading_grid(self) -> ChunkGrid:
        """The chunks along which results are best cut: those stored below, as long as cells keep their places.

        A selection's own chunks begin where it does, so blocks of them would read stored chunks more than once.
        """
        ...

    def task_bytes(self, results: Box) -> int:
        """Estimated peak memory of computing a box of results, halo and temporaries included."""
        ...

    def touched_bytes(self, results: Box, attributes: Iterable[str] | None = None) -> int:
        """Bytes read and written for a box of some attributes, which decide where it runs."""
        ...

    def cells_decoded(self, results: Box) -> int:
        """How many stored cells are read for a box of results, in whole chunks."""
        ...


def row_bytes(schema: Schema) -> int:
    """Bytes of a sparse cell in memory, coordinates included."""
    return 8 * schema.ndim + schema.cell_bytes


def computed_blocks(source: ComputedSource, grid: ChunkGrid, box: Box, executor: Executor) -> list[Box]:
    """``box`` in blocks along the borders of ``grid``; ``grid`` and ``box`` count cells as ``source`` does."""
    limit = min(TASK_BYTES, executor.worker_memory)
    cells = -(-box.size // executor.workers)
    while True:
        blocks = grid.blocks(box, cells, source.keep_whole)
        if not blocks or _largest(source, blocks) <= limit or cells <= grid.chunk_cells:
            break
        cells = max(grid.chunk_cells, cells // 2)
    if blocks and _largest(source, blocks) > executor.worker_memory:
        raise MemoryLimitError(
            f"one block of the results needs about {_largest(source, blocks) / 2**20:,.0f} MB",
            got=f"{executor.worker_memory / 2**20:,.0f} MB a worker",
            hint="Use a smaller window, smaller groups or smaller chunks, or connect with a larger memory=",
        )
    allowed = MORE_READING * _decoded(source, blocks)
    while len(blocks) < TASKS_PER_WORKER * executor.workers and cells > grid.chunk_cells:
        cells = max(grid.chunk_cells, cells // 2)
        smaller = grid.blocks(box, cells, source.keep_whole)
        if _decoded(source, smaller) > allowed:
            break
        blocks = smaller
    return blocks


def _largest(source: ComputedSource, blocks: Sequence[Box]) -> int:
    return max(map(source.task_bytes, blocks))


def _decoded(source: ComputedSource, blocks: Sequence[Box]) -> int:
    return sum(map(source.cells_decoded, blocks))


def too_large(needed: int, engine: Engine) -> MemoryLimitError:
    return MemoryLimitError(
        f"the result needs about {needed / 2**30:.1f} GB of memory",
        got=f"a limit of {engine.memory / 2**30:.1f} GB",
        hint="Use store(), or connect with a larger memory=",
    )
