"""The pieces that joins are made of, each against what it is defined to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import windrow as wr
from windrow.expressions.nodes import Column
from windrow.model.box import Box
from windrow.model.schema import Dimension, Schema
from windrow.operations.join import partners
from windrow.operations.join.partners import find_partners
from windrow.operations.join.reach import image, image_span, inverse_span, partner_pieces
from windrow.plan.join_terms import AxisMap

PLACES = st.builds(
    lambda by, factor, shift: AxisMap(Column("i", "side1"), **{by: factor}, shift=shift),
    st.sampled_from(["scale", "divisor"]),
    st.integers(1, 5),
    st.integers(-7, 7),
)


@given(place=PLACES, span=st.tuples(st.integers(-20, 20), st.integers(0, 15)))
def test_the_inverse_of_a_mapping_holds_every_cell_that_is_mapped_there(place: AxisMap, span: tuple[int, int]) -> None:
    lo, hi = span[0], span[0] + span[1]
    cells = np.arange(-200, 201)
    mapped = image(place, cells)
    inside = cells[(mapped >= lo) & (mapped <= hi)]
    first, last = inverse_span(place, (lo, hi))
    assert list(inside) == [cell for cell in cells if first <= cell <= last]
    if len(inside):
        assert image_span(place, (int(inside[0]), int(inside[-1]))) == (
            mapped[inside + 200].min(),
            mapped.max(where=(mapped <= hi), initial=-1000),
        )


SHAPES = [
    wr.L1(2),
    wr.L2(2.3),
    wr.Linf(1).excluding_self(),
    wr.offsets(i=(-3, -1), j=(0, 2)),
    wr.offsets(i=wr.any_offset),
    wr.offsets(i=wr.any_offset, j=wr.any_offset).excluding_self(),
    wr.Linf(2).wrap("i"),
    wr.L1(9).wrap("i", "j"),
    wr.Hamming(1),
    wr.offset_list([(0, 0), (1, 2), (-2, 1)]).wrap("j"),
]
EXTENTS = (6, 5)
CELLS = st.lists(st.tuples(st.integers(0, EXTENTS[0] - 1), st.integers(0, EXTENTS[1] - 1)), max_size=14, unique=True)


@pytest.mark.parametrize("numbered", [True, False], ids=["keys", "rows"])
@settings(max_examples=40, deadline=None)
@given(cells=CELLS, shape=st.sampled_from(SHAPES))
def test_partners_by_keys_and_by_rows_are_those_of_the_definition(
    cells: list[tuple[int, int]], shape: Any, numbered: bool
) -> None:
    bounds = Box((0, 0), (EXTENTS[0] - 1, EXTENTS[1] - 1))
    bound = shape.bind(Schema((Dimension("i", 0, 5), Dimension("j", 0, 4)), (), sparse=True), bounds)
    assume(numbered or bound.key_runs().axes)  # without dimensions to tell them by, all cells have one key
    listed = np.array(sorted(cells), np.int64).reshape(-1, 2)
    mapping = [AxisMap(Column(name, "side1")) for name in "ij"]
    spans = {f"side1.{name}": (lo, hi) for name, lo, hi in zip("ij", bounds.lo, bounds.hi, strict=True)}
    at, own = [], []
    for piece in partner_pieces(bound, mapping, spans, bounds):
        inside = ((listed >= piece.box.lo) & (listed <= piece.box.hi)).all(axis=1)
        own.append(np.flatnonzero(inside))
        at.append(listed[inside] + piece.shift)
    places, numbers = np.concatenate(at), np.concatenate(own)
    order = np.argsort(numbers, kind="stable")
    places, numbers = places[order], numbers[order]
    with pytest.MonkeyPatch.context() as patch:
        if not numbered:
            patch.setattr(partners, "key_space", lambda *_: None)
        found = find_partners(bound, len(listed), list(listed.T), list(places.T), {})
        pairs = {
            (int(row), int(numbers[cell]))
            for _, left, right in found.pairs()
            for row, cell in zip(left, right, strict=True)
        }
        counted = sum(len(left) for _, left, _ in found.pairs())
    wanted = {
        (row, cell)
        for row, one in enumerate(listed)
        for cell, other in enumerate(listed)
        if bound.contains(other - one)
    }
    assert pairs == wanted
    assert counted == len(wanted)


def test_arrays_too_large_to_number_their_cells(tmp_path: Any) -> None:
    with wr.connect(tmp_path, engine="local") as database:
        array = database.create(
            "A",
            "<x: int64> [i=0:2000000000:10000, j=0:2000000000:10000, k=0:2000000000:10000]",
            sparse=True,
        )
        random = np.random.default_rng(3)
        base = random.integers(0, 2 * 10**9 - 5, (6, 2))
        cells = np.unique(
            np.concatenate([np.c_[base + random.integers(0, 3, base.shape), [k] * 6] for k in range(5)]), axis=0
        )
        array.insert({"i": cells[:, 0], "j": cells[:, 1], "k": cells[:, 2], "x": np.arange(len(cells))})
        asked = array.neighbours(wr.L1(2, on=("i", "j")) & wr.offsets(k=(-1, 1)))
        found = asked.agg(n=wr.count(), s=wr.sum("x"), m=wr.median("x")).compute()
        apart = cells[:, None] - cells[None]
        near = (np.abs(apart[..., :2]).sum(-1) <= 2) & (np.abs(apart[..., 2]) <= 1)
        assert found.column("n").to_pylist() == near.sum(1).tolist()
        assert found.column("s").to_pylist() == [int(np.flatnonzero(row).sum()) for row in near]
        assert found.column("m").to_pylist() == [float(np.median(np.flatnonzero(row))) for row in near]


# What users meet


def test_where_says_nothing_of_the_mapping(tmp_path: Any) -> None:
    with wr.connect(tmp_path, engine="local") as database:
        array = database.create("A", "<m: int64> [i=1:9, j=1:9]", sparse=True)
        array.insert({"i": [1, 2, 5], "j": [2, 4, 5], "m": [1, 2, 3]})
        asked = array.join(array, shape=wr.Linf(9), where="left.i = right.j and left.m < 9").select(m="left.m")
        found = asked.compute().to_pydict()
        assert list(zip(found["left_i"], found["right_j"], strict=True)) == [(2, 2), (5, 5)]
        assert database.query(str(asked.plan)).compute() == asked.compute()


def test_errors_call_the_sides_as_the_query_does(tmp_path: Any) -> None:
    with wr.connect(tmp_path, engine="local") as database:
        database.create("A", "<m: int64> [i=1:9]", sparse=True).insert({"i": [1, 2], "m": [1, 2]})
        for asked in ("select 1 / (A.m - B.m) as x {}", "select sum(1 / (A.m - B.m)) as x {} group by A.i"):
            with pytest.raises(wr.Error, match=r"1 / \(A.m - B.m\)"):
                database.query(asked.format("from A similarity join A B with shape Linf(1)")).compute()


def test_errors_of_conditions_on_one_side_keep_the_side(tmp_path: Any) -> None:
    """They are applied before cells are paired, to a side alone."""
    with wr.connect(tmp_path, engine="local") as database:
        array = database.create("A", "<m: int64> [i=1:9]", sparse=True)
        array.insert({"i": [1, 2], "m": [2, 3]})
        for side in ("left", "right"):
            asked = array.join(array, shape=wr.Linf(1), where=f"{side}.m * 9223372036854775807 > 1")
            with pytest.raises(wr.Error, match=rf"overflow, got \"?{side}\"?\.m \* 9"):
                asked.agg(k=wr.count()).compute()
        with pytest.raises(wr.Error, match=r"zero, got 1 // \(B\.m - B\.m\).*when B\.m - B\.m <> 0"):
            database.query(
                "select count(*) as k from A similarity join A B with shape Linf(1) where 1 // (B.m - B.m) > 0"
            ).compute()
        with pytest.raises(wr.Error, match=r"overflow, got m \* 9"):
            database.query(
                "select count(*) as k from (select m from A where m * 9223372036854775807 > 1) C "
                "similarity join A with shape Linf(1)"
            ).compute()


def test_results_cannot_be_called_like_the_numbering_dimension(tmp_path: Any) -> None:
    grid = {"time": ("2024-01-01", None, "1 day"), "ra": (0, 360, "10 arcsec"), "dec": (-90, 90, "10 arcsec")}
    with wr.connect(tmp_path, engine="local") as database:
        array = database.create("S", "<m: float64> [time, ra, dec]", grid=grid)
        times = np.array(["2024-03-01", "2026-06-01"], "datetime64[us]")
        array.insert({"time": times, "ra": [10.0, 10.0001], "dec": [1.0, 1.0], "m": [1.0, 2.0]})
        with pytest.raises(wr.SchemaError, match="n is a dimension of the result, which numbers the cells"):
            array.neighbours(wr.L1(1, on=("ra", "dec"))).agg(n=wr.count())
        # Pairs of large arrays that grow, in the chunks of both sides, would be too many to number.
        near = wr.sky("10 arcsec", on=("ra", "dec")) & wr.offsets(time=wr.any_offset)
        array.join(array, shape=near).select(d="distance('arcsec')").store("P")
        assert database.array("P").read().column("d").to_pylist() == pytest.approx([0, 0.36, 0.36, 0], rel=1e-3)


def test_mutual_nearest_at_the_end_of_a_chain(tmp_path: Any) -> None:
    """Rows of two cells and cells of a third array that are each other's first, wherever the rows begin."""
    held = {"A": [1, 4, 9], "B": [2, 5, 8], "C": [3, 5, 7]}
    with wr.connect(tmp_path, engine="local") as database:
        for name, cells in held.items():
            database.create(name, "<m: int64> [i=1:9:2]", sparse=True).insert({"i": cells, "m": cells})
        chain = (
            "A similarity join B with shape Linf(2) similarity join C on C.i = B.i with shape Linf(2) mutual nearest"
        )
        found = database.query(f"select A.m as a, B.m as b, C.m as c from {chain}").compute().to_pydict()
    rows = [(a, b) for a in held["A"] for b in held["B"] if abs(a - b) <= 2]
    pairs = [(abs(row[1] - c), row, c) for row in rows for c in held["C"] if abs(row[1] - c) <= 2]
    forth = {row: min((far, c) for far, mine, c in pairs if mine == row)[1] for _, row, _ in pairs}
    back = {c: min((far, row) for far, row, theirs in pairs if theirs == c)[1] for _, _, c in pairs}
    wanted = sorted((*row, c) for row, c in forth.items() if back[c] == row)
    assert sorted(zip(found["a"], found["b"], found["c"], strict=True)) == wanted
