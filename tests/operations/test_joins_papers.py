"""Paper 004's join, its figure and its shapes, and the small cases by hand that a join must get right."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import join_oracle as oracle
import windrow as wr
from join_oracle import Between, Dimension, Held, Measure, Nearest, Norm, Place, Shape, Step
from windrow.operations.join.chunks import find_chunk_pairs

FIGURE = {(1, 2): (2, 5), (1, 3): (6, 3), (1, 6): (1, 4), (3, 1): (4, 4), (6, 5): (3, 2), (5, 7): (7, 1)}
"""The cells of Fig. 1, those that the text leaves out as in ERRATA."""
NEW = ((1, 5), (2, 1), (2, 3), (4, 2), (4, 4), (5, 4), (5, 6))
GRID = "<r:int,s:int>[i=1,6,2;j=1,8,2]"


def inserted(database: Any, name: str, schema: str, cells: dict[Any, Any], **options: Any) -> Any:
    """A sparse array of these cells."""
    array = database.create(name, schema, sparse=True)
    rows = {cell if isinstance(cell, tuple) else (cell,): value for cell, value in cells.items()}
    dimensions, attributes = array.schema.dimension_names, array.schema.attribute_names
    columns = {d: [cell[k] for cell in rows] for k, d in enumerate(dimensions)}
    values = [value if isinstance(value, tuple) else (value,) for value in rows.values()]
    columns |= {a: [value[k] for value in values] for k, a in enumerate(attributes)}
    array.insert(pa.table(columns), **options)
    return array


def answers(query: Any, *names: str) -> dict[Any, Any]:
    """A result by coordinates; single coordinates and values are not tuples."""
    table = query.compute()
    measures = [name for name in table.column_names if name not in names]

    def one(parts: tuple[Any, ...]) -> Any:
        return parts[0] if len(parts) == 1 else parts

    return {
        one(tuple(row[name] for name in names)): one(tuple(row[name] for name in measures)) for row in table.to_pylist()
    }


# Example 1


@pytest.fixture
def figure(database: Any) -> Any:
    return inserted(database, "A", GRID, FIGURE)


PAIRS = {
    (1, 2, 1, 2): (2, 5, 2, 5),
    (1, 2, 1, 3): (2, 5, 6, 3),
    (1, 3, 1, 2): (6, 3, 2, 5),
    (1, 3, 1, 3): (6, 3, 6, 3),
    **{(*cell, *cell): (*FIGURE[cell], *FIGURE[cell]) for cell in FIGURE if cell not in ((1, 2), (1, 3))},
}


def test_the_join_of_example_1_has_eight_cells_in_four_dimensions(figure: Any, database: Any) -> None:
    text = "select * from A A1 similarity join A A2 on (A1.i = A2.i) and (A1.j = A2.j) with shape L1(1)"
    assert len(PAIRS) == 8
    assert answers(database.query(text), "A1_i", "A1_j", "A2_i", "A2_j") == PAIRS
    database.query(text).store("T")
    kept = database.array("T")
    assert kept.schema.sparse
    assert kept.schema.dimension_names == ("A1_i", "A1_j", "A2_i", "A2_j")
    assert {tuple(row.values())[:4]: tuple(row.values())[4:] for row in kept.read().to_pylist()} == PAIRS


def test_example_1(figure: Any, database: Any) -> None:
    text = "SELECT COUNT(*) AS cnt FROM A A1 SIMILARITY JOIN A A2 ON (A1 .i = A2 .i) AND (A1 .j = A2 .j)"
    counted = answers(database.query(text + " WITH SHAPE L1 (1) GROUP BY A1 .i, A1 .j"), "i", "j")
    assert counted == {cell: 2 if cell in ((1, 2), (1, 3)) else 1 for cell in FIGURE}
    assert answers(figure.neighbours(wr.L1(1)).agg(cnt=wr.count()), "i", "j") == counted
    assert answers(figure.join(figure, shape=wr.L1(1)).agg(cnt=wr.count()), "i", "j") == counted


def test_example_1_after_its_batch(figure: Any, database: Any) -> None:
    """VIEWS.md, case 1: eleven cells change, in all eight chunks."""
    before = answers(figure.neighbours(wr.L1(1)).agg(cnt=wr.count()), "i", "j")
    figure.insert(pa.table({"i": [i for i, _ in NEW], "j": [j for _, j in NEW], "r": [0] * 7, "s": [0] * 7}))
    after = answers(figure.neighbours(wr.L1(1)).agg(cnt=wr.count()), "i", "j")
    changed = {cell: count for cell, count in after.items() if before.get(cell) != count}
    assert len(changed) == 11
    assert {((i - 1) // 2, (j - 1) // 2) for i, j in changed} == {
        (0, 0), (0, 1), (0, 2), (1, 0), (2, 2), (2, 3), (1, 1), (2, 1),
    }  # fmt: skip
    assert {cell: count for cell, count in changed.items() if count != 2} == {(1, 3): 3, (4, 2): 1}
    assert after[6, 5] == before[6, 5] == 1


@pytest.mark.parametrize("shape", ["L1(1)", "offsets ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))", "cross"])
def test_select_f_into_t(figure: Any, database: Any, shape: str) -> None:
    """SELECT f INTO τ FROM α SIMILARITY JOIN β ON M WITH SHAPE σ: a norm, an offset list, a stored array."""
    cross = {(0, 0): True, (0, 1): True, (0, -1): True, (1, 0): False, (-1, 0): True}
    inserted(database, "cross", "<there: bool>[i=-2:2; j=-2:2]", cross)
    inserted(database, "B", GRID, FIGURE)
    statement = "SELECT A.r * B.s as f INTO T FROM A SIMILARITY JOIN B ON A.i = B.i and A.j = B.j WITH SHAPE"
    database.query(f"{statement} {shape}")
    kept = {tuple(row.values())[:4]: row["f"] for row in database.array("T").read().to_pylist()}
    assert kept == {cell: values[0] * values[3] for cell, values in PAIRS.items()}
    # Paper 004's SELECT is a query of windrow's Python too.
    asked = {"L1(1)": wr.L1(1), "cross": wr.shape("cross")}.get(shape, wr.offset_list(list(cross)))
    pairs = figure.join(database.array("B"), shape=asked).select(f="left.r * right.s")
    assert answers(pairs, "left_i", "left_j", "right_i", "right_j") == kept


# Chunk pairs: VIEWS.md, case 23


def chunk_of(cell: tuple[int, int]) -> tuple[int, int]:
    return (cell[0] - 1) // 2, (cell[1] - 1) // 2


def meeting(left: Any, right: Any, by_grid: bool) -> set[tuple[Any, Any]]:
    """Pairs of chunks that may hold a pair of cells: by the grid's boxes, or by those around the cells there are."""

    def boxes(cells: Any) -> dict[Any, Any]:
        chunks: dict[Any, Any] = {}
        for cell in cells:
            chunks.setdefault(chunk_of(cell), []).append(cell)
        if by_grid:
            return {(p, q): ((2 * p + 1, 2 * p + 2), (2 * q + 1, 2 * q + 2)) for p, q in chunks}
        return {
            chunk: tuple((min(side), max(side)) for side in zip(*held, strict=True)) for chunk, held in chunks.items()
        }

    def apart(one: tuple[int, int], other: tuple[int, int]) -> int:
        return max(0, other[0] - one[1], one[0] - other[1])

    return {
        (p, q)
        for (p, a), (q, b) in itertools.product(boxes(left).items(), boxes(right).items())
        if apart(a[0], b[0]) + apart(a[1], b[1]) <= 1
    }


