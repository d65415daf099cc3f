"""What a window query will do: strategies, blocks, halo, memory, cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.execution.engine import Engine
from windrow.operations.query.blocks import computed_blocks
from windrow.operations.query.explain_paths import Path, names_of
from windrow.operations.query.windows import WindowSource
from windrow.plan.cost import Asked, Estimate, cell_estimate, estimate
from windrow.plan.rewriting import Considered
from windrow.plan.windows import WindowPlan, needed_attributes

if TYPE_CHECKING:
    from windrow.operations.query.sparse_windows import CellWindowSource

READ_SPEED = 600e6
"""Bytes a second that a worker reads and decodes."""


@dataclass(frozen=True)
class WindowExplanation:
    """The plan of a window query; prints as a few lines, and its parts can be asked for."""

    query: str
    strategies: tuple[tuple[str, str, Estimate], ...]
    """Result name, aggregate, and how it is computed."""
    dimensions: tuple[str, ...]
    engine: str
    workers: int
    results: int
    blocks: int
    block_shape: tuple[int, ...]
    halo_factor: float
    cells_read: int
    bytes_read: int
    memory: int
    """Bytes that one task is estimated to hold at most."""
    memory_limit: int
    seconds: float
    considered: tuple[Considered, ...] = ()
    """The views that might have served."""
    paths: tuple[Path, ...] = ()
    """The way that it takes, and why no other."""

    @property
    def path(self) -> str:
        """The way that it takes, in a word."""
        return names_of(self.paths)

    def __str__(self) -> str:
        lines = [self.query]
        for name, aggregate, strategy in self.strategies:
            along = "" if strategy.sweep is None else f" [sweeps {self.dimensions[strategy.sweep]}]"
            lines.append(f"  {name} = {aggregate}: {strategy.text}{along}")
            lines += [f"    {line}" for line in strategy.candidates]
        lines += [f"  view      {view.line()}" for view in self.considered]
        lines += [line for path in self.paths if path.others for line in path.lines()]  # kernels are told above
        shape = "×".join(map(str, self.block_shape))
        where = "on Spark" if self.engine == "spark" else "in this process"
        lines += [
            f"  blocks    {self.blocks} of up to {shape} results, {where}, {self.workers} at a time",
            f"  reads     {self.cells_read:,} cells, {size_text(self.bytes_read)}; halo factor {self.halo_factor:.2f}",
            f"  memory    {size_text(self.memory)} a task; a worker may use {size_text(self.memory_limit)}",
            f"  estimate  {seconds_text(self.seconds)} for {self.results:,} results",
        ]
        return "\n".join(lines)

    __repr__ = __str__


def explain(engine: Engine, source: WindowSource | CellWindowSource, query: str) -> WindowExplanation:
    """The plan that ``compute`` would follow now; Spark is not started to find out."""
    plan = source.plan
    whole = plan.results
    on_spark = engine.goes_to_spark(source.touched_bytes(whole))
    executor = engine.spark() if on_spark and engine.spark_is_running else engine.local
    if isinstance(source, WindowSource):
        blocks = computed_blocks(source, source.schema.grid, whole, executor)
        present = plan.bounds.size
        strategies = _dense_strategies(plan)
    else:
        from windrow.operations.query.sparse_run import cell_blocks

        blocks = cell_blocks(source, source.schema.grid, whole, executor)
        present = source.cells_decoded(whole)
        strategies = [(name, str(aggregate), cell_estimate(plan, present)) for name, aggregate in plan.aggregates]
    cells = sum(map(source.cells_decoded, blocks))
    size = sum(plan.schema.attribute(name).type.itemsize for name in needed_attributes(plan.aggregates))
    results = whole.size if isinstance(source, WindowSource) else source.cells_in(whole)
    computing = sum(strategy.nanoseconds for _, _, strategy in strategies) / 1e9
    moved = (cells * size + results * source.schema.cell_bytes) / READ_SPEED
    return WindowExplanation(
        query,
        tuple(strategies),
        plan.schema.dimension_names,
        "spark" if on_spark else "local",
        executor.workers,
        results,
        len(blocks),
        max((block.shape for block in blocks), default=whole.shape),
        cells / max(1, present),
        cells,
        cells * size,
        max(map(source.task_bytes, blocks), default=0),
        executor.worker_memory,
        (computing + moved) / min(executor.workers, max(1, len(blocks))),
    )


def _dense_strategies(plan: WindowPlan) -> list[tuple[str, str, Estimate]]:
    axes = plan.axes(plan.results)
    shape = tuple(axis.cells if axis.take is None else len(axis.take) for axis in axes)
    sweeps = [axis.sweep for axis in axes]
    asked = Asked(plan.method, plan.strategy, plan.swept)
    strategies = []
    for name, aggregate in plan.aggregates:
        dtype = plan.schema.attribute(aggregate.attribute).type.dtype if aggregate.attribute else None
        strategies.append((name, str(aggregate), estimate(aggregate, asked, shape, dtype, sweeps)))
    return strategies


def size_text(count: int) -> str:
    if count < 2**20:
        return f"{count / 2**10:,.1f} kB"
    return f"{count / 2**20:,.0f} MB" if count < 10 * 2**30 else f"{count / 2**30:,.1f} GB"


def seconds_text(seconds: float) -> str:
    if seconds < 1:
        return f"{max(seconds * 1000, 0.1):.3g} ms"
    return f"{seconds:.3g} s" if seconds < 600 else f"{seconds / 60:.0f} min"
