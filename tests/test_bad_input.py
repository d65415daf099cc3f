"""What does not fit is refused with what was wrong, what was got and what would be right, and changes nothing."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import windrow as wr
from windrow.errors import (
    DataError,
    DuplicateError,
    Error,
    ExpressionError,
    FileFormatError,
    SchemaError,
    UnknownNameError,
)

ZEROS = np.zeros((6, 6), int)
CELL = {"x": [5], "y": [5], "v": [1], "f": [1.0], "s": ["q"]}
DAY = np.datetime64("2012-01-01", "us")
Act = Callable[[wr.Database], object]
Case = tuple[str, Act, type[Error], str]
BEFORE: dict[str, object] = {}
"""What a warehouse held before the first case."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wr.Database]:
    """One warehouse for all cases: none of them may change it."""
    with wr.connect(tmp_path_factory.mktemp("bad") / "warehouse", engine="local", progress=False) as opened:
        fields = "<a: int32, f: float32, s: string, k: int16 null, t: datetime null, o: bool>"
        opened.create("Dense", f"{fields} [i=1:6:3, j=1:6:3]").write({"a": np.arange(36).reshape(6, 6)})
        opened.create("Line", "<a: int64> [i=1:6:2]").write(np.arange(6))
        opened.create("Grows", "<a: float64> [time=0:*, x=1:4]").append(np.ones((2, 4)))
        opened.create("Named", "<a: float64> [lat=1:3]", labels={"lat": [10.0, 20.0, 30.0]})
        sparse = opened.create("Sparse", "<v: int32, f: float32, s: string null> [x=1:100:10, y=1:100:10]", sparse=True)
        sparse.insert({"x": [1, 2], "y": [1, 2], "v": [1, 2], "f": [1.0, 2.0], "s": ["a", None]})
        grid = {"ra": (0, 360, "1 deg"), "dec": (-90, 90, "1 deg")}
        opened.create("Points", "<m: float32> [ra, dec]", grid=grid).insert({"ra": [1.0], "dec": [2.0], "m": [3.0]})
        BEFORE[opened.path] = everything(opened)
        yield opened


def everything(database: wr.Database) -> dict[str, object]:
    """All that a user or another program could see of a warehouse."""
    seen: dict[str, object] = {}
    for array in database.arrays():
        cells = array.read()
        held = cells.to_pydict() if array.sparse else {name: cells[name].values.tolist() for name in cells.data_vars}
        parts = sorted(file.name for file in Path(array.location().path).glob("*.parquet"))
        seen[array.name] = (array.version, str(array.location()), repr(held), parts)
    return seen


def dense(**attributes: Any) -> Act:
    return lambda database: database.array("Dense").write(attributes)


def line(values: Any, at: Any = None) -> Act:
    return lambda database: database.array("Line").write(values, at=at)


def insert(cells: Any = None, **changed: Any) -> Act:
    return lambda database: database.array("Sparse").insert({**CELL, **changed} if changed else cells)


def point(**changed: Any) -> Act:
    return lambda database: database.array("Points").insert({"ra": [1.0], "dec": [0.0], "m": [1.0], **changed})


def on(array: str, method: str, *arguments: Any, **options: Any) -> Act:
    return lambda database: getattr(database.array(array), method)(*arguments, **options)


def create(schema: Any, name: Any = "New", **options: Any) -> Act:
    return lambda database: database.create(name, schema, **options)


PAIRS = "from Line X similarity join Line Y with shape L1(1)"


def asked(text: str) -> Act:
    return lambda d: d.query(text)


