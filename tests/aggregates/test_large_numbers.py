"""Averages and deviations of whole numbers whose sums leave 64 bits: they are floats, and only sums overflow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import window_oracle
import windrow as wr

NAMES = ("avg", "var", "std", "var_pop", "std_pop", "skew", "kurtosis")
ROWS, COLUMNS = 4, 6
CELLS = [(i, j) for i in range(ROWS) for j in range(COLUMNS)]


def values_of(kind: str, low: bool) -> Any:
    """Numbers at the far end of a type, some of them apart."""
    ends = np.iinfo(kind)
    apart = np.random.default_rng(5).integers(0, 2**61, (ROWS, COLUMNS)).tolist()
    return np.array([[ends.min + a if low else ends.max - a for a in row] for row in apart], kind)


def asked() -> dict[str, Any]:
    return {name: wr.Aggregate(name, "x") for name in NAMES}


def rows_of(result: Any) -> list[dict[str, Any]]:
    if isinstance(result, pa.Table):
        return result.to_pylist()
    places = list(np.ndindex(*result.sizes.values()))
    return [
        {**dict(zip(result.sizes, place, strict=True)), **{name: float(result[name].values[place]) for name in NAMES}}
        for place in places
    ]


def stored(db: Any, values: Any, sparse: bool) -> Any:
    name = f"A{len(db.arrays())}"
    array = db.create(name, f"<x: {values.dtype}> [i=0:{ROWS - 1}:2, j=0:{COLUMNS - 1}:4]", sparse=sparse)
    if sparse:
        array.insert({"i": [i for i, _ in CELLS], "j": [j for _, j in CELLS], "x": values.reshape(-1)})
    else:
        array.write({"x": values})
    return array


Answers = Iterator[tuple[list[tuple[int, int]], dict[str, Any]]]


def windows(db: Any, values: Any, method: str, sparse: bool) -> Answers:
    found = stored(db, values, sparse).window(i=wr.between(-1, 1), j=wr.between(0, 2)).agg(method=method, **asked())
    for row in rows_of(found.compute()):
        yield [(i, j) for i, j in CELLS if abs(i - row["i"]) <= 1 and 0 <= j - row["j"] <= 2], row


def blocks(db: Any, values: Any, method: str, sparse: bool) -> Answers:
    for row in rows_of(stored(db, values, sparse).regrid(i=3, j=2).agg(method=method, **asked()).compute()):
        yield [(i, j) for i, j in CELLS if (i // 3, j // 2) == (row["i"], row["j"])], row


def totals(db: Any, values: Any, method: str, sparse: bool) -> Answers:
    name, items = stored(db, values, sparse).name, ", ".join(f"{name}(x) as {name}" for name in NAMES)
    yield CELLS, rows_of(db.query(f"select {items} from {name}").compute())[0]
    for row in rows_of(db.query(f"select {items} from {name} group by i").compute()):
        yield [cell for cell in CELLS if cell[0] == row["i"]], row


def frames(db: Any, values: Any, method: str, sparse: bool) -> Answers:
    here = np.arange(len(CELLS))
    found = {name: wr.framed(values.reshape(-1), name, lo=here - 5, hi=here + 3, method=method) for name in NAMES}
    for k in here:
        yield CELLS[max(0, k - 5) : k + 3], {name: column[k] for name, column in found.items()}


def check(found: Answers, values: Any) -> None:
    for cells, row in found:
        inside = [int(values[cell]) for cell in cells]
        square = math.fsum(float(value) ** 2 for value in inside) / len(inside)
        for name in NAMES:
            wanted = window_oracle.aggregate(name, None, inside, len(inside))
            near = {"avg": 1e-12 * math.sqrt(square), "skew": 1e-7, "kurtosis": 1e-7}.get(name)
            if near is None:
                near = 1e-9 * (square if name.startswith("var") else math.sqrt(square))
            found = math.nan if row[name] is None else row[name]
            assert found == pytest.approx(math.nan if wanted is None else wanted, rel=0, abs=near, nan_ok=True), name


@pytest.mark.parametrize("place", [windows, blocks, totals, frames], ids=lambda place: place.__name__)
@pytest.mark.parametrize("method", ["auto", "incremental", "naive"])
@pytest.mark.parametrize(("kind", "low"), [("int64", True), ("int64", False), ("uint64", False)])
def test_averages_and_deviations(local: Any, place: Callable[..., Answers], method: str, kind: str, low: bool) -> None:
    values = values_of(kind, low)
    for sparse in (False, True):
        check(place(local, values, method, sparse), values)


@pytest.mark.parametrize("method", ["auto", "incremental", "naive"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_only_sums_overflow(local: Any, method: str, sparse: bool) -> None:
    array = stored(local, values_of("int64", False), sparse)
    with pytest.raises(wr.DataError, match="overflows int64"):
        array.window(i=3, j=3).agg(method=method, s=wr.sum("x")).compute()
    with pytest.raises(wr.DataError, match="overflows int64"):
        local.query(f"select sum(x) from {array.name}").compute()
    with pytest.raises(wr.DataError, match="overflows int64"):
        wr.framed(values_of("int64", False).reshape(-1), "sum", lo=[0], hi=[9], method=method)