def test_chunk_pairs_of_the_figure_by_hand() -> None:
    """What the other test holds windrow against is what VIEWS.md and the paper's text say."""
    number = {(0, 0): 1, (0, 1): 2, (0, 2): 3, (1, 0): 4, (2, 2): 5, (2, 3): 6, (1, 1): 7, (2, 1): 8}
    old_grid = {(number[p], number[q]) for p, q in meeting(NEW, FIGURE, by_grid=True)}
    new_grid = {(number[p], number[q]) for p, q in meeting(NEW, NEW, by_grid=True)}
    assert {q for p, q in old_grid if p == 4} == {1, 4}
    assert {q for p, q in new_grid if p == 4} == {1, 4, 7}
    assert {q for p, q in old_grid | new_grid if p == 7} == {2, 4, 7, 8}
    old_bounds = {(number[p], number[q]) for p, q in meeting(NEW, FIGURE, by_grid=False)}
    new_bounds = {(number[p], number[q]) for p, q in meeting(NEW, NEW, by_grid=False)}
    assert {q for p, q in new_bounds if p == 4} == {4}
    assert {q for p, q in old_bounds if p == 4} <= {4}
    assert {q for p, q in old_bounds | new_bounds if p == 7} == {7, 8}


def test_chunk_pairs_are_found_by_the_chunks_own_bounds(local: Any) -> None:
    inserted(local, "A", GRID, FIGURE)
    inserted(local, "D", GRID, dict.fromkeys(NEW, (0, 0)))
    for left, right, cells in (("D", "A", (NEW, FIGURE)), ("D", "D", (NEW, NEW)), ("A", "A", (FIGURE, FIGURE))):
        text = f"select count(*) as n from {left} L similarity join {right} R with shape L1(1) group by L.i, L.j"
        query = local.query(text)
        bound = query.bind().bound
        for by_grid in (False, True):
            pairs = find_chunk_pairs(bound.source, by_grid)
            assert pairs is not None
            keys = [[bound.source.left.schema.grid.key(int(one)) for one in side] for side in pairs]
            assert set(zip(*keys, strict=True)) == meeting(*cells, by_grid)
            assert len(pairs.left) == len(meeting(*cells, by_grid))
        said = (
            f"in {len(meeting(*cells, False))} chunk pairs by the chunks' own bounds ({len(meeting(*cells, True))} by"
        )
        assert said in str(query.explain())


