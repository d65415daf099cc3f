"""The values that storage tests write, and how what is read is compared with them.

Expected contents are plain dictionaries from coordinates to values, kept apart from everything windrow computes.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import xarray as xr

import windrow as wr
from windrow.model.types import TYPES

Coordinates = tuple[int, ...]
Cells = dict[Coordinates, dict[str, Any]]

EVERY_TYPE = ", ".join(
    [f"{name}_: {name}" for name in TYPES] + [f"{name}_null: {name} null" for name in TYPES],
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXTS = ("", "wheat", "Ährenfeld", "麦畑", "🌾", "a\nb", " ", "null", "NaN")
_FLOATS = (math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -2.25)


def plain(value: Any) -> Any:
    """A value in the one form that is compared: None if missing, floats by their very digits, times in microseconds."""
    if isinstance(value, np.generic):
        value = value.astype("datetime64[us]").astype(np.int64) if value.dtype.kind == "M" else value.item()
        if isinstance(value, np.integer):
            return None if np.isnat(value.view("datetime64[us]")) else ("time", int(value))
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        since = aware - _EPOCH
        return ("time", (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds)
    if isinstance(value, float):
        return None if math.isnan(value) else value.hex()
    return value


def random_value(attribute: wr.Attribute, random: np.random.Generator) -> Any:
    """Any value an attribute can hold, odd ones often: a Python value, None where it is missing."""
    if attribute.nullable and random.random() < 0.25:
        return None
    kind = attribute.type.dtype.kind
    if kind == "b":
        return bool(random.integers(2))
    if kind == "T":
        return _TEXTS[random.integers(len(_TEXTS))]
    if kind == "M":
        return np.datetime64(int(random.integers(-(10**16), 10**16)), "us").item()
    if kind == "f":
        value = _FLOATS[random.integers(len(_FLOATS))] if random.random() < 0.5 else random.normal()
        value = float(attribute.type.dtype.type(value))
        return None if math.isnan(value) else value
    limits = np.iinfo(attribute.type.dtype)
    if random.random() < 0.3:
        return int(limits.min if random.random() < 0.5 else limits.max)
    return int(random.integers(limits.min, limits.max, dtype=attribute.type.dtype, endpoint=True))


def positions(box: wr.Box) -> list[Coordinates]:
    """All cells of a box in row-major order."""
    return list(itertools.product(*(range(lo, hi + 1) for lo, hi in zip(box.lo, box.hi, strict=True))))


def random_cells(schema: wr.Schema, places: Iterable[Coordinates], seed: int) -> Cells:
    random = np.random.default_rng(seed)
    return {at: {a.name: random_value(a, random) for a in schema.attributes} for at in places}


def as_blocks(schema: wr.Schema, box: wr.Box, cells: Cells) -> dict[str, Any]:
    """The cells of a whole box as ndarrays, missing values masked."""
    blocks: dict[str, Any] = {}
    for attribute in schema.attributes:
        values = [cells[at][attribute.name] for at in positions(box)]
        missing = [value is None for value in values]
        filled = [attribute.type.fill if value is None else value for value in values]
        block = np.array(filled, attribute.type.dtype).reshape(box.shape)
        blocks[attribute.name] = np.ma.array(block, mask=np.reshape(missing, box.shape)) if _is_masked(block) else block
        if attribute.type.dtype.kind == "T":  # NumPy cannot mask its own strings
            listed = np.empty(len(values), object)
            listed[:] = values
            blocks[attribute.name] = listed.reshape(box.shape)
    return blocks


def _is_masked(block: Any) -> bool:
    return block.dtype.kind not in "fT"


def as_table(schema: wr.Schema, cells: Cells) -> pa.Table:
    """Cells as a table in no particular order."""
    places = list(cells)
    np.random.default_rng(len(places)).shuffle(places)
    columns: dict[str, Any] = {
        name: pa.array([place[axis] for place in map(tuple, places)], pa.int64())
        for axis, name in enumerate(schema.dimension_names)
    }
    for attribute in schema.attributes:
        kind = {"string": pa.string(), "datetime": pa.timestamp("us"), "bool": pa.bool_()}.get(attribute.type.name)
        values = [cells[tuple(at)][attribute.name] for at in places]
        columns[attribute.name] = pa.array(values, kind or pa.from_numpy_dtype(attribute.type.dtype))
    return pa.table(columns)


def contents(array: wr.Array, attributes: Iterable[str] | None = None, /, **selection: object) -> Cells:
    """What ``read`` gives, as plain values; cell numbers are taken from the box, so labels do not disturb."""
    result = array.read(attributes, **selection)
    names = list(array.schema.attribute_names if attributes is None else attributes)
    if isinstance(result, pa.Table):
        return cells_of_rows(result.to_pylist(), array.schema.dimension_names, names)
    return cells_of_dataset(result, selected_box(array, selection), names)


def selected_box(array: wr.Array, selection: Mapping[str, Any]) -> wr.Box:
    """The box that a selection by index names."""
    ends = [
        selection.get(name, (lo, hi)) for name, lo, hi in zip(array.schema.dimension_names, *_ends(array), strict=True)
    ]
    pairs = [end if isinstance(end, tuple) else (end, end) for end in ends]
    return wr.Box(tuple(lo for lo, _ in pairs), tuple(hi for _, hi in pairs))


def _ends(array: wr.Array) -> tuple[Coordinates, Coordinates]:
    return array.box.lo, array.box.hi


def cells_of_rows(rows: Iterable[Mapping[str, Any]], dimensions: Iterable[str], names: Iterable[str]) -> Cells:
    dimensions, names = list(dimensions), list(names)
    result: Cells = {}
    for row in rows:
        at = tuple(row[name] for name in dimensions)
        assert at not in result, f"two cells at {at}"
        result[at] = {name: plain(row[name]) for name in names}
    return result


def cells_of_dataset(dataset: xr.Dataset, box: wr.Box, names: Iterable[str]) -> Cells:
    assert tuple(dataset.sizes.values()) == box.shape
    flat = {name: dataset[name].values.reshape(-1) for name in names}
    valid = {name: dataset[f"{name}__valid"].values.reshape(-1) for name in names if f"{name}__valid" in dataset}
    return {
        at: {name: plain(flat[name][row]) if valid.get(name, _always)[row] else None for name in names}
        for row, at in enumerate(positions(box))
    }


class _Always:
    def __getitem__(self, _row: int) -> bool:
        return True


_always: Any = _Always()


def expected(cells: Cells, attributes: Iterable[str] | None = None) -> Cells:
    """Written values in the form in which contents are compared."""
    return {
        at: {name: plain(value) for name, value in row.items() if attributes is None or name in attributes}
        for at, row in cells.items()
    }


def empty_cell(schema: wr.Schema) -> dict[str, Any]:
    """What a dense cell holds that was never written."""
    return {
        a.name: None if a.can_be_missing else (False if a.type.name == "bool" else plain(a.type.fill))
        for a in schema.attributes
    }


def inside(box: wr.Box, at: Coordinates) -> bool:
    return all(lo <= cell <= hi for lo, cell, hi in zip(box.lo, at, box.hi, strict=True))


def by_chunk(array: wr.Array) -> dict[Coordinates, Cells]:
    """What is read, sorted into chunks by plain arithmetic."""
    result: dict[Coordinates, Cells] = {}
    dimensions = array.schema.dimensions
    for at, row in contents(array).items():
        key = tuple((cell - d.lo) // d.chunk for cell, d in zip(at, dimensions, strict=True))
        result.setdefault(key, {})[at] = row
    return result


def check_chunks(array: wr.Array) -> None:
    """The chunk metadata says what a recount says; a dense chunk that was never written has no entry."""
    chunks, grid = array.chunks(), array.schema.grid
    keys = [tuple(grid.key(int(ordinal))) for ordinal in chunks.ordinals]
    assert len(set(keys)) == len(keys)
    told = {
        key: (int(chunks.cells[row]), tuple(chunks.lo[row].tolist()), tuple(chunks.hi[row].tolist()))
        for row, key in enumerate(keys)
    }
    found = by_chunk(array)
    counted = {
        key: (len(cells), tuple(map(min, zip(*cells, strict=True))), tuple(map(max, zip(*cells, strict=True))))
        for key, cells in found.items()
    }
    if not array.sparse:
        empty = empty_cell(array.schema)
        written = {key for key, cells in found.items() if any(row != empty for row in cells.values())}
        assert written <= set(told)
        counted = {key: counted[key] for key in told}
    if array.sparse:  # of a part with dead cells the bounds are those it was written with, until it is folded
        assert told.keys() == counted.keys()
        for key, (cells, lo, hi) in counted.items():
            assert told[key][0] == cells
            assert grid.box_of(key) == grid.box_of(key) | wr.Box(told[key][1], told[key][2])
            assert wr.Box(told[key][1], told[key][2]) == wr.Box(told[key][1], told[key][2]) | wr.Box(lo, hi)
    else:
        assert told == counted
    version = next(version for version in array.versions() if version.number == array.version)
    assert version.cells == sum(len(cells) for cells in found.values())
    check_bytes(array, keys)


def check_bytes(array: wr.Array, keys: list[Coordinates]) -> None:
    chunks, location = array.chunks(), array.location()
    if array.sparse:
        from deltalake import DeltaTable

        table = DeltaTable(location.path, version=int(location.version))
        sizes = [os.path.getsize(uri.removeprefix("file://")) for uri in table.file_uris()]
        # A part's bytes are shared out among its chunks, each share rounded; chunks without live cells have none.
        assert int(chunks.bytes.sum()) - sum(sizes) <= len(chunks) * max(1, len(sizes))
        return
    stored = stored_bytes(location)
    assert chunks.bytes.tolist() == [stored.get(key, 0) for key in keys]


def stored_bytes(location: wr.Location) -> dict[Coordinates, int]:
    """Encoded bytes of each chunk of all variables of a dense version, asked of the store itself."""
    import icechunk
    import zarr
    from zarr.core.sync import sync

    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(location.path))
    store = repository.readonly_session(snapshot_id=location.version).store
    dimensions = {n for _, a in zarr.open_group(store, mode="r").arrays() for n in a.metadata.dimension_names}

    async def sizes() -> dict[Coordinates, int]:
        result: dict[Coordinates, int] = {}
        async for name in store.list():
            variable, _, key = name.partition("/c/")
            if key and variable not in dimensions:
                at = tuple(map(int, key.split("/")))
                result[at] = result.get(at, 0) + await store.getsize(name)
        return result

    return sync(sizes())


@contextmanager
def abandoned(database: wr.Database, batch_id: str | None = None) -> Iterator[wr.Batch]:
    """A batch that fails at its end, after its stores were written."""
    with suppress(ZeroDivisionError), database.batch(batch_id) as batch:
        yield batch
        raise ZeroDivisionError