BOXES: list[Case] = [
    (
        "beyond the last cell",
        lambda d: d.array("Dense").write({"a": ZEROS}, at=(2, 1)),
        DataError,
        "got values for 2 to 7",
    ),
    ("before the first cell", lambda d: d.array("Dense").write({"a": ZEROS}, at=(0, 1)), DataError, "runs from 1 to 6"),
    ("too few dimensions", dense(a=np.zeros(6, int)), DataError, "2 dimensions"),
    ("different shapes", dense(a=ZEROS, f=np.zeros((3, 3))), DataError, "different shapes"),
    ("ragged lists", dense(a=[[1, 2], [3]]), DataError, "no array"),
    ("no cells", line(np.zeros(0, int)), DataError, r"shape \(0,\)"),
    ("a number", line(3), DataError, r"shape \(\)"),
    ("nothing", line(None), DataError, r"shape \(\)"),
    ("nothing for several attributes", lambda d: d.array("Dense").write(None), DataError, "mapping"),
    ("an empty mapping", dense(), DataError, "nothing to write"),
    ("a set", line({1, 2}), DataError, r"shape \(\)"),
    ("an unknown attribute", dense(aa=ZEROS), UnknownNameError, "Did you mean 'a'"),
    ("at= too long", line([1], (1, 1)), DataError, "1 integers"),
    ("at= of None", line([1], (None,)), DataError, "1 integers"),
    ("at= of floats", line([1], (1.0,)), DataError, "1 integers"),
    ("at= of truth values", line([1], (True,)), DataError, "1 integers"),
    ("at= of text", line([1], "1"), DataError, "1 integers"),
    ("at= of another name", line([1], {"k": 1}), Error, "k"),
    ("at= huge", line([1], (2**70,)), DataError, "runs from 1 to 6"),
    ("growing too far", on("Grows", "write", np.zeros((1, 4)), at=(2**62, 1)), DataError, "at most 2\\^62 cells"),
    ("growing past numbers", on("Grows", "write", np.zeros((1, 4)), at=(2**70, 1)), DataError, "at most 2\\^62 cells"),
    ("a box for a sparse array", on("Sparse", "write", ZEROS), DataError, "sparse"),
    ("appending to what does not grow", on("Line", "append", [1]), DataError, "growing dimension"),
    ("appending too wide a box", on("Grows", "append", np.zeros((2, 5))), DataError, "1 to 4"),
    (
        "labels for another dimension",
        on("Grows", "append", ZEROS[:2, :4], labels={"tme": [1]}),
        UnknownNameError,
        "'time'",
    ),
    ("too few labels", on("Named", "set_labels", "lat", [1.0]), DataError, "3 cells"),
    ("labels that are none", on("Named", "set_labels", "lat", None), DataError, "sequence"),
    ("labels of a wrong dimension", on("Named", "set_labels", "lta", [1.0, 2.0, 3.0]), UnknownNameError, "'lat'"),
]

VALUES: list[Case] = [
    ("fractions into integers", dense(a=ZEROS + 0.5), DataError, "int32, got dtype float64"),
    ("NaN into integers", dense(a=np.full((6, 6), np.nan)), DataError, "int32"),
    ("text into integers", dense(a=ZEROS.astype(str)), DataError, "int32"),
    ("text into floats", dense(f=ZEROS.astype(str)), DataError, "float32"),
    ("numbers into text", dense(s=ZEROS), DataError, "string"),
    ("truth into integers", dense(a=ZEROS.astype(bool)), DataError, "got dtype bool"),
    ("integers into truth", dense(o=ZEROS), DataError, "of type bool"),
    ("times into integers", dense(a=np.full((6, 6), DAY)), DataError, "datetime64"),
    ("complex numbers", dense(f=ZEROS + 1j), DataError, "complex"),
    ("integers too large", dense(a=ZEROS + 2**40), DataError, str(2**40)),
    ("one integer too large", dense(a=np.where(np.arange(36).reshape(6, 6) == 35, 2**40, 0)), DataError, str(2**40)),
    ("unsigned integers too large", dense(a=np.full((6, 6), 2**64 - 1, np.uint64)), DataError, str(2**64 - 1)),
    ("integers beyond 64 bits", dense(a=[[10**30] * 6] * 6), DataError, "int32"),
    ("floats too large", dense(f=np.full((6, 6), 1e300)), DataError, r"1e\+300"),
    ("times too far away", dense(t=np.full((6, 6), 2**62, "M8[D]")), DataError, "datetime"),
    ("masked values", dense(a=np.ma.masked_equal(ZEROS, 0)), DataError, "cannot be missing"),
    ("None", dense(a=np.full((6, 6), None)), DataError, "'a: int32 null'"),
    ("objects", dense(s=np.full((6, 6), {})), DataError, "not text"),
]