# The small cases of VIEWS.md section 8, as plain joins: what a view must show is what its query gives


def held(cells: dict[Any, Any], *dimensions: tuple[str, int, int], attribute: str = "m") -> Held:
    rows = {cell if isinstance(cell, tuple) else (cell,): {attribute: value} for cell, value in cells.items()}
    return Held(tuple(Dimension(*dimension) for dimension in dimensions), rows)


COUNT = {"n": Measure("count_all")}
RIGHT_SUM = {"n": Measure("count_all"), "t": Measure("sum", (lambda s, far: s[-1]["m"],))}


def test_case_2(database: Any) -> None:
    array = database.create("A", "<m: int>[i=1:3; j=1:3]", sparse=True)
    asked = array.neighbours(wr.L1(1)).agg(n=wr.count())
    assert answers(asked, "i", "j") == {}
    array.insert(pa.table({"i": [1, 1], "j": [1, 2], "m": [0, 0]}))
    assert answers(asked, "i", "j") == {(1, 1): 2, (1, 2): 2}
    array.delete("true")
    assert answers(asked, "i", "j") == {}


def test_case_3(local: Any) -> None:
    array = inserted(local, "A", "<m: int>[i=1:9:2]", {1: 10, 3: 30})
    asked = array.neighbours(wr.offsets(i=(-2, 0))).agg(t=wr.sum("m"))
    assert answers(asked, "i") == {1: 10, 3: 40}
    array.insert(pa.table({"i": [2], "m": [20]}))
    assert answers(asked, "i") == {1: 10, 2: 30, 3: 60}
    shape = Shape((Between("i", -2, 0),))
    by_hand, _ = oracle.neighbours(held({1: 10, 2: 20, 3: 30}, ("i", 1, 9)), shape, RIGHT_SUM)
    assert {cell: values["t"] for (cell,), values in by_hand.items()} == {1: 10, 2: 30, 3: 60}


def test_case_5(local: Any) -> None:
    array = inserted(local, "A", "<m: int>[i=1:9:2]", {1: 1, 2: 2})
    asked = array.join(array, shape=wr.Linf(1), where="left.m < right.m").agg(n=wr.count())
    assert answers(asked, "i") == {1: 1}
    array.update({"m": "0"}, where="i = 2")
    assert answers(asked, "i") == {2: 1}


