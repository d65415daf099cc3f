"""The cases of the design, one by one: the view after every statement, and the numbers that were worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from windrow.errors import DataError
from windrow.operations.join.chunks import find_chunk_pairs

from .checking import Watched, contents

FIGURE = {(1, 2): (2, 5), (1, 3): (6, 3), (1, 6): (1, 4), (3, 1): (4, 4), (6, 5): (3, 2), (5, 7): (7, 1)}
"""Paper 004, Fig. 1; the cells that the text leaves out as in ERRATA."""
NEW = ((1, 5), (2, 1), (2, 3), (4, 2), (4, 4), (5, 4), (5, 6))


@pytest.fixture
def watched(local: Any) -> Watched:
    return Watched(local)


def sparse(watched: Watched, name: str, schema: str, cells: dict[Any, Any]) -> Any:
    """A sparse array; coordinates and values that stand alone need no tuple."""
    array = watched.database.create(name, schema, sparse=True)
    if cells:
        array.insert(rows(array, cells))
    return array


def rows(array: Any, cells: dict[Any, Any]) -> pa.Table:
    schema = array.schema
    places = [cell if isinstance(cell, tuple) else (cell,) for cell in cells]
    values = [value if isinstance(value, tuple) else (value,) for value in cells.values()]
    columns = {name: [place[k] for place in places] for k, name in enumerate(schema.dimension_names)}
    return pa.table(columns | {name: [value[k] for value in values] for k, name in enumerate(schema.attribute_names)})


def insert(watched: Watched, name: str, cells: dict[Any, Any]) -> None:
    array = watched.database.array(name)
    array.insert(rows(array, cells))
    watched.check()


def delete(watched: Watched, name: str, where: str | None) -> None:
    watched.database.array(name).delete(where)
    watched.check()


def last(watched: Watched, name: str) -> dict[str, Any]:
    """The newest line of a view's history."""
    found: dict[str, Any] = watched.database.view(name).history().to_pylist()[-1]
    return found