CELLS: list[Case] = [
    ("beyond the last cell", insert(x=[101]), DataError, "got a cell at 101"),
    ("before the first cell", insert(x=[-5]), DataError, "got a cell at -5"),
    ("far outside", insert(x=[2**62]), DataError, "runs from 1 to 100"),
    ("an unsigned coordinate too large", insert(x=np.array([2**64 - 1], np.uint64)), DataError, "int64"),
    ("a coordinate beyond 64 bits", insert(x=[2**70]), DataError, "table"),
    ("a fractional coordinate", insert(x=[1.5]), DataError, "grid="),
    ("a NaN coordinate", insert(x=[float("nan")]), DataError, "must be integers"),
    ("a truth value as coordinate", insert(x=[True]), DataError, "got bool"),
    ("a missing coordinate", insert(x=[None]), DataError, "1 nulls"),
    ("text as coordinate", insert(x=["5"]), DataError, "got string"),
    ("fractions into integers", insert(v=[1.5]), DataError, "int32, got double"),
    ("text into integers", insert(v=["1"]), DataError, "got string"),
    ("truth into integers", insert(v=[True]), DataError, "got bool"),
    ("numbers into text", insert(s=[5]), DataError, "got int64"),
    ("bytes into text", insert(s=[b"\xff"]), DataError, "got binary"),
    ("lists into integers", insert(v=[[1]]), DataError, "list"),
    ("integers too large", insert(v=[2**40]), DataError, str(2**40)),
    ("floats too large", insert(f=[1e300]), DataError, r"1e\+300"),
    ("decimals too large", insert(f=[decimal.Decimal("1e60")]), DataError, "1" + "0" * 60),
    ("a missing value", insert(v=[None]), DataError, "'v: int32 null'"),
    ("no column for a dimension", insert({"x": [1], "v": [1], "f": [1.0], "s": ["a"]}), DataError, "no column y"),
    ("no column for an attribute", insert({"x": [1], "y": [1]}), DataError, "no column v"),
    ("a column too many", insert(vv=[1]), UnknownNameError, "Did you mean 'v'"),
    ("a column twice", insert(pa.Table.from_arrays([pa.array([1])] * 2, ["x", "x"])), DataError, "twice"),
    ("columns of different lengths", insert(x=[1, 2]), DataError, "length"),
    ("a number as column", insert(x=5), DataError, "table"),
    ("nothing", insert(None), DataError, "got NoneType"),
    ("an empty mapping", insert({}), DataError, "no columns"),
    ("an empty table", insert(pa.table({})), DataError, "no columns"),
    ("an empty list", insert([]), DataError, "no columns"),
    ("an empty frame", insert(pd.DataFrame()), DataError, "no columns"),
    ("a list of numbers", insert([1, 2]), DataError, "table"),
    ("a number", insert(5), DataError, "got int"),
    ("a file that is not there", insert("nowhere.parquet"), FileFormatError, "no such file"),
    ("an unknown policy", on("Sparse", "insert", CELL, on_duplicate="first"), DataError, "error, last, keep"),
    ("a dense cell outside", on("Line", "insert", {"i": [9], "a": [1]}), DataError, "a cell at 9"),
    ("a dense cell twice", on("Line", "insert", {"i": [1, 1], "a": [1, 2]}), DuplicateError, "1 too many"),
    ("a missing dense value", on("Line", "insert", {"i": [1], "a": [None]}), DataError, "cannot be missing"),
    ("a point at NaN", point(ra=[float("nan")]), DataError, "1 of 1 points"),
    ("a point at infinity", point(ra=[float("inf")]), DataError, "1 of 1 points"),
    ("a point outside", point(ra=[400.0]), DataError, "0 to 360"),
    ("a point nowhere", point(ra=[None]), DataError, "1 of 1 points"),
    ("a point at a text", point(ra=["x"]), DataError, "quantity"),
]