def test_case_6(local: Any) -> None:
    array = inserted(local, "A", "<r: int>[i=1:4:2; j=1:4:2]", {(1, 1): 4, (1, 2): 1, (2, 2): 5})
    text = "select count(*) as n from (select * from A where r > 3) L similarity join (select * from A where r > 3) R"
    asked = local.query(text + " with shape Linf(1) group by L.i, L.j")
    assert answers(asked, "i", "j") == {(1, 1): 2, (2, 2): 2}
    array.insert(pa.table({"i": [1, 1], "j": [2, 1], "r": [9, 0]}))
    assert answers(asked, "i", "j") == {(1, 2): 2, (2, 2): 2}


def test_case_7(local: Any) -> None:
    array = inserted(local, "A", "<m: int>[i=1:4:2; j=1:6:2]", {(1, 1): 0, (1, 2): 0, (2, 5): 0})
    asked = array.join(array, shape=wr.L1(1)).groupby("i").agg(n=wr.count())
    assert answers(asked, "i") == {1: 4, 2: 1}
    array.delete("i = 2 and j = 5")
    assert answers(asked, "i") == {1: 4}
    array.insert(pa.table({"i": [2], "j": [2], "m": [0]}))
    assert answers(asked, "i") == {1: 5, 2: 2}


def test_case_8(database: Any) -> None:
    left = inserted(database, "A", "<m: int>[i=1:9:2]", {1: 0, 5: 0})
    right = inserted(database, "B", "<m: int>[i=1:9:3]", {2: 7})
    asked = left.join(right, shape=wr.Linf(1), how="left").agg(n=wr.count(), t=wr.sum("right.m"))
    assert answers(asked, "i") == {1: (1, 7), 5: (0, None)}
    right.delete("true")
    right.insert(pa.table({"i": [5], "m": [3]}))
    assert answers(asked, "i") == {1: (0, None), 5: (1, 3)}
    left.delete("i = 5")
    assert answers(asked, "i") == {1: (0, None)}


def test_case_9(local: Any) -> None:
    array = inserted(local, "A", "<m: int>[i=1:9:2]", {1: 5, 2: 5, 9: 3})
    asked = array.neighbours(wr.offsets(i=wr.any_offset)).agg(best=wr.max("m"))
    assert answers(asked, "i") == {1: 5, 2: 5, 9: 5}
    array.delete("i = 1")
    assert answers(asked, "i") == {2: 5, 9: 5}
    array.delete("i = 2")
    assert answers(asked, "i") == {9: 3}


def test_case_10(local: Any) -> None:
    """`//` floors below zero, and scaled cells lie apart."""
    left = inserted(local, "A", "<m: int>[i=-3:3:2]", dict.fromkeys(range(-3, 4), 0))
    right = inserted(local, "B", "<m: int>[i=-9:9:4]", {-1: 0, 1: 0})
    halves = left.join(right, shape=wr.Linf(0), on={"i": "i // 2"}).agg(n=wr.count())
    assert answers(halves, "i") == dict.fromkeys([-2, -1, 2, 3], 1)
    right.insert(pa.table({"i": [0], "m": [0]}))
    right.delete("i = -1")
    assert answers(halves, "i") == dict.fromkeys([0, 1, 2, 3], 1)
    few = inserted(local, "C", "<m: int>[i=1:3:2]", dict.fromkeys(range(1, 4), 0))
    some = inserted(local, "D", "<m: int>[i=1:9:4]", dict.fromkeys(range(2, 5), 0))
    doubled = few.join(some, shape=wr.Linf(1), on={"i": "i * 2"}).agg(n=wr.count())
    assert answers(doubled, "i") == {1: 2, 2: 2}
    some.insert(pa.table({"i": [5], "m": [0]}))
    assert answers(doubled, "i") == {1: 2, 2: 3, 3: 1}
    step = Step(held(dict.fromkeys(range(2, 6), 0), ("i", 1, 9)), Shape((Norm("Linf", 1),)), {"i": Place("i", scale=2)})
    by_hand = oracle.join(held(dict.fromkeys(range(1, 4), 0), ("i", 1, 3)), step)
    assert oracle.aggregated(by_hand, [(0, "i")], COUNT) == {(1,): {"n": 2}, (2,): {"n": 3}, (3,): {"n": 1}}