def test_case_1_the_paper_s_figure(watched: Watched) -> None:
    watched.database.query("create sparse array A <r:int,s:int> [i=1,6,2;j=1,8,2]")
    array = watched.database.array("A")
    values = {cell: FIGURE[cell] for cell in FIGURE}
    cells = ", ".join(f"({i}, {j}: {r}, {s})" for (i, j), (r, s) in values.items())
    watched.database.query(f"insert into A values {cells}")
    text = (
        "SELECT COUNT(*) AS cnt FROM A A1 SIMILARITY JOIN A A2 ON (A1.i = A2.i) AND (A1.j = A2.j)"
        " WITH SHAPE L1(1) GROUP BY A1.i, A1.j"
    )
    watched.database.query(f"CREATE ARRAY VIEW V AS {text}")
    watched.watch("V", text)
    pairs = "select A1.r * A2.s as f from A A1 similarity join A A2 with shape L1(1)"
    watched.view("P", pairs)
    watched.check()
    before = watched.cells("V")
    assert before == {cell: 2 if cell in ((1, 2), (1, 3)) else 1 for cell in FIGURE}
    assert len(watched.cells("P")) == 8
    array.insert(pa.table({"i": [i for i, _ in NEW], "j": [j for _, j in NEW], "r": [0] * 7, "s": [0] * 7}))
    watched.check()
    after = watched.cells("V")
    changed = {cell: count for cell, count in after.items() if before.get(cell) != count}
    assert len(changed) == 11
    assert {((i - 1) // 2, (j - 1) // 2) for i, j in changed} == {
        (0, 0), (0, 1), (0, 2), (1, 0), (2, 2), (2, 3), (1, 1), (2, 1),
    }  # fmt: skip
    assert {cell: count for cell, count in changed.items() if count != 2} == {(1, 3): 3, (4, 2): 1}
    assert after[6, 5] == 1
    assert last(watched, "V")["cells"] == 11


def test_case_2_from_empty_to_empty(watched: Watched) -> None:
    sparse(watched, "A", "<r: int> [i=1:6:2, j=1:6:2]", {})
    watched.view("V", "select count(*) as n from A neighbours L1(1)")
    assert watched.cells("V") == {}
    insert(watched, "A", {(1, 1): 1, (1, 2): 1})
    assert watched.cells("V") == {(1, 1): 2, (1, 2): 2}
    delete(watched, "A", None)
    assert watched.cells("V") == {}


def test_case_3_a_shape_to_one_side(watched: Watched) -> None:
    sparse(watched, "A", "<v: int> [i=1:9:2]", {1: 10, 3: 30})
    watched.view("V", "select sum(v) as t from A neighbours i between -2 and 0")
    assert watched.cells("V") == {1: 10, 3: 40}
    insert(watched, "A", {2: 20})
    assert watched.cells("V") == {1: 10, 2: 30, 3: 60}


def test_case_4_a_batch_is_netted(watched: Watched) -> None:
    sparse(watched, "A", "<v: int> [i=1:9:2]", {1: 10})
    watched.view("V", "select sum(v) as t from A neighbours i between 0 and 0")
    array = watched.database.array("A")
    with watched.database.batch() as batch:
        batch.insert("A", rows(array, {1: 20}))
        batch.delete("A", "i = 1")
        batch.insert("A", rows(array, {1: 7}))
        batch.insert("A", rows(array, {2: 5}))
        batch.delete("A", "i = 2")
    watched.check()
    assert watched.cells("V") == {1: 7}
    assert last(watched, "V")["cells"] == 1
    version, told = watched.database.view("V").version, watched.database.view("V").history().num_rows
    insert(watched, "A", {1: 7})
    assert watched.database.view("V").version == version
    since = watched.database.view("V").history().to_pylist()[told:]
    assert all(row["cells"] == 0 and row["way"] == "unchanged" for row in since)


def test_case_5_a_condition_on_pairs_that_an_update_moves(watched: Watched) -> None:
    sparse(watched, "A", "<m: int> [i=1:9:2]", {1: 1, 2: 2})
    watched.view("V", "select count(*) as n from A L similarity join A R on L.m < R.m with shape Linf(1) group by L.i")
    assert watched.cells("V") == {1: 1}
    watched.run("update A set m = 0 where i = 2")
    assert watched.cells("V") == {2: 1}


def test_case_6_a_filter_sees_old_and_new_values_apart(watched: Watched) -> None:
    sparse(watched, "A", "<r: int> [i=1:3:2, j=1:3:2]", {(1, 1): 4, (1, 2): 1, (2, 2): 5})
    watched.view("V", "select count(*) as n from (select * from A where r > 3) neighbours Linf(1)")
    assert watched.cells("V") == {(1, 1): 2, (2, 2): 2}
    insert(watched, "A", {(1, 2): 9, (1, 1): 0})
    assert watched.cells("V") == {(1, 2): 2, (2, 2): 2}


def test_case_7_groups_empty_and_return(watched: Watched) -> None:
    sparse(watched, "A", "<r: int> [i=1:3:2, j=1:6:2]", {(1, 1): 0, (1, 2): 0, (2, 5): 0})
    watched.view("V", "select count(*) as n from A L similarity join A R with shape L1(1) group by L.i")
    assert watched.cells("V") == {1: 4, 2: 1}
    delete(watched, "A", "i = 2")
    assert watched.cells("V") == {1: 4}
    insert(watched, "A", {(2, 2): 0})
    assert watched.cells("V") == {1: 5, 2: 2}


def test_case_8_left_joins_keep_cells_without_partner(watched: Watched) -> None:
    sparse(watched, "A", "<r: int> [i=1:9:2]", {1: 0, 5: 0})
    sparse(watched, "B", "<w: int> [i=1:9:3]", {2: 7})
    watched.view(
        "V", "select count(*) as n, sum(R.w) as t from A L left similarity join B R with shape Linf(1) group by L.i"
    )
    assert watched.cells("V") == {1: {"n": 1, "t": 7}, 5: {"n": 0, "t": None}}
    with watched.database.batch() as batch:
        batch.delete("B")
        batch.insert("B", {"i": [5], "w": [3]})
    watched.check()
    assert watched.cells("V") == {1: {"n": 0, "t": None}, 5: {"n": 1, "t": 3}}
    delete(watched, "A", "i = 5")
    assert watched.cells("V") == {1: {"n": 0, "t": None}}


def test_case_9_an_extremum_that_is_there_twice(watched: Watched) -> None:
    sparse(watched, "A", "<v: int> [i=1:3:2]", {1: 5, 2: 5, 3: 3})
    watched.view("V", "select max(v) as m from A neighbours i any", maintain="incremental")
    assert set(watched.cells("V").values()) == {5}
    delete(watched, "A", "i = 1")
    assert watched.cells("V") == {2: 5, 3: 5}
    assert last(watched, "V")["way"] == "patched"
    delete(watched, "A", "i = 2")
    assert watched.cells("V") == {3: 3}


def test_case_10_mappings_that_divide_and_scale(watched: Watched) -> None:
    sparse(watched, "A", "<r: int> [i=-3:3:2]", dict.fromkeys(range(-3, 4), 0))
    sparse(watched, "B", "<w: int> [i=-3:3:3]", {-1: 0, 1: 0})
    watched.view(
        "V",
        "select count(*) as n from A L similarity join B R on R.i = L.i // 2 with shape offsets ((0)) group by L.i",
    )
    assert set(watched.cells("V")) == {-2, -1, 2, 3}
    with watched.database.batch() as batch:
        batch.insert("B", {"i": [0], "w": [0]})
        batch.delete("B", "i = -1")
    watched.check()
    assert set(watched.cells("V")) == {0, 1, 2, 3}
    sparse(watched, "C", "<r: int> [i=1:3:2]", dict.fromkeys(range(1, 4), 0))
    sparse(watched, "E", "<w: int> [i=1:9:3]", dict.fromkeys(range(2, 5), 0))
    watched.view(
        "W", "select count(*) as n from C L similarity join E R on R.i = L.i * 2 with shape Linf(1) group by L.i"
    )
    assert watched.cells("W") == {1: 2, 2: 2}
    insert(watched, "E", {5: 0})
    assert watched.cells("W") == {1: 2, 2: 3, 3: 1}


def test_case_11_a_dimension_that_the_other_side_lacks(watched: Watched) -> None:
    sparse(watched, "A", "<v: int> [t=1:3:2, r=1:9:2]", {(t, 5): 0 for t in (1, 2, 3)})
    sparse(watched, "B", "<w: int> [r=1:9:2]", {6: 0})
    watched.view(
        "V",
        "select count(*) as n from A L similarity join B R on R.r = L.r with shape Linf(1) on (r) group by L.t, L.r",
    )
    assert watched.cells("V") == {(t, 5): 1 for t in (1, 2, 3)}
    insert(watched, "B", {4: 0})
    assert watched.cells("V") == {(t, 5): 2 for t in (1, 2, 3)}


def test_case_12_wrapping_twice_and_twins(watched: Watched) -> None:
    sparse(watched, "A", "<v: int> [i=1:3:2]", {1: 0, 2: 0})
    watched.view("V", "select count(*) as n from A neighbours Linf(2), wrap (i)")
    insert(watched, "A", {3: 0})
    assert watched.cells("V") == {1: 3, 2: 3, 3: 3}
    twins = watched.database.create("G", "<v: int> [i=1:3:2, j=1:3:2, n=0:*]", sparse=True)
    points = pa.table({"i": [1, 1], "j": [1, 1], "v": [0, 0]})
    twins.insert(points, on_duplicate="keep")
    watched.view("W", "select count(*) as n_seen from G neighbours L1(1), excluding self")
    assert watched.cells("W") == {(1, 1, 0): 1, (1, 1, 1): 1}
    twins.insert(pa.table({"i": [1], "j": [2], "v": [0]}), on_duplicate="keep")
    watched.check()
    assert watched.cells("W") == {(1, 1, 0): 2, (1, 1, 1): 2, (1, 2, 0): 2}


def test_case_13_an_overflow_that_the_batch_undoes(watched: Watched) -> None:
    sparse(watched, "A", "<v: int64> [i=1:9:2]", {1: 2**62, 2: 2**62 - 1})
    watched.view("V", "select sum(v) as t from A neighbours i any")
    assert set(watched.cells("V").values()) == {2**63 - 1}
    array = watched.database.array("A")
    with watched.database.batch() as batch:
        batch.insert("A", rows(array, {3: 2**62}))
        batch.delete("A", "i = 1")
    watched.check()
    assert watched.cells("V") == {2: 2**63 - 1, 3: 2**63 - 1}
    before, versions = contents(array), (array.version, watched.database.view("V").version)
    with pytest.raises(DataError, match="overflow"):
        array.insert(rows(array, {4: 2**62}))
    watched.check()
    assert contents(array) == before
    assert (array.version, watched.database.view("V").version) == versions


def test_case_14_spikes_infinities_and_nan_leave_no_trace(watched: Watched) -> None:
    sparse(watched, "A", "<x: float64> [i=1:9:2]", {1: 0.1, 2: 0.2, 3: 0.3})
    watched.view("V", "select sum(x) as t, count(x) as n, avg(x) as a, var(x) as v from A neighbours i any")
    for place, spike in ((4, 1e16), (5, -math.inf), (6, math.nan)):
        insert(watched, "A", {place: spike})
    assert {row["t"] for row in watched.cells("V").values()} == {-math.inf}
    assert {row["n"] for row in watched.cells("V").values()} == {5}
    for place in (5, 4, 6):
        delete(watched, "A", f"i = {place}")
    for row in watched.cells("V").values():
        assert row["t"] == pytest.approx(0.6, abs=6e-13)
        assert row["n"] == 3
        assert row["v"] == pytest.approx(0.01, rel=1e-9)


def test_case_15_views_on_views(watched: Watched) -> None:
    sparse(watched, "A", "<r: int> [i=1:4:2, j=1:4:3]", {(1, 1): 0, (1, 2): 0, (3, 3): 0})
    watched.view("V1", "select count(*) as n from A neighbours L1(1)")
    watched.view("V2", "select max(n) as m from V1 neighbours Linf(1)")
    watched.view("V3", "select sum(m) as t from V2 group by i")
    assert watched.cells("V3") == {1: 4, 3: 1}
    insert(watched, "A", {(2, 2): 0})
    assert watched.cells("V3") == {1: 6, 2: 3, 3: 2}
    delete(watched, "A", "i = 1 and j = 2")
    assert watched.cells("V3") == {1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize("chunks", [None, {"i": 5}], ids=["compacted", "rechunked"])
def test_case_16_deferred_views_wait(watched: Watched, chunks: Any) -> None:
    array = sparse(watched, "A", "<v: int> [i=1:9:2]", {1: 10})
    view = watched.view("V", "select sum(v) as t from A neighbours Linf(1)", deferred=True)
    assert not view.stale
    array.insert(rows(array, {1: 20}))
    array.delete("i = 1")
    array.compact(chunks)
    array.insert(rows(array, {1: 5}))
    assert view.stale
    assert view.status == "stale"
    with pytest.warns(wr.StaleViewWarning, match="V"):
        assert view.read().to_pylist() == [{"i": 1, "t": 10}]
    view.refresh()
    assert not view.stale
    watched.check()
    assert watched.cells("V") == {1: 5}


def test_case_17_windows_along_a_growing_dimension(watched: Watched) -> None:
    database = watched.database
    array = database.create("A", "<v: float64> [i=1:*:2]")
    array.append(np.array([1.0, 2.0, 3.0]))
    watched.view("V", "select avg(v) as a from A window (i centred 3)")
    watched.view("W", "select avg(v) as a from A window (i centred 3) boundary drop")
    assert list(watched.cells("V").values()) == [1.5, 2, 2.5]
    assert list(watched.cells("W").values()) == [None, 2, None]
    array.append(np.array([9.0]))
    watched.check()
    assert list(watched.cells("V").values()) == pytest.approx([1.5, 2, 14 / 3, 6])
    assert list(watched.cells("W").values())[2] == pytest.approx(14 / 3)
    assert [value is None for value in watched.cells("W").values()] == [True, False, False, True]


def test_case_18_labels_that_change(watched: Watched) -> None:
    days = np.datetime64("2012-01-01", "us") + np.array([1, 2, 10]).astype("m8[D]")
    array = watched.database.create("A", "<v: int> [t=1:3:2]", labels={"t": days})
    array.write(np.array([1, 2, 3]))
    watched.view("V", "select count(*) as n from A neighbours t between '-5 days' and 0")
    assert list(watched.cells("V").values()) == [1, 2, 1]
    array.set_labels("t", np.datetime64("2012-01-01", "us") + np.array([1, 2, 6]).astype("m8[D]"))
    watched.check()
    assert list(watched.cells("V").values()) == [1, 2, 3]
    assert array.read()["v"].values.tolist() == [1, 2, 3]


def test_case_19_all_deleted_all_replaced_and_an_attribute_that_nobody_uses(watched: Watched) -> None:
    array = sparse(watched, "A", "<v: int, w: int> [i=1:9:2]", {1: (10, 0), 2: (20, 0), 5: (50, 0)})
    watched.view("V", "select sum(v) as t from A neighbours Linf(1)")
    watched.view("W", "select count(*) as n from A regrid (4)")
    versions = [watched.database.view(name).version for name in "VW"]
    watched.run("update A set w = w + 1")
    assert [watched.database.view(name).version for name in "VW"] == versions
    watched.run("delete from A where true")
    assert watched.cells("V") == watched.cells("W") == {}
    insert(watched, "A", {1: (1, 1), 2: (2, 2), 3: (3, 3)})
    watched.run("select v * 10 as v, w from A where i > 1 into A")
    assert watched.cells("V") == {2: 50, 3: 50}
    assert watched.cells("W") == {1: 2}
    assert array.read().num_rows == 2


def test_case_20_medians_whose_rank_moves(watched: Watched) -> None:
    sparse(watched, "A", "<v: int> [i=1:99:20]", {1: 1, 2: 1, 3: 2})
    watched.view("V", "select median(v) as m from A neighbours i any")
    assert set(watched.cells("V").values()) == {1.0}
    insert(watched, "A", {4: 2, 5: 2})
    assert set(watched.cells("V").values()) == {2.0}
    delete(watched, "A", "v = 1")
    assert watched.cells("V") == {3: 2.0, 4: 2.0, 5: 2.0}
    for number in range(40):
        insert(watched, "A", {10 + number: 10 + number})
    assert len(watched.cells("V")) == 43
    ranked = sorted([2, 2, 2, *range(10, 50)])
    assert set(watched.cells("V").values()) == {float(ranked[21])}


def test_case_21_the_nearest_one(watched: Watched) -> None:
    sparse(watched, "A", "<v: int> [i=0:9:2]", {0: 1})
    sparse(watched, "B", "<w: int> [i=0:9:3]", {3: 1})
    watched.view("V", "select L.v + R.w as f from A L similarity join B R with shape Linf(9) nearest 1")
    assert set(watched.cells("V")) == {(0, 3)}
    insert(watched, "B", {1: 1})
    assert set(watched.cells("V")) == {(0, 1)}
    insert(watched, "B", {2: 1})
    assert set(watched.cells("V")) == {(0, 1)}


def test_case_22_mutual_nearest(watched: Watched) -> None:
    sparse(watched, "A", "<v: int> [i=0:10:2]", {0: 1, 10: 1})
    sparse(watched, "B", "<w: int> [i=0:10:3]", {6: 1})
    watched.view("V", "select L.v + R.w as f from A L similarity join B R with shape Linf(9) mutual nearest")
    assert set(watched.cells("V")) == {(10, 6)}
    delete(watched, "A", "i = 10")
    assert set(watched.cells("V")) == {(0, 6)}


NUMBERS = {(0, 0): 1, (0, 1): 2, (0, 2): 3, (1, 0): 4, (2, 2): 5, (2, 3): 6, (1, 1): 7, (2, 1): 8}
"""The chunks of the figure as the paper numbers them."""


@pytest.mark.parametrize(
    ("by_grid", "old", "new", "seventh"),
    [(True, {1, 4}, {1, 4, 7}, {2, 4, 7, 8}), (False, {4}, {4}, {7, 8})],
    ids=["grid", "bounds"],
)
def test_case_23_chunk_pairs_of_the_paper_s_figure(
    local: Any, by_grid: bool, old: set[int], new: set[int], seventh: set[int]
) -> None:
    """ΔA4 meets A1, ΔA1, A4, ΔA7 and itself by the grid, and by the chunks' own bounds at most A4 and itself."""
    watched = Watched(local)
    grid = "<r:int,s:int>[i=1,6,2;j=1,8,2]"
    sparse(watched, "A", grid, FIGURE)
    sparse(watched, "N", grid, dict.fromkeys(NEW, (0, 0)))
    met: dict[str, set[tuple[int, int]]] = {}
    for right in ("A", "N"):
        query = local.query(
            f"select count(*) as n from N L similarity join {right} R with shape L1(1) group by L.i, L.j"
        )
        source = query.bind().bound.source
        pairs = find_chunk_pairs(source, by_grid)
        assert pairs is not None
        keys = [[NUMBERS[tuple(source.left.schema.grid.key(int(one)))] for one in side] for side in pairs]
        met[right] = set(zip(*keys, strict=True))
    assert {q for p, q in met["A"] if p == 4} <= old
    assert {q for p, q in met["N"] if p == 4} == new
    assert {q for p, q in met["A"] | met["N"] if p == 7} == seventh
    if by_grid:
        assert {q for p, q in met["A"] if p == 4} == old
