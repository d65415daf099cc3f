"""Small pictures in a terminal show what they are drawn from."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from conftest import Connect
from windrow.console.render.pictures import Picture, picture
from windrow.console.render.previews import HEIGHT, _average, preview


def drawn(
    found: Any, kind: str | None = None, attribute: str | None = None, dimensions: tuple[str, ...] = ()
) -> Picture:
    return picture(found, attribute, kind, dimensions)


@given(st.data())
def test_maps_are_averaged(data: st.DataObject) -> None:
    rows, columns = (data.draw(st.integers(1, 9)) for _ in range(2))
    size = tuple(data.draw(st.integers(1, 9)) for _ in range(2))
    values = np.array(
        [[data.draw(st.sampled_from([0.0, 1.0, 7.5, np.nan])) for _ in range(columns)] for _ in range(rows)]
    )
    found = _average(values, *size)
    assert found.shape == size
    for place in np.ndindex(*size):
        parts = []
        for at, extent, target in zip(place, (rows, columns), size, strict=True):
            finer = [at * extent // target]
            parts.append(finer if target >= extent else [*range(at * extent // target, (at + 1) * extent // target)])
        # Means of means, one side after the other, as the picture takes them.
        means = [np.nanmean(column) for column in values[np.ix_(*parts)].T if not np.isnan(column).all()]
        wanted = np.mean(means) if means else np.nan
        assert found[place] == pytest.approx(wanted, nan_ok=True)


def test_a_map(connect: Connect) -> None:
    db = connect()
    array = db.create("M", "<v: float64> [lat=1:2, lon=1:4]", labels={"lat": [10.0, 20.0], "lon": [0.0, 1.0, 2.0, 3.0]})
    array.write({"v": np.array([[0, 1, 2, 3], [4, 5, 6, np.nan]])})
    found = drawn(db.query("select M").compute())
    np.testing.assert_array_equal(found.values, [[4, 5, 6, np.nan], [0, 1, 2, 3]])  # the north is up
    plain = preview(found, 80, colours=False)
    assert plain[0] == "v: 0 to 6"
    assert plain[1].startswith("20 ")
    assert plain[-2].startswith("10 ")
    assert plain[-1].strip() == "0 lon 3"
    assert plain[1].rstrip()[-1] == "█"
    assert plain[-2].split()[1][0] == "░"
    lines = preview(found, 80, colours=True)
    assert len(lines) == len(plain)
    assert "\x1b[38;5;17;48;5;17m▀" in lines[-2]
    assert all(line.endswith("\x1b[0m") for line in lines[1:-1])


def test_maps_fit_the_terminal() -> None:
    for shape in ((1, 1), (1000, 3), (3, 1000), (500, 800)):
        lines = preview(Picture("map", "m", np.ones(shape)), 60, colours=False)
        assert len(lines) <= HEIGHT + 2
        assert max(map(len, lines)) <= 60


def test_a_line(connect: Connect) -> None:
    db = connect()
    db.create("L", "<v: float64> [i=1:100]").write({"v": np.arange(100.0)})
    lines = preview(drawn(db.query("select L").compute()), 40, colours=False)
    assert len(lines) == HEIGHT + 2
    assert lines[1].startswith("99 ")
    assert lines[HEIGHT].startswith(" 0 ")
    assert lines[-1].strip() == "1 i 100"
    dots = [[column for column, sign in enumerate(line[3:]) if "\u2800" < sign <= "\u28ff"] for line in lines[1:-1]]
    assert all(dots)
    assert [min(row) for row in dots] == sorted((min(row) for row in dots), reverse=True)  # it rises
    flat = preview(Picture("line", "v", np.array([2.0, np.nan, 2.0])), 40, colours=False)
    assert sum(any("\u2800" < sign <= "\u28ff" for sign in line) for line in flat) == 1


def test_a_histogram() -> None:
    values = np.array([0.0] * 30 + [12.0] * 10 + [np.nan, np.inf])
    lines = preview(Picture("histogram", "v", values), 60, colours=False)
    assert lines[0] == "v"
    counts = [int(line.split()[-1]) for line in lines[1:]]
    assert (counts[0], counts[-1], sum(counts)) == (30, 10, 40)
    assert lines[1].count("█") == pytest.approx(3 * lines[-1].count("█"), abs=2)
    assert lines[1].strip().startswith("0 to 1 │")


def test_sparse_results(connect: Connect) -> None:
    db = connect()
    db.create("S", "<v: int32> [night=1:9, ra=1:900, dec=1:900]", sparse=True).insert(
        {"night": [1, 2, 3], "ra": [1, 900, 900], "dec": [1, 900, 900], "v": [1, 2, 4]}
    )
    cells, dimensions = db.query("select S").compute(), ("night", "ra", "dec")
    found = drawn(cells, dimensions=dimensions)
    assert (found.across, found.down) == (("ra", "1", "900"), ("dec", "900", "1"))
    present = found.values[np.isfinite(found.values)]
    assert sorted(present) == [1, 3]  # the mean where two fall on one place
    assert np.isfinite(found.values[0, -1])
    np.testing.assert_array_equal(drawn(cells, "line", dimensions=dimensions).values, [1, 2, 4])
    assert drawn(cells, "histogram", dimensions=dimensions).kind == "histogram"


def test_further_dimensions_and_missing_values(connect: Connect) -> None:
    db = connect()
    array = db.create("D", "<v: int16 null, w: float32> [time=1:3, i=1:2, j=1:2]")
    array.write(
        {"v": np.arange(12).reshape(3, 2, 2), "v__valid": np.arange(12).reshape(3, 2, 2) < 11, "w": np.ones((3, 2, 2))}
    )
    found = drawn(db.query("select D").compute())
    assert re.fullmatch(r"v, \w+ \d", found.title)
    assert np.isnan(found.values).sum() == 1
    assert drawn(db.query("select D").compute(), attribute="w").values.max() == 1
    assert drawn(db.query("aggr D max(v)").compute()).values.tolist() == [10]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select v from N", "no present values"),
        ("select v from N where v > 3", "no cells"),
        ("select 'x' as t from N", "only numbers"),
    ],
)
def test_a_plot_of_nothing(connect: Connect, text: str, said: str) -> None:
    db = connect()
    db.create("N", "<v: float64> [i=1:3, j=1:3]")
    query = db.query(text)
    with pytest.raises(wr.Error, match=said):
        drawn(query.compute(), dimensions=query.schema.dimension_names)
    with pytest.raises(wr.Error, match="one of map"):
        drawn(query.compute(), "pie", dimensions=query.schema.dimension_names)