def test_case_11(local: Any) -> None:
    left = inserted(local, "A", "<m: int>[t=1:3:2; r=1:9:4]", {(t, 5): 0 for t in (1, 2, 3)})
    right = inserted(local, "B", "<m: int>[r=1:9:2]", {6: 0})
    asked = left.join(right, shape=wr.Linf(1, on="r")).agg(n=wr.count())
    assert answers(asked, "t", "r") == {(t, 5): 1 for t in (1, 2, 3)}
    right.insert(pa.table({"r": [4], "m": [0]}))
    assert answers(asked, "t", "r") == {(t, 5): 2 for t in (1, 2, 3)}


def test_case_12(local: Any) -> None:
    """A neighbour is met once however often a periodic dimension leads to it; twins are neighbours."""
    array = inserted(local, "A", "<m: int>[i=1:3:2]", dict.fromkeys((1, 2, 3), 0))
    asked = array.neighbours(wr.Linf(2).wrap("i")).agg(n=wr.count())
    assert answers(asked, "i") == dict.fromkeys((1, 2, 3), 3)
    twins = local.create("T", "<m: int>[i=1:3:2; j=1:3:2; n=0:* numbering]", sparse=True)
    twins.insert(pa.table({"i": [1, 1, 1], "j": [1, 1, 2], "m": [0, 1, 2]}), on_duplicate="keep")
    around = twins.neighbours(wr.L1(1).excluding_self()).agg(c=wr.count())
    assert around.compute().column("c").to_pylist() == [2, 2, 2]


@pytest.mark.parametrize("extent", [3, 4, 5, 6])
@pytest.mark.parametrize("radius", [1, 2, 3, 7])
def test_periodic_dimensions_of_even_and_odd_extent(local: Any, extent: int, radius: int) -> None:
    """Half-way round an even extent, both ways lead to one cell."""
    dense = local.create("D", f"<m: int64>[i=0:{extent - 1}:2]")
    dense.write({"m": np.arange(extent)})
    sparse = inserted(local, "S", f"<m: int>[i=0:{extent - 1}:2]", {i: i for i in range(extent)})
    shape = wr.Linf(radius).wrap("i")
    wanted = {
        i: sum(k for k in range(extent) if min((k - i) % extent, (i - k) % extent) <= radius) for i in range(extent)
    }
    assert answers(sparse.neighbours(shape).agg(t=wr.sum("m")), "i") == wanted
    assert dense.neighbours(shape).agg(t=wr.sum("m")).compute()["t"].values.tolist() == list(wanted.values())


def test_case_13_sums_that_overflow_are_errors(local: Any) -> None:
    array = inserted(local, "A", "<m: int>[i=1:9:2]", {1: 2**62, 2: 2**62 - 1})
    asked = array.neighbours(wr.offsets(i=wr.any_offset)).agg(t=wr.sum("m"))
    assert answers(asked, "i") == dict.fromkeys((1, 2), 2**63 - 1)
    array.insert(pa.table({"i": [3], "m": [2**62]}))
    with pytest.raises(wr.Error, match="overflow"):
        asked.compute()
    with pytest.raises(wr.Error, match="overflow"):
        asked.store("B")
    assert "B" not in local


def test_case_14_infinities_and_large_values_leave_no_trace(local: Any) -> None:
    cells = {1: 0.1, 2: 0.2, 3: 0.3, 10: 1e16, 20: -math.inf, 30: math.nan}
    array = inserted(local, "A", "<m: double>[i=1:40:3]", cells)
    asked = array.neighbours(wr.offsets(i=(-9, 9))).agg(t=wr.sum("m"), n=wr.count("m"))
    found = answers(asked, "i")
    assert found[20] == (-math.inf, 1)
    assert found[30] == (None, 0)
    assert found[10] == (pytest.approx(1e16, rel=1e-15), 4)
    total, count = answers(array.neighbours(wr.offsets(i=(-2, 2))).agg(t=wr.sum("m"), n=wr.count("m")), "i")[2]
    assert count == 3
    assert total == pytest.approx(0.6, abs=6e-13)


