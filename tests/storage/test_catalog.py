"""The catalog: one SQL transaction makes versions visible, or none of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

import windrow as wr
from windrow.errors import ConflictError, SchemaError, UnknownNameError
from windrow.model.box import Box
from windrow.model.labels import Labels
from windrow.model.notation import parse_schema
from windrow.storage.catalog import Catalog
from windrow.storage.connection import open_engine
from windrow.storage.publishing import LABEL_SEGMENTS, NewArray, News
from windrow.storage.records import ArrayRecord, ChunkStatistics, LabelChange, NewVersion, Part, VersionRecord

DENSE = parse_schema("<a: float64> [i=0:*:10]")[1]
SPARSE = parse_schema("<v: int64> [x=0:*:10]", sparse=True)[1]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = Catalog(open_engine(f"sqlite:///{tmp_path / 'catalog.sqlite'}"))
    opened.create_tables({"format": "2"})
    yield opened
    opened.close()


def add(catalog: Catalog, name: str, *, sparse: bool) -> ArrayRecord:
    schema = SPARSE if sparse else DENSE
    version = VersionRecord(0, 0, "first", schema, (-1,), "create", None, datetime.now(UTC), 0, 0)
    record = ArrayRecord(0, name, f"arrays/{name}", sparse)
    catalog.publish(News((), created=[NewArray(record, version, {})]))
    return catalog.array(name)


def part(name: str, first: int, last: int) -> Part:
    ordinals = np.arange(first // 10, last // 10 + 1)
    lo = np.maximum(ordinals * 10, first).reshape(-1, 1)
    hi = np.minimum(ordinals * 10 + 9, last).reshape(-1, 1)
    cells = (hi - lo + 1).reshape(-1)
    chunks = ChunkStatistics(ordinals, cells, cells, lo, hi)
    return Part(name, int(cells.sum()), 100, 0, box=Box((first,), (last,)), chunks=chunks)


def publish(catalog: Catalog, *changes: NewVersion, batch: str | None = None) -> dict[str, VersionRecord]:
    names = {catalog.array(name).id: name for name in catalog.array_names()}
    changed = {names.get(new.array_id, "gone"): new for new in changes}
    return catalog.publish(News((), changed=changed, batch=batch))


def change(record: ArrayRecord, base: int, **changes: object) -> NewVersion:
    schema = SPARSE if record.sparse else DENSE
    return NewVersion(record.id, base, f"pointer {base + 1}", schema, (99,), "insert", **changes)  # type: ignore[arg-type]


def test_parts_live_from_version_to_version(catalog: Catalog) -> None:
    record = add(catalog, "S", sparse=True)
    publish(catalog, change(record, 0, added_parts=(part("p", 0, 24), part("q", 30, 39))))
    ids = {found.path: found.id for found in catalog.parts(catalog.version(record))}
    publish(catalog, change(record, 1, added_parts=(part("r", 5, 9),), removed_parts=(ids["p"],)))
    found = {number: {p.path for p in catalog.parts(catalog.version(record, number))} for number in range(3)}
    assert found == {0: set(), 1: {"p", "q"}, 2: {"q", "r"}}
    assert [version.cells for version in catalog.versions(record)] == [0, 35, 15]
    assert [version.bytes for version in catalog.versions(record)] == [0, 200, 200]
    assert catalog.chunks(catalog.version(record, 1)).ordinals.tolist() == [0, 1, 2, 3]
    newest = catalog.chunks(catalog.version(record)).merged()
    assert (newest.ordinals.tolist(), newest.cells.tolist()) == ([0, 3], [5, 10])
    assert newest.touching(Box((0,), (20,))).tolist() == [True, False]


def test_dense_chunks_have_the_bounds_of_their_version(catalog: Catalog) -> None:
    record = add(catalog, "D", sparse=False)
    some = ChunkStatistics(*(np.array([n]) for n in (0, 4, 32)), np.array([[0]]), np.array([[3]]))
    publish(catalog, NewVersion(record.id, 0, "p", DENSE, (3,), "append", dense_chunks=some))
    publish(catalog, NewVersion(record.id, 1, "q", DENSE, (14,), "grow"))
    for number, cells, hi in ((1, 4, 3), (2, 10, 9)):
        chunks = catalog.chunks(catalog.version(record, number))
        assert (chunks.cells.tolist(), chunks.hi.tolist(), chunks.bytes.tolist()) == ([cells], [[hi]], [32])


def test_all_arrays_of_a_batch_move_or_none(catalog: Catalog) -> None:
    first, second = add(catalog, "A", sparse=True), add(catalog, "B", sparse=True)
    publish(catalog, change(second, 0, added_parts=(part("b", 0, 5),)))
    with pytest.raises(ConflictError, match="version 1 instead of 0"):
        publish(catalog, change(first, 0, added_parts=(part("a", 0, 5),)), change(second, 0), batch="night")
    assert catalog.version(first).number == 0
    assert not catalog.parts(catalog.version(first))
    assert catalog.batch_report("night") is None
    published = publish(catalog, change(first, 0), change(second, 1), batch="night")
    assert {name: version.number for name, version in published.items()} == {"A": 1, "B": 2}
    report = json.loads(catalog.batch_report("night") or "")
    assert report == {"versions": {"A": 1, "B": 2}, "unchanged": [], "dropped": [], "folders": {}}
    with pytest.raises(ConflictError, match="night"):
        publish(catalog, change(first, 1), batch="night")
    assert catalog.version(first).number == 1


def test_names_are_unique_and_unknown_ones_get_a_hint(catalog: Catalog) -> None:
    record = add(catalog, "Temperature", sparse=True)
    with pytest.raises(SchemaError, match="exists"):
        add(catalog, "Temperature", sparse=False)
    with pytest.raises(UnknownNameError, match="Did you mean 'Temperature'"):
        catalog.array("temprature")
    publish(catalog, change(record, 0, added_parts=(part("p", 0, 5),)))
    catalog.publish(News((), dropped=[record]))
    assert catalog.array_names() == []
    assert catalog.trash() == ["arrays/Temperature"]
    assert catalog.every_part(record) == []
    catalog.empty_trash("arrays/Temperature")
    assert catalog.trash() == []
    with pytest.raises(ConflictError, match="dropped"):
        publish(catalog, change(record, 1))


def test_labels_are_kept_as_what_was_added(catalog: Catalog) -> None:
    record = add(catalog, "D", sparse=False)
    for number in range(2 * LABEL_SEGMENTS + 5):
        added = LabelChange("i", number, Labels.of([float(number)]).to_bytes())
        publish(catalog, change(record, number, labels=(added,)))
    for number in (1, LABEL_SEGMENTS, LABEL_SEGMENTS + 1, 2 * LABEL_SEGMENTS + 5):
        found = catalog.labels(catalog.version(record, number))["i"]
        assert found.values.tolist() == [float(n) for n in range(number)]
    assert catalog.labels(catalog.version(record, 0)) == {}


def test_given_up_versions_are_not_offered(catalog: Catalog) -> None:
    record = add(catalog, "S", sparse=True)
    for number in range(3):
        publish(catalog, change(record, number, added_parts=(part(f"p{number}", 0, 5),)))
    catalog.forget_versions(record, [0, 1])
    assert [version.number for version in catalog.versions(record)] == [2, 3]
    with pytest.raises(UnknownNameError, match="versions 2 to 3"):
        catalog.version(record, 1)
    with pytest.raises(UnknownNameError, match="as of"):
        catalog.version(record, as_of=datetime(2001, 1, 1, tzinfo=UTC))
    assert catalog.version(record, as_of=datetime(2999, 1, 1, tzinfo=UTC)).number == 3


def test_a_read_asks_only_which_version_there_is(tmp_path: Path) -> None:
    """Parts and labels of a version never change, and are asked for once."""
    with wr.connect(tmp_path / "w", engine="local") as database:
        array = database.create("S", "<v: int64> [x=0:9:5]", sparse=True, labels={"x": np.arange(10) * 0.5})
        array.insert({"x": [1, 7], "v": [1, 7]})
        asked: list[str] = []

        def note(*arguments: Any) -> None:
            asked.append(arguments[2])

        assert array.read(x=(0.5, 1.0))["v"].to_pylist() == [1]
        sa.event.listen(database.catalog._reader, "before_cursor_execute", note)
        assert array.read(x=(0.5, 1.0))["v"].to_pylist() == [1]
        selects = [text for text in asked if text.startswith("SELECT")]
        assert selects
        assert not [text for text in selects if "FROM parts" in text or "FROM labels" in text]
        assert len(selects) <= 4  # one of them whether there are views
        array.insert({"x": [2], "v": [2]})
        assert array.read(x=(0.5, 1.0))["v"].to_pylist() == [1, 2]
        array.set_labels("x", np.arange(10))
        assert array.read(x=(0.5, 1.0))["v"].to_pylist() == [1]


def test_remembered_labels_are_not_changed_by_who_got_them(catalog: Catalog) -> None:
    record = add(catalog, "A", sparse=True)
    version = catalog.version(record)
    before = catalog.labels(version)
    catalog.labels(version)["x"] = Labels.of([1, 2, 3])
    assert catalog.labels(version) == before