CHANGES: list[Case] = [
    ("deleting dense cells", on("Line", "delete", "i = 1"), DataError, "update"),
    ("half a condition", on("Sparse", "delete", "v >"), ExpressionError, "ends"),
    ("a condition on nothing known", on("Sparse", "delete", "vv > 1"), UnknownNameError, "'v'"),
    ("a number as condition", on("Sparse", "delete", 5), ExpressionError, "text"),
    ("an expression that is no condition", on("Sparse", "delete", "v + 1"), ExpressionError, "true or false"),
    ("setting nothing", on("Sparse", "update", {}), DataError, "nothing to set"),
    ("setting None", on("Sparse", "update", None), DataError, "mapping"),
    ("setting a coordinate", on("Sparse", "update", {"x": "1"}), DataError, "coordinates"),
    ("setting an unknown attribute", on("Sparse", "update", {"vv": "1"}), UnknownNameError, "'v'"),
    ("setting text in a number", on("Sparse", "update", {"v": "'a'"}), DataError, "type int32"),
    ("setting numbers too large", on("Sparse", "update", {"v": "v + 3000000000"}), DataError, "int32"),
    ("overflow", on("Line", "update", {"a": "a + 9223372036854775807"}), ExpressionError, "overflow"),
    ("division by zero", on("Line", "update", {"a": "a // 0"}), ExpressionError, "zero"),
    ("setting fractions", on("Line", "update", {"a": 1.5}), DataError, "round"),
    ("setting missing", on("Sparse", "update", {"v": "null"}), DataError, "cannot be missing"),
    ("setting floats too large", on("Sparse", "update", {"f": "f * 1e300"}), DataError, "float32"),
    ("setting an object", on("Sparse", "update", {"v": object()}), ExpressionError, "object"),
    ("chunks of an unknown dimension", on("Line", "compact", {"ii": 2}), UnknownNameError, "'i'"),
    ("chunks of no cells", on("Line", "compact", {"i": 0}), SchemaError, "at least one"),
    ("chunks of text", on("Line", "compact", {"i": "a"}), SchemaError, "integer"),
    ("chunks as a number", on("Line", "compact", 5), DataError, "mapping"),
    ("writing to an old version", lambda d: d.array("Line@0").write([1] * 6), DataError, "Line@0"),
    ("compacting an old version", lambda d: d.array("Line@0").compact(), DataError, "Line@0"),
    ("dropping an old version", lambda d: d.array("Line@0").drop(), DataError, "Line@0"),
    ("an empty batch id", on("Line", "write", [1] * 6, batch=""), DataError, "batch id"),
    ("a long batch id", on("Line", "write", [1] * 6, batch="x" * 256), DataError, "batch id"),
    ("a batch that is not open", lambda d: d.batch().write("Line", [1] * 6), DataError, "not open"),
    ("keeping no version", lambda d: d.collect_garbage(keep_versions=0), DataError, "at least 1"),
    ("keeping a text of versions", lambda d: d.collect_garbage(keep_versions="x"), DataError, "at least 1"),
    ("a text as a time", lambda d: d.collect_garbage(older_than="2012"), DataError, "datetime"),
]

NAMES: list[Case] = [
    ("an unknown array", lambda d: d.array("Lime"), UnknownNameError, "Did you mean 'Line'"),
    ("None as an array", lambda d: d.array(None), UnknownNameError, "None"),
    ("a number as an array", lambda d: d.array(5), UnknownNameError, "5"),
    ("dropping an unknown array", lambda d: d.drop("Spars"), UnknownNameError, "Did you mean 'Sparse'"),
    ("dropping None", lambda d: d.drop(None), UnknownNameError, "None"),
    ("an unknown version", lambda d: d.array("Line@99"), UnknownNameError, "Line has versions 0 to 1"),
    ("a negative version", on("Line", "at", version=-1), UnknownNameError, "versions 0 to 1"),
    ("a huge version", on("Line", "at", version=2**70), UnknownNameError, "versions 0 to 1"),
    ("a text as version", on("Line", "at", version="x"), DataError, "number"),
    ("no version", on("Line", "at"), DataError, "version number or a time"),
    ("a text as time", on("Line", "at", time="2012"), DataError, "datetime"),
    ("a time before all", on("Line", "at", time=datetime(1999, 1, 1)), UnknownNameError, "versions 0 to 1"),
    ("an unknown dimension", on("Sparse", "read", xx=1), UnknownNameError, "'x'"),
    ("an unknown attribute", on("Line", "read", ["b"]), UnknownNameError, "Known: a"),
    ("None as attribute", on("Line", "read", [None]), UnknownNameError, "None"),
    ("a number as attributes", on("Line", "read", 5), DataError, "list of names"),
    ("a cell outside", on("Line", "read", i=7), DataError, "from 1 to 6"),
    ("a range turned round", on("Line", "read", i=(3, 1)), DataError, "ends before"),
    ("a selection of None", on("Line", "read", i=None), DataError, "None"),
    ("a label where there are none", on("Line", "read", i=1.5), DataError, "no labels"),
    ("an unknown label", on("Named", "read", lat=24.0), UnknownNameError, r"nearest is 20\.0"),
    ("a label of another kind", on("Named", "read", lat="abc"), DataError, "numbers"),
    ("importing what is not there", lambda d: d.import_file("nowhere.nc", "New"), FileFormatError, "no such file"),
    ("exporting what is not there", lambda d: d.export_file("Lin", "x.nc"), UnknownNameError, "'Line'"),
]