def test_case_21_and_22(database: Any) -> None:
    left = inserted(database, "A", "<m: int>[i=0:20:3]", {0: 0})
    right = inserted(database, "B", "<m: int>[i=0:20:4]", {3: 0})
    nearest = left.join(right, shape=wr.Linf(9), nearest=1).select(f="right.m")
    assert set(answers(nearest, "left_i", "right_i")) == {(0, 3)}
    right.insert(pa.table({"i": [1], "m": [0]}))
    assert set(answers(nearest, "left_i", "right_i")) == {(0, 1)}
    left.insert(pa.table({"i": [10], "m": [0]}))
    right.delete("true")
    right.insert(pa.table({"i": [6], "m": [0]}))
    mutual = left.join(right, shape=wr.Linf(9), nearest="mutual").select(f="right.m")
    assert set(answers(mutual, "left_i", "right_i")) == {(10, 6)}
    left.delete("i = 10")
    assert set(answers(mutual, "left_i", "right_i")) == {(0, 6)}
    step = Step(held({6: 0}, ("i", 0, 20)), Shape((Norm("Linf", 9),)), {"i": Place("i")}, nearest=Nearest(mutual=True))
    assert [row for row, _ in oracle.join(held({0: 0, 10: 0}, ("i", 0, 20)), step).rows] == [((10,), (6,))]


# Traps


def test_ties_go_to_the_smaller_right_cell(local: Any) -> None:
    left = inserted(local, "A", "<m: int>[i=0:20:3; j=0:20:3]", {(5, 5): 1})
    around = {(4, 5): 1, (5, 4): 2, (5, 6): 3, (6, 5): 4}
    right = inserted(local, "B", "<m: int>[j=0:20:3; i=0:20:2]", {(j, i): m for (i, j), m in around.items()})
    for count, kept in ((1, {2}), (2, {2, 1}), (3, {2, 1, 4}), (9, {1, 2, 3, 4})):
        # In β's order of dimensions, j comes first.
        asked = left.join(right, shape=wr.L1(1), nearest=count).select(f="right.m")
        assert set(answers(asked, "left_i", "left_j", "right_j", "right_i").values()) == kept
    by = left.join(right, shape=wr.L1(1), nearest=(1, "-right.m")).select(f="right.m")
    assert set(answers(by, "left_i", "left_j", "right_j", "right_i").values()) == {4}


def test_conditions_come_before_nearest_and_where_after(local: Any) -> None:
    inserted(local, "A", "<m: int>[i=0:20:3]", {0: 5})
    inserted(local, "B", "<m: int>[i=0:20:3]", {1: 1, 2: 9})
    source = "from A L {} similarity join B R {} with shape Linf(3) nearest 1 {} group by L.i"
    for kind, on, where, wanted in (
        ("", "on R.m > 5", "", {0: (1, 9)}),
        ("", "", "where R.m > 5", {}),
        ("left", "on R.m > 50", "", {0: (0, None)}),
        ("left", "", "where R.m > 5", {}),
        ("left", "on R.m > 50", "where R.m is null", {0: (0, None)}),
    ):
        text = f"select count(*) as n, max(R.m) as t {source.format(kind, on, where)}"
        assert answers(local.query(text), "i") == wanted, text


def test_excluding_self_excludes_the_cell_and_not_its_twin(local: Any) -> None:
    """The first insert that keeps duplicates makes the numbering dimension."""
    twins = local.create("T", "<m: int>[i=1:3:2; n=0:*]", sparse=True)
    twins.insert(pa.table({"i": [1, 1, 1], "m": [1, 2, 4]}), on_duplicate="keep")
    found = twins.neighbours(wr.Linf(0).excluding_self()).agg(t=wr.sum("m")).compute()
    assert sorted(found.column("t").to_pylist()) == [3, 5, 6]
    paired = twins.join(twins, shape=wr.Linf(0).excluding_self()).agg(t=wr.sum("right.m")).compute()
    assert sorted(paired.column("t").to_pylist()) == [3, 5, 6]


def test_excluding_self_needs_a_self(local: Any) -> None:
    left = inserted(local, "A", "<m: int>[i=1:3:2]", {1: 0})
    right = inserted(local, "B", "<m: int>[i=1:3:2; j=1:3:2]", {(1, 1): 0})
    with pytest.raises(wr.Error, match="excluding self"):
        left.join(right, shape=wr.Linf(1, on="i").excluding_self()).agg(n=wr.count()).compute()


