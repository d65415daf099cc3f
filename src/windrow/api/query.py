"""Lazy queries: built by ``Array.window`` and its kin, run by ``compute`` or ``store``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.evaluate import METHODS
from windrow.errors import DataError, MemoryLimitError
from windrow.model.schema import Schema
from windrow.model.window import Window, regrid
from windrow.operations.windows import WindowSource, compute, stream
from windrow.plan.windows import WindowPlan

if TYPE_CHECKING:
    import pyarrow as pa
    import xarray as xr

    from windrow.api.array import Array
    from windrow.api.batch import Report
    from windrow.operations.cell_windows import CellWindowSource
    from windrow.operations.explain import WindowExplanation


@dataclass(frozen=True)
class Windowed:
    """An array with a window on it; ``agg`` says what to compute."""

    array: Array
    window: Window

    def agg(self, *, method: str = "auto", **aggregates: Aggregate) -> WindowQuery:
        """Named aggregates over the window: ``.agg(p=wr.percentile("t", 70), m=wr.max("t"))``.

        ``method`` is "auto" (the fastest), "incremental" (the papers' algorithm) or "naive".
        """
        if method not in METHODS:
            raise DataError("method must be one of " + ", ".join(METHODS), got=repr(method))
        if not aggregates:
            raise DataError("there is nothing to compute", hint='As in .agg(m=wr.max("a"))')
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise DataError(f"{name} is not an aggregate", got=repr(aggregate), hint='As in wr.max("a")')
        return WindowQuery(self.array, self.window, tuple(aggregates.items()), method)

    def __repr__(self) -> str:
        return f'<windrow {self.window} on {self.array.name}: .agg(m=wr.max("…")) computes something>'


@dataclass(frozen=True)
class WindowQuery:
    """Aggregates over a window of an array, not yet computed."""

    array: Array
    window: Window
    aggregates: tuple[tuple[str, Aggregate], ...]
    method: str = "auto"

    def __post_init__(self) -> None:
        _ = self.schema  # a wrong attribute, type or unit fails here, before any work

    @property
    def schema(self) -> Schema:
        """The schema of the result."""
        return self._source().schema

    def compute(self) -> xr.Dataset | pa.Table:
        """The result, in memory: an xarray.Dataset of a dense array, a pyarrow.Table of a sparse one."""
        source = self._source()
        engine = self.array._database.engine
        if not isinstance(source, WindowSource):
            from windrow.operations import computed_cells

            return computed_cells.compute(engine, source, source.plan.results)
        from windrow.api.labelled import of_blocks

        needed = 2 * source.plan.results.size * source.schema.cell_bytes
        if needed > engine.memory:
            raise MemoryLimitError(
                f"the result needs about {needed / 2**30:.1f} GB of memory",
                got=f"a limit of {engine.memory / 2**30:.1f} GB",
                hint="Use store(), or connect with a larger memory=",
            )
        blocks = compute(engine, source, source.plan.results)
        return of_blocks(source.schema, source.plan.results, blocks, source.labels)

    def stream(self) -> Iterator[xr.Dataset | pa.Table]:
        """The result piece by piece, each a box of it: for results that do not fit into memory."""
        source = self._source()
        engine = self.array._database.engine
        if isinstance(source, WindowSource):
            from windrow.api.labelled import of_blocks

            for box, blocks in stream(engine, source, source.plan.results):
                yield of_blocks(source.schema, box, blocks, source.labels)
        else:
            from windrow.operations import computed_cells

            yield from computed_cells.stream(engine, source, source.plan.results)

    def store(self, name: str, batch: str | None = None) -> Report:
        """Write the result to an array, which is created if it is not there; nothing passes through this process."""
        from windrow.api.transfer import undone_on_failure

        database = self.array._database
        source = self._source()
        created = name not in database
        if created:
            database.create(name, source.schema, sparse=self.array.sparse, labels=source.labels)
        target = database.array(name)
        with undone_on_failure(target, created):
            return target.insert(source, batch=batch) if self.array.sparse else target.write(source, batch=batch)

    def explain(self) -> WindowExplanation:
        """How it will be computed: strategy, sweep axis, blocks, halo factor, memory and estimated cost."""
        from windrow.operations.explain import explain

        return explain(self.array._database.engine, self._source(), self._text())

    def plot(self, path: str | Path, attribute: str | None = None, kind: str | None = None) -> Path:
        """Compute it and draw one attribute into a file: a "map", a "line" or a "histogram"."""
        from windrow.api.plotting import plot, require_matplotlib

        require_matplotlib()
        return plot(self.compute(), path, attribute, kind, self.schema.dimension_names)

    def _source(self) -> WindowSource | CellWindowSource:
        from windrow.storage.dense import DenseSnapshot

        now = self.array._now()
        snapshot = now._snapshot()
        if isinstance(snapshot, DenseSnapshot):
            plan = self._plan(snapshot.growing_schema, snapshot.box, snapshot.label_items)
            return WindowSource(snapshot, plan)
        from windrow.operations.cell_windows import CellWindowSource

        return CellWindowSource(snapshot, self._plan(snapshot.schema, snapshot.box, tuple(now.labels.items())))

    def _plan(self, schema: Schema, box: Any, labels: Any) -> WindowPlan:
        return WindowPlan(schema, box, self.window, self.aggregates, labels, self.method)

    def _text(self) -> str:
        listed = ", ".join(f"{aggregate} as {name}" for name, aggregate in self.aggregates)
        return f"select {listed} from {self.array.name} {self.window}"

    def __repr__(self) -> str:
        return f"<windrow query, not yet computed: {self._text()}>"


def windowed(array: Array, extents: Mapping[str, Any], options: Mapping[str, Any]) -> Windowed:
    return Windowed(array, Window.of(array.schema, extents, **options))


def regridded(array: Array, sizes: Mapping[str, Any], options: Mapping[str, Any]) -> Windowed:
    return Windowed(array, regrid(array.schema, sizes, **options))
