"""A survey in the store with views on it, and batches for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.aggregates.aggregate import avg, count, max, sum
from windrow.api.array import Array
from windrow.api.database import Database, connect
from windrow.api.query import Query
from windrow.api.views import View
from windrow.bench.joins.memory import PTF_5, PTF_25
from windrow.bench.race import processor_seconds
from windrow.bench.timing import Action
from windrow.bench.views.scale import ViewsBench
from windrow.errors import DataError
from windrow.samples import SURVEY_SCHEMA, survey_nights

PATCH, REBUILD = "batch with view", "rebuild"
LATEST, ANYWHERE = "latest nights", "anywhere"


def query_of(name: str, array: Array) -> Query:
    """The queries of the views that are measured."""
    if name == "PTF5":
        return array.neighbours(PTF_5).agg(n=count(), s=sum("mag"), mean=avg("mag"))
    if name == "PTF25":
        return array.neighbours(PTF_25).agg(n=count(), s=sum("mag"))
    return array.neighbours(PTF_5).agg(faintest=max("mag"))


@dataclass(frozen=True)
class Batches:
    """What is there first, and batches of so many cells that come after it."""

    stored: pa.Table
    batches: list[pa.Table]

    @classmethod
    def of(cls, where: str, size: int, batch: int, number: int) -> Batches:
        """A survey of which some batches come later: of its last nights, or from anywhere."""
        table = survey_nights(size).table()
        if where == ANYWHERE:
            table = table.take(pa.array(np.random.default_rng(1).permutation(table.num_rows)))
        later = batch * number
        if later >= table.num_rows:
            raise DataError("the batches leave nothing to begin with", got=f"{later} of {table.num_rows} cells")
        cut = table.num_rows - later
        return cls(table.slice(0, cut), [table.slice(cut + batch * k, batch) for k in range(number)])


@contextmanager
def survey(bench: ViewsBench, folder: str, stored: pa.Table, views: Sequence[str]) -> Iterator[tuple[Database, Array]]:
    """A database with the cells and views on them, which are always patched."""
    with connect(bench.folder / folder, engine="local", progress=False) as database:
        array = database.create("PTF", SURVEY_SCHEMA, sparse=True)
        array.insert(stored)
        for name in views:
            database.create_view(name, query_of(name, array), maintain="incremental")
        yield database, array


def best(actions: Sequence[Action]) -> float:
    """The least processor time of several."""
    return min(processor_seconds(action) for action in actions)


def patch_and_rebuild(bench: ViewsBench, array: Array, views: Sequence[View], batches: Batches) -> dict[str, float]:
    """A batch to warm up, then batches, then as many rebuilds of all views; what was patched is checked between."""
    array.insert(batches.batches[0])
    found = {PATCH: best([lambda table=table: array.insert(table) for table in batches.batches[1:]])}  # type: ignore[misc]
    for view in views:
        checked = view.check()
        if not checked.ok:
            raise DataError("a patched view is not what its query gives", got=str(checked))

    def rebuild() -> None:
        for view in views:
            view.refresh(full=True)

    found[REBUILD] = best([rebuild] * (len(batches.batches) - 1))
    return found
