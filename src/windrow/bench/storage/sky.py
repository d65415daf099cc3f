"""Nights of detections, as the benchmarks of small batches store them, and what a batch of them costs."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.api.array import Array
from windrow.api.database import Database
from windrow.bench.report import Bound, Measurement
from windrow.model.schema import CHUNK_COLUMN
from windrow.storage.cells import to_stored
from windrow.storage.encoding import PartEncoding
from windrow.storage.part_writing import GROUP_CELLS
from windrow.storage.places import directory_bytes

SCHEMA = "<mag: float32, flux: float32> [time=1:153064:112, ra=1:100000:100, dec=1:50000:50]"
FIELDS, FIELDS_A_ROW, FIELD_STEP = 200, 20, 4_900
FIELDS_A_NIGHT, FIELD_CELLS = 20, 2_500
NIGHT = FIELDS_A_NIGHT * FIELD_CELLS
ROUNDS = 3
Cells = dict[str, npt.NDArray[Any]]


class Sky:
    """Nights of detections in a few of many fields, each a small patch of the sky."""

    def __init__(self, seed: int = 1) -> None:
        self.dice = np.random.default_rng(seed)
        numbers = np.arange(FIELDS)
        self.corners = 1 + FIELD_STEP * np.stack([numbers % FIELDS_A_ROW, numbers // FIELDS_A_ROW], axis=1)
        self.nights = 0

    @property
    def fields(self) -> npt.NDArray[np.int64]:
        """The fields of the next night."""
        return (self.nights * FIELDS_A_NIGHT + np.arange(FIELDS_A_NIGHT)) % FIELDS

    def night(self, cells: int = NIGHT) -> Cells:
        """New cells: the next night, in the next fields."""
        fields = self.fields
        self.nights += 1
        each = cells // FIELDS_A_NIGHT
        places = np.concatenate([self.dice.choice(700 * 400, each, replace=False) for _ in fields])
        corner = np.repeat(self.corners[fields], each, axis=0)
        return self.with_values(
            {
                "time": np.full(len(places), 1 + 30 * self.nights, np.int64),
                "ra": corner[:, 0] + places // 400,
                "dec": corner[:, 1] + places % 400,
            }
        )

    def with_values(self, places: Cells) -> Cells:
        count = len(places["time"])
        values = {name: np.round(self.dice.normal(20, 2, count), 3).astype(np.float32) for name in ("mag", "flux")}
        return places | values


class Stored:
    """The places of the cells that an array had at the beginning, to draw from."""

    def __init__(self, array: Array, dice: np.random.Generator) -> None:
        table = array.read([])
        self.places = {name: table.column(name).to_numpy() for name in ("time", "ra", "dec")}
        self.dice = dice
        fields = (self.places["ra"] - 1) // FIELD_STEP + (self.places["dec"] - 1) // FIELD_STEP * FIELDS_A_ROW
        order = np.argsort(fields, kind="stable")
        self._by_field = np.split(order, np.searchsorted(fields[order], np.arange(1, FIELDS)))

    def pick(self, count: int, fields: npt.NDArray[np.int64] | None = None) -> Cells:
        """Some places, of all cells or of those in some fields, over all nights."""
        among: Any = len(self.places["time"])
        if fields is not None:
            among = np.concatenate([self._by_field[field] for field in fields])
        chosen = np.sort(self.dice.choice(among, count, replace=False))
        return {name: column[chosen] for name, column in self.places.items()}


def join_cells(*pieces: Cells) -> Cells:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


@dataclass(frozen=True)
class Cost:
    """Processor seconds and bytes written."""

    seconds: float
    bytes: int


def measure_cost(action: Callable[[], object], folder: Path) -> Cost:
    before, start = directory_bytes(folder), time.process_time()
    action()
    return Cost(time.process_time() - start, directory_bytes(folder) - before)


def write_bare(array: Array, cells: Cells, path: Path) -> Cost:
    """The same cells as one Parquet file, sorted alike and with the same settings."""
    schema = array.schema
    table = pa.table({name: pa.array(cells[name]) for name in (*schema.dimension_names, *schema.attribute_names)})
    ordinals = schema.grid.ordinals([cells[name] for name in schema.dimension_names])
    order = np.lexsort([*(cells[name] for name in schema.dimension_names[::-1]), ordinals])
    stored = to_stored(table.take(pa.array(order)), ordinals[order], schema)
    assert stored.column_names[0] == CHUNK_COLUMN
    options = PartEncoding.of_cells(stored.slice(0, GROUP_CELLS), schema).options(schema)
    write = functools.partial(pq.write_table, stored, path, row_group_size=GROUP_CELLS, **options)
    seconds = min(processor_seconds(write) for _ in range(ROUNDS))
    return Cost(seconds, path.stat().st_size)


def processor_seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def build(database: Database, name: str, sky: Sky, cells: int) -> Array:
    """An array of that many cells, compacted, as it is before the changes that are measured."""
    array = database.create(name, SCHEMA, sparse=True)
    grow(array, sky, cells)
    return array


def grow(array: Array, sky: Sky, cells: int) -> None:
    """Add nights until there are that many cells, and compact."""
    lacking = max(0, cells - array.versions()[-1].cells) // NIGHT
    for start in range(0, lacking, 20):
        array.insert(join_cells(*(sky.night() for _ in range(min(20, lacking - start)))))
    array.compact()


def line(
    what: str, value: float, unit: str, target: float | None, detail: str, bound: Bound = "at most"
) -> Measurement:
    return Measurement("batches", what, value, unit, target, bound, detail)
