"""Users' operators: in the language, in Python and on Spark as on NumPy arrays, and what is wrong with them is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.aggregates.plugins import load_plugins
from windrow.api.session.completion import next_words
from windrow.language.parser import parse
from windrow.plan.operators import REGISTERED


@wr.operator("box_mean", halo=lambda width: width // 2, result="<a: float64>")
def box_mean(block: Any, width: int) -> Any:
    """the average of the cells around each cell"""
    values = block["a"]
    total, cells = np.zeros_like(values), np.zeros_like(values)
    for shift in np.ndindex(*(width,) * values.ndim):
        moved = [step - width // 2 for step in shift]
        ends = list(zip(moved, values.shape, strict=True))
        source = tuple(slice(max(0, step), extent + min(0, step)) for step, extent in ends)
        target = tuple(slice(max(0, -step), extent + min(0, -step)) for step, extent in ends)
        total[target] += values[source]
        cells[target] += 1
    return total / cells


@wr.operator("shorter")
def shorter(block: Any) -> Any:
    return block["a"][1:]


@wr.operator("unlucky")
def unlucky(block: Any) -> Any:
    if (block["a"] == 77).any():
        raise ValueError("77 is in it")
    return block


@wr.operator("farsighted", halo=(1, 50))
def farsighted(block: Any) -> Any:
    return block


@wr.operator("edges", halo=1, result=lambda schema, scale: "<east: float32, high: bool>")
def edges(block: Any, scale: float) -> Any:
    east = np.zeros_like(block["a"])
    east[..., 1:] = np.diff(block["a"], axis=-1) * scale
    return {"east": east, "high": block["a"] > 100}


VALUES = np.arange(20 * 15.0).reshape(20, 15) * 7 % 131


def fill(db: Any) -> Any:
    array = db.create("A", "<a: float64> [i=1:20:6, j=1:15:4]")
    array.write({"a": VALUES})
    return array


def test_everywhere_a_query_can_stand(database: Any) -> None:
    array = fill(database)
    around = array.window(i=wr.centred(3), j=wr.centred(3)).agg(a=wr.avg("a")).compute()["a"].values
    for query in (database.query("select a from box_mean(A, 3)"), box_mean(array, 3), array.operate("box_mean", 3)):
        np.testing.assert_allclose(query.compute()["a"].values, around)
    part = database.query("select a from box_mean(A, 3) where i between 4 and 9 and j > 10").compute()
    np.testing.assert_allclose(part["a"].values, around[3:9, 10:])
    database.query("select a * 2 as b from box_mean(A, 3) into B")
    np.testing.assert_allclose(database.array("B").read()["b"].values, 2 * around)
    total = database.query("aggr box_mean(A, 3) max(a)").compute()
    assert float(total.to_array().item()) == pytest.approx(around.max())
    found = database.query("select * from edges(A, 0.5)").compute()
    np.testing.assert_array_equal(found["east"].values[:, 1:], (np.diff(VALUES, axis=1) / 2).astype(np.float32))
    np.testing.assert_array_equal(found["high"].values, VALUES > 100)


def test_on_what_is_computed(local: Any) -> None:
    fill(local)
    once = local.query("select a from box_mean(A, 3)").operate("box_mean", 5).compute()
    twice = local.query("select a from box_mean(box_mean(A, 3), 5)").compute()
    np.testing.assert_array_equal(once["a"].values, twice["a"].values)


@pytest.mark.parametrize(
    "text",
    ["select a from box_mean(A, 3)", "select * from box_mean(between(A, 1, 1, 9, 9), 3) s where a > 2",
     "select max(a) as m from box_mean((select a from A), 3) window (i 3)", "select a from edges(A, 0.5) into B"],
)  # fmt: skip
def test_it_is_printed_as_it_is_read(text: str) -> None:
    assert parse(str(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("select a from shorter(A)", "operator shorter gave an array of another shape than it got"),
        ("select a from unlucky(A)", r"operator unlucky failed on the block .*77 is in it"),
        ("select a from farsighted(A)", "halo that is larger than the array, got 50 cells along j, which has 15"),
        ("select a from bx_mean(A, 3)", "(?s)no such operator.*Did you mean 'box_mean'"),
        ("select a from box_mean(A)", "takes other parameters"),
        ("select a from box_mean(A, a)", "the parameters of an operator are numbers and texts"),
        ("select a from box_mean(A, 'x')", "the halo of operator box_mean cannot be worked out"),
        ("select a from box_mean(S, 3)", "takes dense arrays"),
    ],
)
def test_mistakes(local: Any, text: str, told: str) -> None:
    fill(local)
    local.create("S", "<a: float64> [i=1:5]", sparse=True)
    with pytest.raises(wr.Error, match=told):
        local.query(text).compute()


def test_names_that_are_taken_and_functions_that_are_none() -> None:
    with pytest.raises(wr.DataError, match="a form of the language has that name"):
        wr.operator("window")
    with pytest.raises(wr.DataError, match="must be a function of a block"):
        wr.operator("nothing")(lambda: None)
    with pytest.raises(wr.DataError, match="takes an array or a query"):
        box_mean(VALUES, 3)


def test_it_is_listed_completed_and_explained(local: Any) -> None:
    fill(local)
    listed = local.query("list operators").to_pylist()
    row = next(row for row in listed if row["name"] == "box_mean")
    assert row["usage"] == "box_mean(A, width)"
    assert row["gives"] == "the average of the cells around each cell"
    assert "box_mean(" in next_words(local, "select a from ", "select a from ")
    assert "operator box_mean(…, 3), with a halo of 1, 1 cells" in str(
        local.query("explain select a from box_mean(A, 3)")
    )


PACKAGE = '''
import numpy as np
import windrow as wr

@wr.operator("plugged_half")
def plugged_half(block):
    """half of each value"""
    return {name: values / 2 for name, values in block.items()}

@wr.aggregate("plugged_largest", result="float64")
class PluggedLargest:
    def empty():
        return (-np.inf,)
    def add(state, x):
        return (max(state[0], x),)
    def result(state):
        return state[0]
'''
ENTRIES = """[windrow.operators]
plugged_half = windrow_plugged:plugged_half
plugged_broken = windrow_broken:nothing
plugged_dumps = json:dumps
[windrow.aggregates]
plugged_largest = windrow_plugged:PluggedLargest
plugged_missing = windrow_broken:nothing
plugged_loads = json:loads
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package that is installed, and brings one operator and one aggregate that work and two that do not."""
    place = tmp_path / "site"
    described = place / "windrow_plugged-1.0.dist-info"
    described.mkdir(parents=True)
    (place / "windrow_plugged.py").write_text(PACKAGE)
    (place / "windrow_broken.py").write_text("raise ImportError('a library is missing')")
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: windrow-plugged\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(place))
    load_plugins.cache_clear()
    yield
    load_plugins.cache_clear()
    REGISTERED.pop("plugged_half", None)


def test_packages_bring_operators_and_aggregates(local: Any, package: None) -> None:
    fill(local)
    assert "plugged_half" in local.query("list operators").column("name").to_pylist()
    assert "plugged_largest" in local.query("list aggregates").column("name").to_pylist()
    half = local.query("select a from plugged_half(A)").compute()["a"].values
    np.testing.assert_array_equal(half, VALUES / 2)
    assert float(local.query("aggr A plugged_largest(a)").compute().to_array().item()) == VALUES.max()
    for text in ("select a from plugged_broken(A)", "aggr A plugged_missing(a)"):
        with pytest.raises(wr.Error, match=r"plug-in cannot be imported.*windrow-plugged.*a library is missing"):
            local.query(text)
    for text, made in (("select a from plugged_dumps(A)", "wr.operator"), ("aggr A plugged_loads(a)", "wr.aggregate")):
        with pytest.raises(wr.Error, match=rf"plug-in cannot be used.*windrow-plugged.*json.*not what {made} makes"):
            local.query(text)


@wr.operator("constantly", result=lambda schema, kind, value: f"<a: {kind}>")
def constantly(block: Any, kind: str, value: float) -> Any:
    return np.full(block["a"].shape, value)


def test_a_result_is_never_cast_into_another_value(local: Any) -> None:
    fill(local)
    for kind, value, told in (
        ("int8", 1000, "1000"), ("int32", float("nan"), "nan"), ("int32", 2.5, "2.5"), ("uint8", -1, "-1"),
        ("float32", 1e300, r"1e\+300"), ("bool", 2, "2"), ("string", 3, "dtype int64"),
    ):  # fmt: skip
        query = local.array("A").operate("constantly", kind, value)
        with pytest.raises(wr.DataError, match=f"operator constantly gave values of a that {kind} does not.*{told}"):
            query.compute()
    for kind, value in (("int8", 3.0), ("float32", 2), ("bool", 1), ("float64", float("nan"))):
        found = local.array("A").operate("constantly", kind, value).compute()["a"].values
        np.testing.assert_array_equal(found, np.full(VALUES.shape, value, kind))


@pytest.mark.parametrize("halo", [1.5, None, "1", (1, 0.5), True])
def test_a_halo_that_is_no_number_of_cells(halo: Any) -> None:
    with pytest.raises(wr.SchemaError, match="the halo of operator h must be an integer"):
        wr.operator("h", halo=halo)


def test_a_halo_that_is_worked_out_to_no_number_of_cells(local: Any) -> None:
    fill(local)
    wr.operator("halved", halo=lambda width: width / 2)(lambda block, width: block)
    with pytest.raises(wr.SchemaError, match=r"the halo of operator halved must be an integer, got 1\.5"):
        local.query("select a from halved(A, 3)")
