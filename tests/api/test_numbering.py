"""The first insert that keeps duplicates gives an array the dimension that numbers them."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable, QueryBuilder

import windrow as wr
from windrow.errors import SchemaError, StoreError
from windrow.storage.catalog import Catalog

TWICE = {"x": [1, 1, 2], "v": [10, 20, 30]}


@pytest.fixture
def array(local: wr.Database) -> wr.Array:
    return local.create("A", "<v: int64> [x=1:9:3]", sparse=True)


def outside(array: wr.Array) -> list[tuple[int, ...]]:
    """What somebody without windrow finds."""
    place = array.location()
    table = DeltaTable(place.path, version=int(place.version))
    found = QueryBuilder().register("t", table).execute("select x, n, v from t order by x, n").read_all()
    return list(zip(*(found.column(name).to_pylist() for name in ("x", "n", "v")), strict=True))


def cells(array: wr.Array) -> list[tuple[int, ...]]:
    found = array.read().to_pydict()
    return list(zip(found["x"], found["n"], found["v"], strict=True))


def test_an_empty_array_gets_the_dimension(array: wr.Array) -> None:
    report = array.insert(TWICE, on_duplicate="keep")
    assert (report.cells, report.duplicates) == (3, 1)
    assert array.schema.dimension_names == ("x", "n")
    assert array.schema.numbering_name == "n"
    assert "numbering" in str(array.schema)
    assert [(x, n) for x, n, _ in cells(array)] == [(1, 0), (1, 1), (2, 0)]
    assert sorted(v for _, _, v in cells(array)) == [10, 20, 30]
    assert outside(array) == cells(array)


def test_cells_that_are_there_get_the_number_0(array: wr.Array) -> None:
    array.insert({"x": [1, 5], "v": [1, 5]})
    array.insert({"x": [5], "v": [6]})
    array.delete("x = 1")
    array.insert({"x": [5, 7], "v": [50, 70]}, on_duplicate="keep")
    assert cells(array) == [(5, 0, 6), (5, 1, 50), (7, 0, 70)]
    assert outside(array) == cells(array)
    array.insert({"x": [5], "v": [51]}, on_duplicate="keep")
    assert cells(array) == [(5, 0, 6), (5, 1, 50), (5, 2, 51), (7, 0, 70)]
    assert outside(array) == cells(array)


def test_versions_before_are_as_they_were(array: wr.Array) -> None:
    array.insert({"x": [1, 5], "v": [1, 5]})
    array.insert(TWICE, on_duplicate="keep")
    assert array.at(version=1).read().to_pydict() == {"x": [1, 5], "v": [1, 5]}
    assert array.at(version=1).schema.dimension_names == ("x",)
    with pytest.raises(SchemaError, match="differ in dimensions"):
        array.changes(1, 2)


def test_it_can_be_compacted_updated_and_collected(array: wr.Array, local: wr.Database) -> None:
    array.insert({"x": [1, 5], "v": [1, 5]})
    array.insert(TWICE, on_duplicate="keep")
    array.update({"v": "v + 1"}, where="x = 1")
    array.compact()
    local.collect_garbage(keep_versions=1)
    assert sorted(cells(array)) == sorted(outside(array))
    assert sorted(v for x, _, v in cells(array) if x == 1) == [2, 11, 21]


def test_two_detections_in_one_cell_are_neighbours(array: wr.Array) -> None:
    array.insert(TWICE, on_duplicate="keep")
    found = array.neighbours(wr.Linf(1)).agg(c=wr.count()).compute().to_pydict()
    assert found["c"] == [3, 3, 3]


def test_other_inserts_of_the_same_batch_are_in_it(array: wr.Array, local: wr.Database) -> None:
    with local.batch() as batch:
        batch.insert("A", {"x": [4], "v": [4]})
        batch.insert("A", TWICE, on_duplicate="keep")
        batch.insert("A", {"x": [4], "v": [5]}, on_duplicate="keep")
    assert [(x, n) for x, n, _ in cells(array)] == [(1, 0), (1, 1), (2, 0), (4, 0), (4, 1)]
    assert outside(array) == cells(array)


def test_views_keep_the_array_as_it_is(array: wr.Array, local: wr.Database) -> None:
    array.insert({"x": [1, 5], "v": [1, 5]})
    local.create_view("V", array.neighbours(wr.Linf(1)).agg(c=wr.count()))
    with pytest.raises(SchemaError, match="views read it") as caught:
        array.insert(TWICE, on_duplicate="keep")
    assert caught.value.got == "V"
    assert array.schema.dimension_names == ("x",)
    assert array.version == 1


def test_an_attribute_of_that_name_is_in_the_way(local: wr.Database) -> None:
    array = local.create("B", "<n: int64> [x=1:9]", sparse=True)
    with pytest.raises(SchemaError, match="name of an attribute"):
        array.insert({"x": [1, 1], "n": [1, 2]}, on_duplicate="keep")
    assert array.read().num_rows == 0


def test_a_batch_that_is_not_published_leaves_no_dimension(array: wr.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    array.insert({"x": [1, 5], "v": [1, 5]})
    with monkeypatch.context() as patched:

        def fail(*_: object, **__: object) -> None:
            raise StoreError("the catalog is gone")

        patched.setattr(Catalog, "publish", fail)
        with pytest.raises(StoreError):
            array.insert(TWICE, on_duplicate="keep")
    assert array.read().to_pydict() == {"x": [1, 5], "v": [1, 5]}
    array.insert({"x": [2], "v": [2]})
    assert array.schema.dimension_names == ("x",)
    place = array.location()
    table = DeltaTable(place.path, version=int(place.version))
    assert [field.name for field in table.schema().fields] == ["_chunk", "x", "v"]
    assert array.read().to_pydict() == {"x": [1, 2, 5], "v": [1, 2, 5]}
    array.insert(TWICE, on_duplicate="keep")
    assert outside(array) == cells(array)