SCHEMAS: list[Case] = [
    ("empty", create(""), SchemaError, "expected"),
    ("None", create(None), SchemaError, "got NoneType"),
    ("a number", create(5), SchemaError, "got int"),
    ("words", create("hello"), SchemaError, "expected"),
    ("no dimensions", create("<a: int32>"), SchemaError, "dimensions"),
    ("no attributes", create("[i=1:3]"), SchemaError, "at least one attribute"),
    ("an unknown type", create("<a: int33> [i=1:3]"), SchemaError, "Did you mean 'int32'"),
    ("an open bracket", create("<a: int32 [i=1:3]"), SchemaError, "expected ',' or '>'"),
    ("a dimension turned round", create("<a: int32> [i=3:1]"), SchemaError, "ends before"),
    ("a dimension twice", create("<a: int32> [i=1:3, i=1:3]"), SchemaError, "twice"),
    ("one name for both", create("<i: int32> [i=1:3]"), SchemaError, "twice"),
    ("chunks of nothing", create("<a: int32> [i=1:3:0]"), SchemaError, "at least one"),
    ("a dimension too long", create("<a: int32> [i=1:99999999999999999999]"), SchemaError, r"2\^62"),
    ("too many chunks", create("<a: int64> [i=0:4000000000000:1, j=0:4000000000000:1]"), SchemaError, "chunks"),
    ("too many dense cells", create("<a: int8> [i=0:4000000000000, j=0:4000000000000]"), DataError, "2\\^62"),
    ("a name that is taken", create("<a: int32> [i=1:3]", "Line"), SchemaError, "exists"),
    ("no name", create("<a: int32> [i=1:3]", ""), SchemaError, "valid name"),
    ("None as name", create("<a: int32> [i=1:3]", None), SchemaError, "valid name"),
    ("a path as name", create("<a: int32> [i=1:3]", "../a"), SchemaError, "valid name"),
    ("a version as name", create("<a: int32> [i=1:3]", "A@1"), SchemaError, "valid name"),
    ("a name too long", create("<a: int32> [i=1:3]", "x" * 300), SchemaError, "200"),
    ("labels of an unknown dimension", create("<a: int32> [i=1:3]", labels={"k": [1.0]}), UnknownNameError, "Known: i"),
    ("too few labels", create("<a: int32> [i=1:3]", labels={"i": [1.0]}), SchemaError, "3 cells"),
    ("chunks of an unknown dimension", create("<a: int32> [i=1:3]", chunks={"k": 1}), UnknownNameError, "Known: i"),
    ("chunks of text", create("<a: int32> [i=1:3]", chunks={"i": "x"}), SchemaError, "integer"),
    ("a grid that is none", create("<a: int32> [i]", grid={"i": 5}), SchemaError, "low, high and step"),
    ("metadata that is none", create("<a: int32> [i=1:3]", metadata={"a": 5}), SchemaError, "metadata"),
]


QUESTIONS: list[Case] = [
    ("groups by nothing", on("Line", "groupby"), DataError, "nothing to group by"),
    ("groups by a number", on("Line", "groupby", 5), DataError, "is a text"),
    ("groups by no part", on("Line", "groupby", "i.moth"), ExpressionError, "Did you mean 'month'"),
    ("parts without labels", asked("select avg(a) from Line group by month(i)"), SchemaError, "no labels"),
    ("parts of numbers", asked("select avg(a) from Named group by year(lat)"), SchemaError, "float64"),
    ("parts of an attribute", asked("select count(*) from Dense group by month(t)"), SchemaError, "'t'"),
    ("an anomaly by nothing", on("Line", "anomaly", "a", by=()), DataError, "nothing to group by"),
    ("an anomaly of a text", on("Dense", "anomaly", "s", by="i"), Error, "string"),
    ("over no dimension", asked("select a - avg(a) over (k) as d from Line"), UnknownNameError, "Known: a, i"),
    ("over cells that are pairs", asked(f"select avg(X.a) over () as d {PAIRS}"), ExpressionError, "parentheses"),
    ("an order kept", asked("select a from Line order by a into New"), SchemaError, "no order of rows"),
    ("a limit kept", asked("create array New as select a from Line limit 2"), SchemaError, "no order of rows"),
    ("an order by nothing there", asked("select a from Line order by b"), UnknownNameError, "Known: a, i"),
    ("a limit below 0", asked("select a from Line limit -2"), Error, "must not be negative"),
    ("a limit of a float", lambda d: d.query("select a from Line").limit(1.5), Error, "1.5"),
    ("an order by a number", lambda d: d.query("select a from Line").order_by("2"), ExpressionError, "Name the column"),
]


