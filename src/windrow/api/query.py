"""Lazy queries: built by ``Array.window`` and its kin, run by ``compute`` or ``store``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.evaluate import METHODS
from windrow.errors import DataError, MemoryLimitError
from windrow.model.schema import Schema
from windrow.model.window import Window
from windrow.operations.windows import WindowSource, compute
from windrow.plan.windows import WindowPlan
from windrow.storage.dense import DenseSnapshot

if TYPE_CHECKING:
    import xarray as xr

    from windrow.api.array import Array
    from windrow.api.batch import Report


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

    def compute(self) -> xr.Dataset:
        """The result, in memory."""
        from windrow.api.labelled import of_blocks

        source = self._source()
        engine = self.array._database.engine
        needed = 2 * source.plan.results.size * source.schema.cell_bytes
        if needed > engine.memory:
            raise MemoryLimitError(
                f"the result needs about {needed / 2**30:.1f} GB of memory",
                got=f"a limit of {engine.memory / 2**30:.1f} GB",
                hint="Use store(), or connect with a larger memory=",
            )
        blocks = compute(engine, source, source.plan.results)
        return of_blocks(source.schema, source.plan.results, blocks, source.labels)

    def store(self, name: str, batch: str | None = None) -> Report:
        """Write the result to an array, which is created if it is not there; nothing passes through this process."""
        database = self.array._database
        source = self._source()
        if name not in database:
            database.create(name, source.schema, labels=source.labels)
        return database.array(name).write(source, batch=batch)

    def _source(self) -> WindowSource:
        snapshot = self.array._snapshot()
        if not isinstance(snapshot, DenseSnapshot):
            raise DataError(f"array {self.array.name} is sparse", hint="Windows on sparse arrays are not there yet")
        plan = WindowPlan(
            snapshot.growing_schema, snapshot.box, self.window, self.aggregates, snapshot.label_items, self.method
        )
        return WindowSource(snapshot, plan)

    def __repr__(self) -> str:
        listed = ", ".join(f"{aggregate} as {name}" for name, aggregate in self.aggregates)
        return f"<windrow.WindowQuery {listed} from {self.array.name} {self.window}>"


def windowed(array: Array, extents: Mapping[str, Any], options: Mapping[str, Any]) -> Windowed:
    return Windowed(array, Window.of(array.schema, extents, **options))