def test_excluding_self_goes_round_too(local: Any) -> None:
    """Cell 1 is mapped to 0, which is 6 on a circle of six."""
    array = inserted(local, "A", "<m: int>[i=1:6:2]", {i: i for i in range(1, 7)})
    shape = wr.Linf(1).wrap("i").excluding_self()
    found = answers(array.join(array, shape=shape, on={"i": "i - 1"}).agg(t=wr.sum("right.m")), "i")
    assert found == {i: sum((i - 2 + far) % 6 + 1 for far in (-1, 1)) for i in range(1, 7)}


def test_a_dimension_that_is_merely_called_n_is_like_any_other(local: Any) -> None:
    array = inserted(local, "A", "<m: int>[i=1:3:2; n=0:5:3]", {(1, 0): 1, (1, 3): 2, (2, 0): 4})
    found = answers(array.neighbours(wr.offsets(i=(-1, 1))).agg(t=wr.sum("m")), "i", "n")
    assert found == {(1, 0): 5, (1, 3): 2, (2, 0): 5}


def test_what_does_not_vary_has_no_correlation_and_no_deviation(local: Any) -> None:
    array = inserted(local, "A", "<m: double>[i=1:9:2]", dict.fromkeys(range(1, 10), 0.1))
    asked = array.neighbours(wr.Linf(3)).agg(v=wr.var("m"), d=wr.std("m"), c=wr.corr("m", "m"), k=wr.skew("m"))
    for variance, deviation, correlation, skewness in answers(asked, "i").values():
        assert variance == pytest.approx(0, abs=1e-11)
        assert deviation == pytest.approx(0, abs=1e-5)
        assert correlation is None or math.isnan(correlation)
        assert skewness is None or math.isnan(skewness)


def test_weights_that_sum_to_nothing_give_nothing(local: Any) -> None:
    array = inserted(local, "A", "<m: double, w: double>[i=1:9:2]", {1: (1.0, 0.1), 2: (5.0, -0.1), 5: (3.0, 0.0)})
    asked = answers(array.neighbours(wr.Linf(1)).agg(a=wr.avg("m", weight="w")), "i")
    assert all(value is None or math.isnan(value) for value in asked.values())


def test_zeros_of_either_sign_are_one_value(local: Any) -> None:
    array = inserted(local, "A", "<m: double>[i=1:9:2]", {1: 0.0, 2: -0.0, 3: 1.0})
    found = answers(array.neighbours(wr.Linf(9)).agg(d=wr.count_distinct("m"), o=wr.mode("m")), "i")
    assert set(found.values()) == {(2, 0.0)}


def test_shapes_larger_than_the_array_and_mappings_beyond_it(local: Any) -> None:
    array = inserted(local, "A", "<m: int>[i=1:9:2]", {1: 1, 9: 2})
    assert answers(array.neighbours(wr.Linf(2**20)).agg(t=wr.sum("m")), "i") == {1: 3, 9: 3}
    far = array.join(array, shape=wr.Linf(8), on={"i": "i + 8"}).agg(t=wr.sum("right.m"))
    assert answers(far, "i") == {1: 3, 9: 2}


def test_any_time_is_never_enumerated(local: Any) -> None:
    """A dimension of 10^12 cells, first in order: whatever walks its offsets would not come back."""
    cells = {(k * 10**9, k % 3): k for k in range(100)}
    array = inserted(local, "A", "<m: int>[time=0:1000000000000:1000000000; ra=0:5:2]", cells)
    counted = answers(
        array.neighbours(wr.Linf(1, on="ra") & wr.offsets(time=wr.any_offset)).agg(n=wr.count()), "time", "ra"
    )
    assert counted == {cell: sum(abs(cell[1] - ra) <= 1 for _, ra in cells) for cell in cells}
    wide = wr.offsets(time=(-(10**10), 0))
    counted = answers(array.neighbours(wide).agg(n=wr.count()), "time", "ra")
    assert counted == {
        (time, ra): sum(other == ra and time - 10**10 <= t <= time for t, other in cells) for time, ra in cells
    }