def named(cases: list[Case]) -> Any:
    return pytest.mark.parametrize(
        ("act", "kind", "match"), [case[1:] for case in cases], ids=[case[0] for case in cases]
    )


def check_refused(database: wr.Database, act: Act, kind: type[Error], match: str) -> None:
    with pytest.raises(kind, match=match) as caught:
        act(database)
    error = caught.value
    assert error.what
    assert str(error) != error.what, "neither what was got nor what would be right is said"
    assert everything(database) == BEFORE[database.path]


@named(BOXES)
def test_boxes_that_do_not_fit(database: wr.Database, act: Act, kind: type[Error], match: str) -> None:
    check_refused(database, act, kind, match)


@named(VALUES)
def test_values_that_do_not_fit(database: wr.Database, act: Act, kind: type[Error], match: str) -> None:
    check_refused(database, act, kind, match)


@named(CELLS)
def test_cells_that_do_not_fit(database: wr.Database, act: Act, kind: type[Error], match: str) -> None:
    check_refused(database, act, kind, match)


@named(CHANGES)
def test_changes_that_cannot_be(database: wr.Database, act: Act, kind: type[Error], match: str) -> None:
    check_refused(database, act, kind, match)


@named(NAMES)
def test_names_that_are_not_there(database: wr.Database, act: Act, kind: type[Error], match: str) -> None:
    check_refused(database, act, kind, match)


@named(QUESTIONS)
def test_questions_that_cannot_be(database: wr.Database, act: Act, kind: type[Error], match: str) -> None:
    check_refused(database, act, kind, match)


@named(SCHEMAS)
def test_schemas_that_cannot_be(database: wr.Database, act: Act, kind: type[Error], match: str) -> None:
    check_refused(database, act, kind, match)


@pytest.mark.parametrize("values", [VALUES[0], VALUES[10], CELLS[10], CELLS[16]], ids=lambda case: case[0])
def test_what_does_not_fit_says_what_would(database: wr.Database, values: Case) -> None:
    with pytest.raises(Error) as caught:
        values[1](database)
    assert (caught.value.got, caught.value.hint) != (None, None)
    assert str(caught.value) == f"{caught.value.what}, got {caught.value.got}. {caught.value.hint}"


def test_duplicates_within_one_insert_are_counted(database: wr.Database) -> None:
    cells = {"x": [5, 5, 5, 5, 6], "y": [7, 7, 7, 7, 6], "v": [1] * 5, "f": [1.0] * 5, "s": ["q"] * 5}
    check_refused(database, insert(cells), DuplicateError, "3 too many, the first at x=5, y=7")


def test_an_error_in_a_batch_undoes_the_changes_before_it(database: wr.Database) -> None:
    def change(database: wr.Database) -> None:
        with database.batch("night") as batch:
            batch.write("Line", np.ones(6, int))
            batch.insert("Sparse", CELL)
            batch.update("Dense", {"a": "a + 1"})
            batch.insert("Sparse", {**CELL, "x": [101]})

    with pytest.raises(DataError, match="a cell at 101"):
        change(database)
    database.collect_garbage()  # the parts written before the error are nobody's
    assert everything(database) == BEFORE[database.path]
    assert database.catalog.batch_report("night") is None


@pytest.mark.parametrize("cells", [pa.table(CELL).slice(0, 0), pd.DataFrame(CELL).iloc[:0]], ids=["Arrow", "pandas"])
def test_no_rows_are_no_cells(local: wr.Database, cells: Any) -> None:
    array = local.create("Sparse", "<v: int32, f: float32, s: string null> [x=1:9, y=1:9]", sparse=True)
    array.insert(CELL)
    assert array.insert(cells).cells == 0
    assert array.read().to_pydict() == CELL
