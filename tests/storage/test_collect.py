"""Garbage collection: nothing that can be read is lost, nothing that cannot be read stays."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

import windrow as wr
from windrow.operations.collect import UNFINISHED_SECONDS

from .contents import abandoned


def files(root: Path, pattern: str) -> set[str]:
    return {file.name for file in (root / "warehouse" / "arrays").rglob(pattern)}


def test_parts_of_abandoned_and_given_up_versions_go(local: wr.Database, tmp_path: Path) -> None:
    array = local.create("S", "<v: int64> [x=0:99:10]", sparse=True)
    for value in range(4):
        array.insert({"x": list(range(100)), "v": [value] * 100})
    assert len(files(tmp_path, "part-*.parquet")) == 4
    with abandoned(local) as batch:
        batch.insert("S", {"x": [1], "v": [9]})
    assert len(files(tmp_path, "part-*.parquet")) > 4
    assert local.collect_garbage().bytes > 0
    assert len(files(tmp_path, "part-*.parquet")) == 4
    assert local.collect_garbage().bytes == 0
    local.collect_garbage(keep_versions=1)
    assert len(files(tmp_path, "part-*.parquet")) == 1
    assert array.read()["v"].to_pylist() == [3] * 100
    assert array.location().version == str(array.versions()[-1].pointer)


def test_unclaimed_folders_go_when_they_are_old(local: wr.Database, tmp_path: Path) -> None:
    local.create("D", "<a: float64> [i=0:9]").write(np.ones(10))
    arrays = tmp_path / "warehouse" / "arrays"
    for name, age in (("young-000000000000", 0), ("old-000000000000", UNFINISHED_SECONDS + 60)):
        (arrays / name).mkdir()
        (arrays / name / "file").write_bytes(b"12345")
        moment = (arrays / name).stat().st_mtime - age
        for place in (arrays / name, arrays / name / "file"):
            os.utime(place, (moment, moment))
    collected = local.collect_garbage()
    assert (collected.directories, collected.bytes >= 5) == (1, True)
    assert {entry.name.split("-")[0] for entry in arrays.iterdir()} == {"D", "young"}


def test_versions_that_share_a_snapshot_outlive_each_other(local: wr.Database) -> None:
    array = local.create("D", "<a: float64> [i=0:9]")
    array.write(np.ones(10))
    array.update({"a": "2"}, "i > 100")  # changes nothing, and so points to the same snapshot
    local.collect_garbage(keep_versions=1)
    assert array.read()["a"].values.tolist() == [1.0] * 10
    array.write(np.zeros(10))
    local.collect_garbage(keep_versions=1)
    assert array.read()["a"].values.tolist() == [0.0] * 10


def test_collection_looks_after_every_array(local: wr.Database) -> None:
    for name, sparse in (("A", False), ("B", True), ("C", False)):
        array = local.create(name, "<v: int64> [x=0:9]", sparse=sparse)
        for value in range(3):
            array.insert({"x": [1], "v": [value]})
    assert local.collect_garbage(keep_versions=2).versions == 6
    for array in local.arrays():
        assert [version.number for version in array.versions()] == [2, 3]
        assert array.at(version=2).read(x=1)["v"].to_numpy().tolist() == [1]
