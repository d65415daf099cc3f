"""Views that do not depend on a dimension: stored by position, and in all else as if each cell had a row of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import windrow as wr
from windrow.storage.sparse import SparseSnapshot

from .checking import assert_same_result, assert_way, damage_states, read

CUBE = "<x: float64, k: int64 null> [time=1:40:8, ra=1:6:3, dec=1:6:3]"
AROUND = "neighbours Linf(1) on (ra, dec), time any"
JOINED = "similarity join B R on L.ra = R.ra and L.dec = R.dec"
BY = "group by L.time, L.ra, L.dec"
QUERIES = {
    "counts": f"select count(*) as n, count(k) as c, sum(k) as s from A {AROUND}",
    "floats": f"select sum(x) as s, avg(x) as a, var(x) as v, min(x) as lo, max(x) as hi from A {AROUND}",
    "ranks": f"select median(x) as m, percentile(k, 70) as p from A {AROUND}",
    "no state": f"select mode(k) as m, count(*) as n from A {AROUND}",
    "first": f"select first(k) as f, last(x) as l from A {AROUND}",
    "few": f"select sum(k) as s from A {AROUND} min count 9",
    "some cells": f"select count(*) as n from (select * from A where k > 3) {AROUND}",
    "a box": f"select count(*) as n, max(k) as m from (select * from A where time between 5 and 30) {AROUND}",
    "inner": f"select count(*) as n, sum(R.x) as s from A L {JOINED} with shape L1(1) {BY}",
    "left": f"select count(*) as n, max(R.x) as m from A L left {JOINED} with shape L1(1) {BY}",
    "beside": f"select count(*) as n, max(R.k) as m from A L {JOINED} with shape offsets ((1, 0), (0, -1)) {BY}",
    "filtered": f"select count(*) as n from A L {JOINED} and R.k > 2 with shape L1(1) where L.k > 2 {BY}",
    "by place": f"select sum(R.x * L.ra) as s from A L {JOINED} and R.k > L.dec with shape L1(1) {BY}",
    "on top": f"select n * 2 as d from (select count(*) as n, min(k) as m from A {AROUND}) where n > 8 and ra > 1",
    "everything": "select count(*) as n, sum(x) as s from A neighbours time any, ra any, dec any",
    "an old version": f"select count(*) as n from A@1 L {JOINED} with shape L1(1) {BY}",
}
CELLS = {
    "an attribute": f"select sum(L.x * R.x) as s from A L {JOINED} with shape L1(1) {BY}",
    "a condition": f"select count(*) as n from A L {JOINED} and R.k > L.k with shape L1(1) {BY}",
    "a dimension": f"select sum(R.x * L.time) as s from A L {JOINED} with shape L1(1) {BY}",
    "itself": f"select count(*) as n from A {AROUND}, excluding self",
    "the nearest": f"select count(*) as n from A L {JOINED} with shape L1(1) nearest 1 {BY}",
    "a range": "select count(*) as n from A neighbours Linf(1) on (ra, dec), time between -5 and 5",
    "above": f"select n + time as d from (select count(*) as n from A {AROUND})",
    "chosen above": f"select n from (select count(*) as n from A {AROUND}) where time < 20",
    "groups": f"select count(*) as n from A L {JOINED} with shape L1(1) group by L.ra, L.dec",
}
"""Views whose cells have results of their own."""


READS = (
    "select n, ra from V where n > 1",
    "select sum(n) as s from V",
    "select count(*) as c from V",
    "select max(n) as m from V group by time",
    "select max(n) as m from V window (time 3)",
    "select n from V order by n desc limit 3",
    "select count(*) as c from V neighbours L1(1)",
)


class Sky:
    """Two arrays, and views each beside a twin that has a row for every cell."""

    rounds = 1

    def __init__(self, database: Any, seed: int = 1) -> None:
        self.database, self.random = database, np.random.default_rng(seed)
        self.names: list[str] = []
        self.A = database.create("A", CUBE, sparse=True)
        self.B = database.create("B", CUBE.replace("time=1:40:8, ", ""), sparse=True)
        self.A.insert(self.cells(60))
        self.B.insert(self.cells(14, 1))

    def cells(self, count: int, times: int = 40) -> dict[str, Any]:
        places = self.random.permutation(times * 36)[:count]
        found = {"time": places // 36 + 1, "ra": places // 6 % 6 + 1, "dec": places % 6 + 1}
        values = {
            "x": self.random.choice([0.5, 1.25, -3.0, 1e9, np.nan], count),
            "k": [None if k < 0 else int(k) for k in self.random.integers(-1, 8, count)],
        }
        return {name: column for name, column in found.items() if times > 1 or name != "time"} | values

    def view(self, name: str, query: str, **settings: Any) -> Any:
        self.database.create_view(f"{name}_twin", query.replace("V ", "V_twin "), store="cells", **settings)
        made = self.database.create_view(name, query, **settings)
        self.names.append(name)
        return made

    def changes(self) -> Iterator[None]:
        """Changes of every kind, one after the other."""
        sky, stars = self.A, self.B
        for step in range(self.rounds):
            yield sky.insert(self.cells(6))
            yield stars.insert(self.cells(3, 1))
            yield sky.delete(f"time = {self.random.integers(1, 41)} or (ra = {step + 2} and dec < 4)")
            yield sky.update({"x": "x + 1", "k": "k + 1"}, "k < 4")
            yield stars.delete("k > 5")
            yield sky.update({"x": "x"})
            with self.database.batch() as batch:
                batch.insert("A", self.cells(3))
                batch.delete("B", f"ra = {step + 1}")
                batch.delete("A", "dec = 3")
                self.compare(batch.array)
                batch.insert("A", self.cells(2))
            yield None
        yield sky.delete("k is null")
        yield stars.delete()
        yield sky.delete()
        yield sky.insert(self.cells(9))

    def compare(self, opened: Any = None) -> None:
        opened = opened or self.database.array
        for name in self.names:
            one, other = read(opened(name)), read(opened(f"{name}_twin"))
            assert_same_result(one, other, tuple(n for n in ("time", "ra", "dec") if n in one.column_names))
            assert one.select(["time"] if "time" in one.column_names else []).equals(
                other.select(["time"] if "time" in one.column_names else [])
            ), "in another order"

    def check(self) -> None:
        """Each view is what its query says, and has another version where its twin has."""
        self.compare()
        for name in self.names:
            view, twin = (self.database.view(one) for one in (name, f"{name}_twin"))
            checked = view.check()
            assert checked.ok, f"{name}: {checked}"
            assert (view.version, view.box) == (twin.version, twin.box), (name, view.history().to_pylist()[-1])
            assert_way(view)


@pytest.fixture
def sky(tmp_path: Path) -> Iterator[Sky]:
    with wr.connect(tmp_path / "warehouse", engine="local", progress=False) as database:
        yield Sky(database)


def reduced(view: Any) -> tuple[str, ...]:
    found: tuple[str, ...] = view._known_view().reduced
    return found


@pytest.mark.parametrize("query", list(QUERIES))
def test_it_is_as_if_every_cell_had_a_row(sky: Sky, query: str) -> None:
    view = sky.view("V", QUERIES[query])
    assert reduced(view) == (("time", "ra", "dec") if query == "everything" else ("time",))
    assert not reduced(sky.database.view("V_twin"))
    sky.check()
    for _ in sky.changes():
        sky.check()
    twin = sky.database.view("V_twin")
    for number in range(1, view.version + 1):
        old, wanted = (one.at(version=number).read() for one in (view, twin))
        assert_same_result(old, wanted, ("time", "ra", "dec"))
    for before, after in ((1, view.version), (3, 4), (5, 2)):
        one, other = (found.changes(before, after) for found in (view, twin))
        assert_same_result(one, other, ("time", "ra", "dec", "change"))
    assert {"patched", "unchanged"} >= set(view.history().to_pydict()["way"][1:])


@pytest.mark.parametrize("query", list(CELLS))
def test_results_of_their_own_are_stored_by_cell(sky: Sky, query: str) -> None:
    view = sky.database.create_view("V", CELLS[query])
    assert not reduced(view)
    assert "stored by" not in str(sky.database.explain_view(CELLS[query]))


def test_a_row_is_written_for_each_position(sky: Sky) -> None:
    view = sky.view("V", QUERIES["counts"])
    cells = view.read()
    places = {(row["ra"], row["dec"]) for row in cells.to_pylist()}
    assert view._version().cells == len(places) < cells.num_rows
    sky.A.insert({"time": [39, 40], "ra": [1, 1], "dec": [1, 1], "x": [1.0, 2.0], "k": [1, 2]})
    near = {place for place in places if max(place) <= 2}
    assert view.history().to_pylist()[-1]["cells"] == len(near | {(1, 1)})


@pytest.mark.parametrize("query", ["counts", "left"])
def test_without_new_positions_no_cell_of_the_array_is_read(sky: Sky, query: str, monkeypatch: Any) -> None:
    view = sky.view("V", QUERIES[query])
    sky.database.drop_view("V_twin")
    sky.A.update({"x": "x + 1", "k": "k + 1"})
    sky.B.update({"x": "x + 1"})
    place = view.read().slice(5, 1).to_pylist()[0]
    there = set(sky.A.read(ra=place["ra"], dec=place["dec"])["time"].to_pylist())
    time = next(one for one in range(1, 41) if one not in there)
    looked_at: list[str] = []
    plain = SparseSnapshot.read
    monkeypatch.setattr(
        SparseSnapshot, "read", lambda self, *a, **b: looked_at.append(self.title) or plain(self, *a, **b)
    )
    sky.A.insert({"time": [time], "ra": [place["ra"]], "dec": [place["dec"]], "x": [1.5], "k": [3]})
    assert not [title for title in looked_at if title.startswith(("A@", "B@"))]
    monkeypatch.undo()
    assert view.check().ok


def test_views_on_it(sky: Sky) -> None:
    sky.view("V", QUERIES["counts"])
    sky.view("W", "select sum(n) as s, max(n) as m from V group by time")
    sky.view("U", "select max(n) as m from V neighbours Linf(1)")
    sky.view("T", "select n from V where n > 6")
    same = "L.time = R.time and L.ra = R.ra and L.dec = R.dec"
    shape = "L1(1) on (ra, dec), time any"
    sky.view("X", f"select count(*) as n, sum(R.n) as s from A L similarity join V R on {same} with shape {shape} {BY}")
    for _ in sky.changes():
        sky.check()


def test_a_deferred_view_shows_the_cells_that_there_were(sky: Sky) -> None:
    view = sky.view("V", QUERIES["left"], deferred=True)
    sky.view("W", "select sum(n) as s from V group by ra, dec", deferred=True)
    before = view.read()
    sky.A.insert(sky.cells(5))
    sky.B.delete("k > 2")
    sky.compare()
    assert read(view).equals(before)
    assert view.stale
    sky.database.collect_garbage(keep_versions=1, drop_pins=True)
    assert read(view).equals(before)
    for name in ("V", "V_twin", "W", "W_twin"):
        sky.database.view(name).refresh()
    sky.check()


def test_what_breaks_it_leaves_it_as_it_was(sky: Sky) -> None:
    query = f"select sum(k * 4000000000000000000) as s from A {AROUND} min count 2"
    sky.A.update({"k": "0"})
    view = sky.view("V", query, on_failure="stale")
    before = view.read()
    sky.A.insert({"time": [1, 2], "ra": [2, 2], "dec": [2, 2], "x": [0.0, 0.0], "k": [2, 2]})
    assert view.status == "failed"
    assert read(view).equals(before)
    sky.A.delete("k = 2")
    view.refresh()
    assert view.check().ok


def test_cells_that_share_a_place(sky: Sky) -> None:
    points = sky.database.create("P", "<m: float64> [t=1:9, ra, dec]", grid={"ra": (0, 6, 1), "dec": (0, 6, 1)})
    for query, dimensions in {
        "neighbours Linf(1) on (ra, dec), t any": ("t", "n"),
        "neighbours Linf(1) on (ra, dec)": (),  # of the numbers alone
    }.items():
        view = sky.database.create_view(f"V{len(dimensions)}", f"select count(*) as n_, sum(m) as s from P {query}")
        assert reduced(view) == dimensions
    view = sky.database.view("V2")
    for step in range(4):
        count = 12
        where = {name: sky.random.uniform(0, 6, count) for name in ("ra", "dec")}
        points.insert({"t": sky.random.integers(1, 10, count)} | where | {"m": sky.random.normal(size=count)})
        assert view.check().ok
        points.delete(f"t = {step + 1} and m < 0.5")
        assert view.check().ok
    assert view.read().num_rows == points.read().num_rows > view._version().cells


def test_collections_keep_the_cells_that_versions_are_shown_at(sky: Sky) -> None:
    view = sky.view("V", QUERIES["inner"])
    for _ in range(3):
        sky.A.insert(sky.cells(4))
    sky.A.update({"x": "x + 1"})  # which nobody reads: no version of the view
    kept = {number: view.at(version=number).read() for number in range(1, view.version + 1)}
    view.compact()
    sky.A.compact()
    held = view.version - 1, view.version
    sky.database.collect_garbage(keep_versions=2)
    assert [version.number for version in view.versions()] == [*held]
    for number in held:
        assert view.at(version=number).read().equals(kept[min(number, max(kept))])
    assert sky.database.collect_garbage(keep_versions=1).versions
    sky.A.insert(sky.cells(4))
    assert view.check().ok


def test_it_reads_like_an_array(sky: Sky, tmp_path: Path) -> None:
    view, twin = sky.view("V", QUERIES["filtered"]), sky.database.view("V_twin")
    assert view.schema == twin.schema
    assert view.to_xarray().identical(twin.to_xarray())
    assert view.read(time=(3, 9), ra=2).equals(twin.read(time=(3, 9), ra=2))
    assert view.sel(dec=(1, 3)).read(["n"]).equals(twin.sel(dec=(1, 3)).read(["n"]))
    for text in READS:
        one, other = (sky.database.query(text.replace("V", name)).compute() for name in ("V", "V_twin"))
        assert one.equals(other), text
    for name in ("V", "V_twin"):
        sky.database.export_file(name, tmp_path / f"{name}.parquet")
    one, other = (polars.read_parquet(tmp_path / f"{name}.parquet") for name in ("V", "V_twin"))
    assert one.sort("time", "ra", "dec").equals(other.sort("time", "ra", "dec"))
    sky.database.query("select n from V into C")
    assert sky.database.array("C").read().equals(view.read())
    assert "the results of (ra, dec)" in str(sky.database.query("explain select n from V"))


def test_queries_are_answered_from_it(sky: Sky) -> None:
    sky.view("V", QUERIES["counts"])
    sky.database.drop_view("V_twin")
    for text in (QUERIES["counts"], f"select count(*) as n from A {AROUND.replace('Linf(1)', 'Linf(2)')}"):
        query = sky.database.query(text)
        found = query.using_views("always")
        assert "V: used" in str(found.explain())
        assert_same_result(found.compute(), query.using_views("off").compute(), ("time", "ra", "dec"))


def test_outside_readers_join_it_with_its_cells(sky: Sky) -> None:
    for number, query in enumerate(("filtered", "a box", "everything", "an old version")):
        view = sky.database.create_view(f"V{number}", QUERIES[query])
        sky.A.insert(sky.cells(4))
        for version in (1, view.version):
            found = eval(view.location(version).example, {"polars": polars}).collect()
            wanted = polars.from_arrow(view.at(version=version).read())
            assert isinstance(wanted, polars.DataFrame)
            assert found.select(wanted.columns).sort("time", "ra", "dec").equals(wanted), query


def test_what_is_said_of_it(sky: Sky) -> None:
    view = sky.view("V", QUERIES["counts"])
    told = str(sky.database.query("describe V"))
    assert "stored by  (ra, dec), and shown at every cell that lies there" in " ".join(told.split("\n")).replace(
        "   ", "  "
    )
    assert f"results of {view._version().cells} positions" in told
    said = str(sky.database.explain_view(QUERIES["counts"]))
    assert "stored by (ra, dec): no result depends on time" in said
    assert "not planned, because its results are stored by position" in said
    assert "stored by cell, as store = cells says" in str(sky.database.explain_view(QUERIES["counts"], store="cells"))


def test_a_damaged_state_is_found_and_mended(sky: Sky) -> None:
    view = sky.view("V", QUERIES["counts"])
    sky.A.update({"k": "k + 1"})
    damage_states(sky.database, "V", {"__windrow_pairs": "__windrow_pairs + 1"}, "ra = 2")
    assert view.check().damaged_states
    view.refresh(full=True)
    sky.A.insert(sky.cells(3))
    assert view.check().ok


def test_a_shape_is_no_view_stored_by_position(sky: Sky) -> None:
    sky.database.create("O", "<a: bool> [ra=-1:1, dec=-1:1]", sparse=True).insert({"ra": [0], "dec": [1], "a": [True]})
    sky.database.create_view("V", "select count(*) as n from O neighbours ra any, dec any")
    with pytest.raises(wr.SchemaError, match="store = cells"):
        sky.database.query("select count(*) as n from B neighbours V")


@pytest.mark.spark
def test_on_spark(spark_session: Any, tmp_path: Path) -> None:
    with wr.connect(tmp_path / "warehouse", engine="spark", spark=spark_session, progress=False) as database:
        sky = Sky(database)
        view = sky.view("V", QUERIES["filtered"])
        sky.A.insert(sky.cells(6))
        sky.B.delete("k > 4")
        sky.check()
        rows = polars.from_pandas(view.to_spark().toPandas()).sort("time", "ra", "dec")
        assert rows.rows() == polars.from_arrow(view.read()).rows()  # type: ignore[union-attr]
        some = view.to_spark(time=(3, 20)).count()
        assert some == view.read(time=(3, 20)).num_rows
