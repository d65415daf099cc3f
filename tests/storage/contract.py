"""What arrays of every kind promise. A subclass per kind says how cells get into one."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.errors import DataError, ExpressionError, SchemaError, UnknownNameError

from .contents import (
    EVERY_TYPE,
    Cells,
    abandoned,
    cells_of_dataset,
    cells_of_rows,
    check_chunks,
    contents,
    expected,
    inside,
)

DIMENSIONS = {
    "one": "i=-7:15:4",
    "one, chunk larger than the array": "i=0:4:100",
    "two, chunks that do not divide": "i=-2:8:4, j=1:7:3",
    "two, one chunk": "i=1:3:3, j=1:4:4",
    "three": "i=0:4:2, j=-3:1:5, x=5:8:3",
    "four": "i=0:2:2, j=0:2:1, x=-1:1:3, y=0:3:3",
}

FEW = "a: float64, k: int32 null"
SOME = "a: float32, u: uint64 null, s: string null, t: datetime"


class StorageContract(ABC):
    """Written over all engines where the work differs with the engine, in process where it does not."""

    sparse: bool
    verb: str

    @abstractmethod
    def payload(self, schema: wr.Schema, box: wr.Box, seed: int) -> tuple[dict[str, Any], Cells]:
        """Arguments of ``verb`` that put random values into a box, and the cells they stand for."""

    @abstractmethod
    def whole(self, array: wr.Array, cells: Cells) -> Cells:
        """What an array holds when just these cells were put into it."""

    def create(self, database: wr.Database, name: str, dimensions: str, attributes: str = FEW) -> wr.Array:
        return database.create(name, f"<{attributes}> [{dimensions}]", sparse=self.sparse)

    def put(self, array: wr.Array, box: wr.Box | None = None, seed: int = 0) -> Cells:
        payload, cells = self.payload(array.schema, box or array.box, seed)
        getattr(array, self.verb)(**payload)
        return expected(cells)

    def put_in(self, batch: wr.Batch, array: wr.Array, box: wr.Box | None = None, seed: int = 0) -> Cells:
        payload, cells = self.payload(array.schema, box or array.box, seed)
        getattr(batch, self.verb)(array.name, **payload)
        return expected(cells)

    # Values and places

    def test_every_type_comes_back_exactly(self, database: wr.Database, connect: Callable[..., wr.Database]) -> None:
        array = self.create(database, "A", "i=-3:8:5, j=0:6:4", EVERY_TYPE)
        cells = self.put(array)
        assert contents(array) == self.whole(array, cells)
        some = ["uint64_null", "string_", "float32_"]
        assert contents(array, some) == {
            at: {name: row[name] for name in some} for at, row in self.whole(array, cells).items()
        }
        assert contents(connect().array("A")) == self.whole(array, cells)

    @pytest.mark.parametrize("dimensions", DIMENSIONS.values(), ids=DIMENSIONS.keys())
    def test_any_box_is_written_and_read(self, local: wr.Database, dimensions: str) -> None:
        array = self.create(local, "A", dimensions)
        held = self.put(array, seed=1)
        for seed in range(4):
            box = random_box(array.box, seed)
            held |= self.put(array, box, seed)
            assert contents(array) == self.whole(array, held)
            chosen = random_box(array.box, seed + 100)
            ends = zip(chosen.lo, chosen.hi, strict=True)
            found = contents(array, **dict(zip(array.schema.dimension_names, ends, strict=True)))
            assert found == {at: row for at, row in self.whole(array, held).items() if inside(chosen, at)}
        check_chunks(array)

    def test_contents_do_not_depend_on_chunks(self, patient_database: wr.Database) -> None:
        results = []
        for number, (first, second) in enumerate([(1, 1), (4, 9), (13, 2), (50, 50)]):
            array = self.create(patient_database, f"A{number}", f"i=0:12:{first}, j=-4:4:{second}")
            self.put(array, seed=3)
            self.put(array, wr.Box((2, -3), (7, 1)), seed=4)
            array.update({"a": "a * 2 + i"}, "j > -2 and k > 0")
            results.append(contents(array))
        assert all(result == results[0] for result in results)

    def test_growing_dimensions_grow_where_cells_are_put(self, database: wr.Database) -> None:
        array = self.create(database, "A", "time=-2:*:4, x=0:4:3")
        assert array.box.is_empty
        assert contents(array) == {}
        held = self.put(array, wr.Box((-2, 0), (0, 4)), seed=1)
        for lo, hi in [(1, 1), (2, 11), (15, 20)]:  # to the next cell, over several chunks, after a gap
            held |= self.put(array, wr.Box((lo, 0), (hi, 4)), seed=lo)
            held |= self.put(array, wr.Box((hi, 1), (hi, 1)), seed=lo + 50)
            assert array.box == wr.Box((-2, 0), (hi, 4)) or self.sparse
            assert contents(array) == self.whole(array, held)
            check_chunks(array)

    def test_several_dimensions_grow(self, local: wr.Database) -> None:
        array = self.create(local, "A", "x=0:*:3, y=5:*:4, z=1:2:2")
        held: Cells = {}
        for seed, (lo, hi) in enumerate([((0, 5, 1), (1, 6, 2)), ((0, 9, 1), (0, 11, 1)), ((7, 5, 2), (8, 5, 2))]):
            held |= self.put(array, wr.Box(lo, hi), seed)
            assert contents(array) == self.whole(array, held)
            check_chunks(array)
        assert array.box.lo == (0, 5, 1)
        assert array.box.hi[2] == 2

    # Labels

    def test_labels_select_cells(self, local: wr.Database) -> None:
        days = np.arange("2012-01-01", "2012-01-11", dtype="M8[D]")
        array = local.create(
            "A",
            f"<{FEW}> [day=1:10:4, lat=0:4:2, site=1:3:3]",
            sparse=self.sparse,
            labels={"day": days, "lat": [60.0, 45.5, 30.0, 15.0, -7.25], "site": ["Köln", "Rom", ""]},
        )
        held = self.whole(array, self.put(array))

        def found(selection: dict[str, Any], lo: tuple[int, ...], hi: tuple[int, ...]) -> bool:
            result = array.read(**selection)
            wanted = {at: row for at, row in held.items() if inside(wr.Box(lo, hi), at)}
            if self.sparse:
                return cells_of_rows(result.to_pylist(), ("day", "lat", "site"), ("a", "k")) == wanted
            return cells_of_dataset(result, wr.Box(lo, hi), ("a", "k")) == wanted

        assert found({"day": ("2012-01-03", "2012-01-05")}, (3, 0, 1), (5, 4, 3))
        assert found({"day": "2012-01"}, (1, 0, 1), (10, 4, 3))
        assert found({"lat": (50.0, 10.0)}, (1, 1, 1), (10, 3, 3))
        assert found({"lat": 45.5, "site": "Rom", "day": 2}, (2, 1, 2), (2, 1, 2))
        assert found({"site": ""}, (1, 0, 3), (10, 4, 3))
        with pytest.raises(UnknownNameError, match="Paris"):
            array.read(site="Paris")

    def test_labels_belong_to_versions(self, local: wr.Database, connect: Callable[..., wr.Database]) -> None:
        array = local.create("A", f"<{FEW}> [i=1:3]", sparse=self.sparse, labels={"i": [1.5, 2.5, 3.5]})
        self.put(array)
        array.set_labels("i", ["a", "b", "c"])
        again = connect().array("A")
        assert again.labels["i"].values.tolist() == ["a", "b", "c"]
        assert again.at(version=1).labels["i"].values.tolist() == [1.5, 2.5, 3.5]
        assert contents(again) == contents(again.at(version=1))

    # Versions

    def test_every_version_stays_as_it_was(
        self, patient_database: wr.Database, connect: Callable[..., wr.Database]
    ) -> None:
        array = self.create(patient_database, "A", "i=0:9:4, j=0:*:3")
        history = {0: contents(array)}
        held: Cells = {}
        moments = {}
        for seed in range(1, 4):
            held |= self.put(array, wr.Box((0, seed - 1), (6, seed + 2)), seed)
            history[array.version] = self.whole(array, held)
            moments[array.version] = array.versions()[-1].created
            time.sleep(0.002)
        array.update({"k": "i"}, "i < 2")
        history[array.version] = contents(array)
        array.compact({"i": 3, "j": 2})
        history[array.version] = contents(array)
        assert array.version == 5
        assert [version.operation for version in array.versions()] == ["create", *[self.verb] * 3, "update", "compact"]
        other = connect()
        for number, cells in history.items():
            assert contents(array.at(version=number)) == cells
            assert contents(other.array(f"A@{number}")) == cells
            assert other.array(f"A@{number}").version == number
        for number, moment in moments.items():
            assert array.at(time=moment).version == number
        with pytest.raises(UnknownNameError, match="versions 0 to 5"):
            array.at(version=6)
        with pytest.raises(UnknownNameError):
            array.at(time=array.versions()[0].created.replace(year=2001))

    def test_an_old_version_cannot_be_changed(self, local: wr.Database) -> None:
        array = self.create(local, "A", "i=0:9:4")
        self.put(array)
        old = array.at(version=0)
        payload, _ = self.payload(array.schema, array.box, 1)
        for change in (
            lambda: getattr(old, self.verb)(**payload),
            lambda: old.update({"a": "1"}),
            old.compact,
            old.drop,
        ):
            with pytest.raises(DataError, match="old version"):
                change()
        assert array.version == 1

    # Batches

    def test_a_batch_is_one_version_of_each_array(self, database: wr.Database) -> None:
        first, second = self.create(database, "A", "i=0:9:4"), self.create(database, "B", "x=1:5:2, y=1:*:2")
        with database.batch("night 42") as batch:
            held = self.put_in(batch, first, wr.Box((0,), (5,)), 1)
            other = self.put_in(batch, second, wr.Box((1, 1), (5, 3)), 2)
            held |= self.put_in(batch, first, wr.Box((3,), (9,)), 3)
            batch.update("A", {"k": "7"}, "i = 4")
            assert (first.version, second.version) == (0, 0)
        for at in held:
            held[at] = held[at] | ({"k": 7} if at == (4,) else {})
        assert batch.report is not None
        assert batch.report.versions == {"A": 1, "B": 1}
        assert contents(first) == self.whole(first, held)
        assert contents(second) == self.whole(second, other)
        check_chunks(first)
        check_chunks(second)

    def test_a_batch_id_is_applied_once(self, local: wr.Database, connect: Callable[..., wr.Database]) -> None:
        array = self.create(local, "A", "i=0:9:4")
        payload, cells = self.payload(array.schema, array.box, 1)
        report = getattr(array, self.verb)(**payload, batch="night 42")
        assert report.applied
        later = connect().array("A")
        report = getattr(later, self.verb)(**self.payload(array.schema, array.box, 2)[0], batch="night 42")
        assert not report.applied
        assert report.version == array.version == 1
        assert contents(array) == self.whole(array, expected(cells))
        assert array.versions()[-1].batch == "night 42"

    def test_an_insert_of_no_rows_makes_no_version(self, database: wr.Database) -> None:
        array = self.create(database, "A", "i=0:9:4, j=0:9:4", "k: int64 null")
        cells = self.put(array)
        other = self.create(database, "B", "i=0:9:4, j=0:9:4", "k: int64 null")
        nothing: dict[str, Any] = {"i": np.empty(0, int), "j": np.empty(0, int), "k": np.empty(0, int)}
        report = array.insert(nothing)
        assert (report.applied, report.cells, report.version, report.unchanged) == (True, 0, 1, ("A",))
        assert "A@1 as before" in str(report)
        assert array.insert(nothing, batch="empty night").version == 1
        with database.batch("half empty") as batch:
            batch.insert("A", nothing)
            self.put_in(batch, other)
        assert batch.report is not None
        assert (dict(batch.report.versions), batch.report.unchanged) == ({"A": 1, "B": 1}, ("A",))
        again = array.insert({"i": [1], "j": [1], "k": [1]}, batch="empty night")
        assert (again.applied, again.version) == (False, 1)
        assert [version.number for version in array.versions()] == [0, 1]
        assert contents(array) == self.whole(array, cells)

    def test_a_batch_that_fails_changes_nothing(self, patient_database: wr.Database) -> None:
        first, second = self.create(patient_database, "A", "i=0:9:4"), self.create(patient_database, "B", "x=1:*:2")
        held = self.put(first)
        with abandoned(patient_database, "b") as batch:
            self.put_in(batch, first, wr.Box((2,), (4,)), 5)
            self.put_in(batch, second, wr.Box((1,), (9,)), 6)
        assert (first.version, second.version) == (1, 0)
        assert second.box.is_empty
        assert contents(first) == self.whole(first, held)
        with patient_database.batch("b") as batch:  # the id is still unused
            held |= self.put_in(batch, first, wr.Box((2,), (4,)), 7)
            other = self.put_in(batch, second, wr.Box((1,), (3,)), 8)
        assert contents(first) == self.whole(first, held)
        assert contents(second) == self.whole(second, other)
        check_chunks(second)

    # Conditions

    def test_updates_use_three_valued_logic(self, patient_database: wr.Database) -> None:
        array = self.create(patient_database, "A", "i=0:8:4, j=0:8:4", "k: int16 null, m: int16 null, hit: int8")
        self.put(array, seed=9)
        array.update({"hit": 0})
        for number, (text, condition) in enumerate(CONDITIONS.items()):
            before = contents(array)
            report = array.update({"hit": number + 1}, text)
            chosen = {at for at, row in before.items() if condition(*at, row["k"], row["m"]) is True}
            assert report.cells == len(chosen), text
            assert contents(array) == {
                at: row | ({"hit": number + 1} if at in chosen else {}) for at, row in before.items()
            }

    def test_an_update_reads_the_cells_before_it(self, local: wr.Database) -> None:
        array = self.create(local, "A", "i=0:5:2", "p: int32, q: int32 null, s: string")
        array_before = self.whole(array, self.put(array))
        array.update({"p": "i", "q": "i + 1"})
        array.update({"p": "q", "q": "p", "s": "'wheat'"}, "i % 2 = 0")
        for (i,), row in contents(array).items():
            assert row["p"] == (i + 1 if i % 2 == 0 else i)
            assert row["q"] == (i if i % 2 == 0 else i + 1)
            assert row["s"] == ("wheat" if i % 2 == 0 else array_before[(i,)]["s"])

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            ({"p": "null"}, DataError),
            ({"p": "40000"}, DataError),
            ({"p": "'x'"}, DataError),
            ({"p": "0.5"}, DataError),
            ({"i": "1"}, DataError),
            ({"z": "1"}, UnknownNameError),
            ({"p": "z + 1"}, UnknownNameError),
            ({"p": "1 +"}, ExpressionError),
            ({}, DataError),
        ],
    )
    def test_a_refused_update_changes_nothing(
        self, local: wr.Database, change: dict[str, str], error: type[wr.Error]
    ) -> None:
        array = self.create(local, "A", "i=0:5:2", "p: int16, q: int32 null")
        held = self.put(array)
        with pytest.raises(error):
            array.update(change)
        assert array.version == 1
        assert contents(array) == self.whole(array, held)

    # Housekeeping

    def test_compaction_keeps_the_cells(self, database: wr.Database) -> None:
        array = self.create(database, "A", "time=0:*:2, x=0:9:4", SOME)
        held: Cells = {}
        for step in range(3):
            held |= self.put(array, wr.Box((3 * step, 0), (3 * step + 2, 9)), step)
        array.compact()
        assert array.version == 4
        assert contents(array) == self.whole(array, held)
        check_chunks(array)
        array.compact({"time": 5, "x": 3})
        assert [d.chunk for d in array.schema.dimensions] == [5, 3]
        assert [d.chunk for d in array.at(version=1).schema.dimensions] == [2, 4]
        assert contents(array) == self.whole(array, held)
        check_chunks(array)
        held |= self.put(array, wr.Box((4, 2), (11, 6)), 9)
        assert contents(array) == self.whole(array, held)
        check_chunks(array)

    def test_an_empty_array_is_compacted(self, local: wr.Database) -> None:
        array = self.create(local, "A", "time=0:*:2")
        array.compact()
        held = self.put(array, wr.Box((0,), (3,)))
        assert contents(array) == held if not self.sparse else contents(array).keys() <= {(i,) for i in range(4)}

    def test_garbage_collection_keeps_what_is_offered(
        self, local: wr.Database, connect: Callable[..., wr.Database], tmp_path: Path
    ) -> None:
        array = self.create(local, "A", "i=0:99:50", SOME)
        history = {0: contents(array)}
        for seed in range(1, 5):
            self.put(array, seed=seed)
            history[array.version] = contents(array)
        with abandoned(local) as batch:
            self.put_in(batch, array, seed=9)
        freed = local.collect_garbage()
        assert freed.bytes > 0
        assert freed.versions == 0
        for number, cells in history.items():
            assert contents(connect().array(f"A@{number}")) == cells
        size = directory_bytes(tmp_path / "warehouse" / "arrays")
        collected = local.collect_garbage(keep_versions=2)
        assert collected.versions == 3
        assert directory_bytes(tmp_path / "warehouse" / "arrays") < size
        assert collected.bytes > 0
        again = connect().array("A")
        assert [version.number for version in again.versions()] == [3, 4]
        assert contents(again) == contents(array) == history[4]
        assert contents(again.at(version=3)) == history[3]
        with pytest.raises(UnknownNameError, match="versions 3 to 4"):
            again.at(version=2)
        check_chunks(array)
        self.put(array, seed=7)
        assert array.version == 5
        assert contents(array.at(version=4)) == history[4]

    def test_garbage_is_collected_by_age(self, local: wr.Database) -> None:
        array = self.create(local, "A", "i=0:9:5")
        for seed in range(3):
            self.put(array, seed=seed)
            time.sleep(0.002)
        newest = contents(array)
        moment = array.versions()[2].created
        assert local.collect_garbage(older_than=moment).versions == 1
        assert [version.number for version in array.versions()] == [1, 2, 3]
        assert local.collect_garbage(older_than=moment.replace(year=2999)).versions == 2
        assert contents(array) == newest
        with pytest.raises(DataError, match="at least 1"):
            local.collect_garbage(keep_versions=0)

    def test_a_dropped_array_is_gone_and_its_name_free(self, local: wr.Database, tmp_path: Path) -> None:
        array = self.create(local, "A", "i=0:9:5")
        self.put(array)
        with pytest.raises(SchemaError, match="exists"):
            self.create(local, "A", "i=0:9:5")
        array.drop()
        assert "A" not in local
        assert local.arrays() == []
        assert not list((tmp_path / "warehouse" / "arrays").iterdir())
        with pytest.raises(UnknownNameError):
            array.read()
        again = self.create(local, "A", "x=1:3:2", "b: string")
        assert again.version == 0
        held = self.put(again)
        assert contents(again) == self.whole(again, held)

    def test_chunk_metadata_is_right_after_every_change(self, database: wr.Database) -> None:
        array = self.create(database, "A", "i=-3:9:4, j=0:*:3")
        check_chunks(array)
        for change in (
            lambda: self.put(array, wr.Box((-3, 0), (9, 3)), 1),
            lambda: self.put(array, wr.Box((0, 2), (4, 2)), 2),
            lambda: self.put(array, wr.Box((5, 7), (6, 8)), 3),
            lambda: array.update({"a": "j"}, "i > 5"),
            lambda: array.update({"k": "null"}),
            lambda: array.update({"a": "1"}, "i > 5 and i < 5"),
            lambda: array.compact({"j": 4}),
            lambda: self.put(array, wr.Box((-3, 0), (9, 8)), 4),
        ):
            change()
            check_chunks(array)
        for version in range(array.version):
            check_chunks(array.at(version=version))

    # Other forms

    def test_to_xarray_equals_read(self, local: wr.Database) -> None:
        array = self.create(local, "A", "i=-3:8:5, j=0:6:4", EVERY_TYPE)
        held = self.put(array)
        names = array.schema.attribute_names
        found = cells_of_dataset(array.to_xarray(), array.box, names)
        assert {at: row for at, row in found.items() if at in held} == held
        if self.sparse:
            assert all(value is None for at, row in found.items() if at not in held for value in row.values())

    @pytest.mark.spark
    def test_to_spark_equals_read(self, connect: Callable[..., wr.Database], spark_session: Any) -> None:
        database = connect(spark=spark_session)
        array = self.create(database, "A", "i=-3:8:5, j=0:*:4", EVERY_TYPE)
        names = array.schema.attribute_names
        assert array.to_spark().collect() == []
        self.put(array, wr.Box((-3, 0), (8, 6)))
        rows = [row.asDict() for row in array.to_spark().collect()]
        assert spark_cells(rows, names) == contents(array)
        rows = [row.asDict() for row in array.to_spark(i=(0, 3), j=5).collect()]
        assert spark_cells(rows, names) == contents(array, i=(0, 3), j=5)

    def test_it_says_what_it_is(self, local: wr.Database) -> None:
        array = self.create(local, "A", "i=0:9:5")
        self.put(array)
        kind = "sparse" if self.sparse else "dense"
        assert repr(array).startswith(f"<windrow.Array A@1 {kind} <a: float64, k: int32 null> [i=0:9:5]")
        assert kind in str(array.describe())
        assert "<table>" in array._repr_html_()


CONDITIONS: dict[str, Callable[[int, int, Any, Any], bool | None]] = {
    "k > 0": lambda i, j, k, m: None if k is None else k > 0,
    "not (k > 0)": lambda i, j, k, m: None if k is None else not k > 0,
    "k > 0 or m > 0": lambda i, j, k, m: either(None if k is None else k > 0, None if m is None else m > 0),
    "k > 0 and m > 0": lambda i, j, k, m: both(None if k is None else k > 0, None if m is None else m > 0),
    "not (k > 0 and i < 4)": lambda i, j, k, m: negated(both(None if k is None else k > 0, i < 4)),
    "k is null": lambda i, j, k, m: k is None,
    "k = null": lambda i, j, k, m: None,
    "i between 2 and 3 and j in (1, 7) and k is not null": lambda i, j, k, m: (
        2 <= i <= 3 and j in (1, 7) and k is not None
    ),
    "i > 100": lambda i, j, k, m: False,
}


def negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: bool | None, right: bool | None) -> bool | None:
    return negated(both(negated(left), negated(right)))


def random_box(box: wr.Box, seed: int) -> wr.Box:
    random = np.random.default_rng(seed)
    pairs = [sorted(random.integers(lo, hi + 1, 2).tolist()) for lo, hi in zip(box.lo, box.hi, strict=True)]
    return wr.Box(tuple(lo for lo, _ in pairs), tuple(hi for _, hi in pairs))


def directory_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def spark_cells(rows: list[dict[str, Any]], names: tuple[str, ...]) -> Cells:
    """Spark has no unsigned types, so that uint64 comes as a decimal."""
    for row in rows:
        for name in names:
            if name.startswith("uint") and row[name] is not None:
                row[name] = int(row[name])
    dimensions = [name for name in rows[0] if name not in names]
    return cells_of_rows(rows, dimensions, names)
