"""Results as text: matrices, lists and slices show the cells they stand for, and large ones are cut with a count."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Connect
from windrow.console.render.grids import Axis, Column, matrix, table
from windrow.console.render.values import (
    MISSING,
    column_texts,
    display_width,
    number_text,
    on_points,
    shorten,
    text_text,
    texts,
)
from windrow.console.session.viewing import Limits, table_view, view


def shown(query: Any, rows: int = 40, width: int | None = 100) -> str:
    return "\n".join(line.text for line in view(query, Limits(rows, width)).lines)


# Values


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_six_digits(value: float) -> None:
    assert float(number_text(value)) == pytest.approx(value, rel=1e-5, abs=0)


@given(st.one_of(st.floats(width=32), st.integers(-(2**63), 2**63 - 1)))
def test_numbers_are_short(value: float) -> None:
    found = number_text(value) if isinstance(value, float) else texts(np.array([value]))[0]
    assert len(found) <= 20
    assert (found == MISSING) == (value != value)


def test_whole_numbers_have_all_their_digits() -> None:
    assert number_text(123456789.0) == "123456789"
    assert number_text(1234567.125) == "1234567.1"
    assert [number_text(value) for value in (float("inf"), -0.0, 1e300, 0.1 + 0.2)] == ["inf", "0", "1e+300", "0.3"]


def test_moments_have_the_parts_they_need() -> None:
    days = np.array(["2012-01-01", "NaT", "2012-02-29"], "datetime64[us]")
    assert texts(days) == ["2012-01-01", MISSING, "2012-02-29"]
    assert texts(days + np.timedelta64(90, "m")) == ["2012-01-01 01:30", MISSING, "2012-02-29 01:30"]
    assert texts(days[:1] + np.timedelta64(1, "us")) == ["2012-01-01 00:00:00.000001"]
    made = pa.array([1_000_000_123_456], pa.timestamp("us", tz="UTC"))
    assert column_texts(made) == ["1970-01-12 13:46:40"]


@given(st.text())
def test_texts_are_one_line_and_not_taken_for_missing(text: str) -> None:
    found = text_text(text)
    assert found.isprintable()
    assert found != MISSING
    assert found.strip()
    assert display_width(found) <= 500


@given(st.text(), st.integers(2, 20))
def test_shortened_texts_fit(text: str, width: int) -> None:
    found = shorten(text, width)
    assert display_width(found) <= width
    assert found == text or (found.endswith("…") and text.startswith(found[:-1]))


def test_points_stand_below_one_another() -> None:
    assert on_points(["1.5", "12", MISSING, "3.25"]) == ["1.5 ", "12   ", MISSING, "3.25"]


# Layouts


@given(st.lists(st.lists(st.integers(-999, 999), min_size=3, max_size=3), min_size=1, max_size=5))
def test_a_matrix_reads_back(rows: list[list[int]]) -> None:
    down = Axis("i", [str(10 + number) for number in range(len(rows))])
    laid = matrix(down, Axis("j", ["1", "2", "3"]), [[str(value) for value in row] for row in rows], None)
    body = [line.text for line in laid.lines if line.style == "plain"]
    assert [[int(value) for value in line.split("│")[1].split()] for line in body] == rows
    assert [line.split("│")[0].strip() for line in body] == list(down.numbers)
    assert len({line.text.find("│") for line in laid.lines if line.style != "rule"}) == 1


@given(st.integers(20, 120), st.lists(st.text(max_size=30), min_size=1, max_size=8))
def test_lines_fit_the_width(width: int, names: list[str]) -> None:
    columns = [Column(text_text(name), ["x" * number, "1"]) for number, name in enumerate(names)]
    laid = table([Column("i", ["1", "2"], right=True)], columns, width)
    assert 1 <= laid.columns <= len(names)
    if laid.columns > 1:
        assert max(display_width(line.text) for line in laid.lines) <= width


# Queries


def test_paper_002(connect: Connect) -> None:
    db = connect()
    db.query("create A [i=1:3,j=1:3] <double a,double b>")
    db.query("load A 1 2 3 4 5 6 7 8 9 0 9 8 7 6 5 4 3 2")
    assert shown(db.query("select A")).splitlines()[3:] == [
        "  1 │ (1, 2)  (3, 4)  (5, 6)",
        "  2 │ (7, 8)  (9, 0)  (9, 8)",
        "  3 │ (7, 6)  (5, 4)  (3, 2)",
    ]
    assert shown(db.query("aggr A avg(a)")) == "avg_a = 5.44444"
    narrow = shown(db.query("select A"), width=20)  # no room for both in one cell
    assert [line for line in narrow.splitlines() if line in ("a", "b")] == ["a", "b"]
    assert "… 1 column more" not in narrow


def test_labels_stand_beside_numbers(connect: Connect) -> None:
    db = connect()
    days = np.array(["2012-01-01", "2012-01-02"], "datetime64[D]")
    array = db.create(
        "T", "<t: float32, n: int32 null> [time=0:1, lat=1:3]", labels={"time": days, "lat": [50.0, 52.5, 55.0]}
    )
    array.write({"t": np.array([[1, 2, np.nan], [4, 5, 6.5]], "f4"), "n": np.arange(6).reshape(2, 3)})
    assert shown(db.query("select t from T")).splitlines() == [
        "t",
        "     time\\lat │  1     2     3",
        "              │ 50  52.5    55",
        "──────────────┼───────────────",
        "0  2012-01-01 │  1     2  null",
        "1  2012-01-02 │  4     5   6.5",
    ]
    listed = shown(db.query("select t from T where t > 3")).splitlines()
    assert listed[0].split() == ["time", "lat", "│", "t"]
    assert listed[2].split() == ["1", "2012-01-02", "1", "50", "│", "4"]


def test_more_dimensions_come_in_slices(connect: Connect) -> None:
    db = connect()
    values = np.arange(2 * 3 * 2 * 2).reshape(2, 3, 2, 2)
    db.create("D", "<v: int64> [a=1:2, b=5:7, c=1:2, d=1:2]").write({"v": values})
    found = shown(db.query("select D"), rows=10)
    titles = [line for line in found.splitlines() if line.startswith("a=")]
    assert titles == ["a=1, b=5", "a=1, b=6"]
    assert "  2 │ 6  7" in found
    assert found.splitlines()[-1] == "… 4 slices more"


@pytest.mark.parametrize("sparse", [False, True])
def test_large_results_are_cut_and_counted(connect: Connect, sparse: bool) -> None:
    db = connect()
    side = 300
    array = db.create("L", f"<v: int64> [i=1:{side}:50, j=1:{side}:50]", sparse=sparse)
    values = np.arange(side * side).reshape(side, side)
    if sparse:
        i, j = np.divmod(np.arange(side * side), side)
        array.insert({"i": i + 1, "j": j + 1, "v": values.reshape(-1)})
    else:
        array.write({"v": values})
    found = view(db.query("select L"), Limits(rows=5))
    assert found.cells == side * side
    lines = [line.text for line in found.lines]
    if sparse:
        wanted = [f"1  {place + 1}  {place}" for place in range(5)]
        assert [" ".join(line.replace("│", "").split()) for line in lines[2:-1]] == [
            " ".join(w.split()) for w in wanted
        ]
        assert lines[-1] == f"… {side * side - 5:,} cells more"
        filtered = view(db.query("select v from L where v % 2 = 1"), Limits(rows=5))
        assert filtered.cells == side * side // 2
        assert filtered.lines[2].text.split() == ["1", "2", "│", "1"]
    else:
        assert lines[3].split() == ["1", "│", *(str(value) for value in range(len(lines[3].split()) - 2))]
        rest = re.fullmatch(r"… 295 rows and (\d+) columns more", lines[-1])
        assert rest is not None
        assert int(rest[1]) == side - len(lines[3].split()) + 2


def test_only_what_is_shown_is_computed(connect: Connect) -> None:
    """Of 1600 chunks, the query reads those in the corner that is shown."""
    db = connect()
    array = db.create("L", "<v: float64> [i=1:4000:100, j=1:4000:100]")
    array.write({"v": np.ones((100, 100))}, at=(1, 1))
    asked: list[int] = []
    run = db.engine.local.run

    def counted(job: Any) -> Any:
        asked.extend(task.box.size for task in job.tasks)
        return run(job)

    db.engine.local.run = counted
    assert "… 3,995 rows and" in shown(db.query("select avg(v) as m from L window (i 3, j 3)"), rows=5)
    assert 0 < sum(asked) <= 5 * 100


def test_nothing(connect: Connect, tmp_path: Path) -> None:
    db = connect()
    db.create("E", "<v: int64> [i=1:*]")
    db.create("S", "<v: int64> [i=1:9]", sparse=True)
    assert shown(db.query("select E")) == shown(db.query("select S")) == "no cells"
    assert view(db.query("select S"), Limits()).cells == 0
    assert [line.text for line in table_view(db.query("list views"), Limits()).lines] == ["none"]
    assert "2 columns more" in "\n".join(
        line.text for line in table_view(pa.table({name: [12345678] for name in "abcd"}), Limits(width=24)).lines
    )


@given(st.data())
def test_sparse_cells_come_in_the_order_of_coordinates(data: st.DataObject) -> None:
    """Block after block, with the first ones kept; the twin sorts everything."""
    from windrow.model.box import Box
    from windrow.model.notation import parse_schema
    from windrow.operations.query.bound_query import _slabs

    chunk = data.draw(st.integers(1, 7))
    lo = data.draw(st.integers(-5, 5))
    first = data.draw(st.integers(lo, lo + 20))
    last = data.draw(st.integers(first, lo + 20))
    _, schema = parse_schema(f"<v: int64> [i={lo}:{lo + 20}:{chunk}, j=1:3:3]", True)
    parts = list(_slabs(schema, Box((first, 1), (last, 3))))
    assert list(itertools.chain(*(range(p.lo[0], p.hi[0] + 1) for p in parts))) == list(range(first, last + 1))
    assert all((p.lo[0] - lo) // chunk == (p.hi[0] - lo) // chunk for p in parts)
