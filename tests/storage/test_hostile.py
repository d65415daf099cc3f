"""Warehouses that somebody else made: opening and cleaning one must not touch anything outside it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.api.doctor.warehouse import check_warehouse, repair_warehouse
from windrow.console.commands.settings import Settings
from windrow.errors import CorruptionError, Error, StoreError
from windrow.storage.warehouse import FORMAT

VALUES = np.random.default_rng(1).random(2000)  # too random for Icechunk to keep them inside a manifest
NAMES = ["../../victim", "../victim", "arrays/../../victim", "arrays/../victim", "arrays", "arrays/", "arrays/.",
         "arrays/..", "", ".", "arrays/a/b", "arrays/a\x00b", "arrays/a\nb", "arrays/\x1b[2J", "arrays//x"]  # fmt: skip


def connect(path: Path, **options: Any) -> wr.Database:
    return wr.connect(path, **({"engine": "local", "progress": False} | options))


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A warehouse with a dense array D and a sparse one S, of two versions each, and a victim beside it."""
    path = tmp_path / "warehouse"
    with connect(path) as database:
        dense = database.create("D", "<a: float64> [i=1:2000:1000]")
        sparse = database.create("S", "<v: float64> [x=1:100:10]", sparse=True)
        for value in (1.0, 2.0):
            dense.write(VALUES * value)
            sparse.insert({"x": [1, 2, 50], "v": [value] * 3})
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "thesis.txt").write_text("years of work")
    (victim / "part-1.parquet").write_text("mine")
    return path


@pytest.fixture
def is_whole(warehouse: Path) -> Callable[[], bool]:
    """Whether the victim is as it was."""
    victim = warehouse.parent / "victim"

    def look() -> dict[str, str]:
        return {str(entry): entry.read_text() if entry.is_file() else "" for entry in sorted(victim.rglob("*"))}

    before = look()
    return lambda: look() == before


def change(warehouse: Path, statement: str, *values: object) -> None:
    with contextlib.closing(sqlite3.connect(warehouse / "catalog.sqlite")) as catalog:
        catalog.execute(statement, values)
        catalog.commit()


def directory(warehouse: Path, name: str) -> Path:
    with contextlib.closing(sqlite3.connect(warehouse / "catalog.sqlite")) as catalog:
        return warehouse / str(catalog.execute("select directory from arrays where name = ?", [name]).fetchone()[0])


def try_everything(warehouse: Path, name: str) -> list[Error]:
    """What an unsuspecting user might do to an array, and the errors that came of it; nothing else may be raised."""
    acts: list[Callable[[wr.Database], object]] = [
        lambda db: db.array(name).read(),
        lambda db: db.array(f"{name}@1").read(),
        lambda db: db.array(name).to_xarray(),
        lambda db: db.array(name).location(),
        lambda db: db.query(f"aggr {name} count(*) by window(2)").compute(),
        lambda db: db.array(name).compact(),
        lambda db: db.array(name).delete("x < 30") if db.array(name).sparse else db.array(name).write(np.ones(2000)),
        lambda db: db.collect_garbage(),
        lambda db: db.collect_garbage(keep_versions=1),
        lambda db: db.drop(name),
        lambda db: db.collect_garbage(),
    ]
    errors = []
    for act in acts:
        try:
            with connect(warehouse, create=False) as database:
                act(database)
        except Error as error:
            errors.append(error)
    return errors


@pytest.mark.parametrize(("name", "place"), [("D", "../../victim"), ("S", "absolute")])
def test_a_catalog_that_names_folders_outside(
    warehouse: Path, is_whole: Callable[[], bool], name: str, place: str
) -> None:
    stated = str(warehouse.parent / "victim") if place == "absolute" else place
    change(warehouse, "update arrays set directory = ? where name = ?", stated, name)
    errors = try_everything(warehouse, name)
    assert is_whole()
    assert len(errors) == 11
    assert all(isinstance(error, CorruptionError) and error.hint for error in errors)


def test_every_name_that_is_no_folder_of_an_array(warehouse: Path, is_whole: Callable[[], bool]) -> None:
    """One warehouse for all of them: after each refusal it is as it was."""
    with connect(warehouse) as database:
        for stated in [*NAMES, str(warehouse.parent / "victim")]:
            with pytest.raises(CorruptionError):
                database.warehouse.path(stated)
            with pytest.raises(CorruptionError):
                database.warehouse.remove(stated)
            change(warehouse, "insert into trash values (?)", stated)
            with pytest.raises(CorruptionError):
                database.collect_garbage()
            change(warehouse, "delete from trash")
        database.collect_garbage()
        assert len(database.array("S").read()) == 3
        assert np.array_equal(database.array("D").read().a, VALUES * 2)
    assert is_whole()


@pytest.mark.parametrize("place", ["../../../victim/part-1.parquet", "a\x00b"], ids=repr)
def test_parts_outside_the_array_s_folder(warehouse: Path, is_whole: Callable[[], bool], place: str) -> None:
    stated = str(warehouse.parent / "victim" / "part-1.parquet") if place == "absolute" else place
    change(warehouse, "update parts set path = ?", stated)
    errors = try_everything(warehouse, "S")
    assert is_whole()
    assert len(errors) >= 4
    assert all(isinstance(error, CorruptionError) for error in errors)


def link_folder(warehouse: Path, name: str) -> None:
    """An array whose folder is a link to the victim."""
    folder = directory(warehouse, name)
    shutil.rmtree(folder)
    folder.symlink_to(warehouse.parent / "victim", target_is_directory=True)


def link_all(warehouse: Path, name: str) -> None:
    """All arrays in a folder that is a link."""
    shutil.move(warehouse / "arrays", warehouse.parent / "victim" / "arrays")
    (warehouse / "arrays").symlink_to(warehouse.parent / "victim" / "arrays", target_is_directory=True)


def link_within(warehouse: Path, name: str) -> None:
    """A folder of the store that is a link to the victim: what a collection removes there would be the victim's."""
    for inner in ("chunks", "_delta_log"):
        place = directory(warehouse, name) / inner
        if place.exists():
            shutil.move(place, warehouse.parent / "victim" / "moved")
            place.symlink_to(warehouse.parent / "victim" / "moved", target_is_directory=True)


def link_files(warehouse: Path, name: str) -> None:
    """Files of the store that are links."""
    folder = directory(warehouse, name)
    for number, file in enumerate([*folder.glob("chunks/*"), *folder.glob("*.parquet")]):
        shutil.move(file, warehouse.parent / "victim" / str(number))
        file.symlink_to(warehouse.parent / "victim" / str(number))


@pytest.mark.parametrize("name", ["D", "S"])
@pytest.mark.parametrize("link", [link_folder, pytest.param(link_all, marks=pytest.mark.slow), link_within, link_files])
def test_links_that_lead_outside(warehouse: Path, link: Callable[[Path, str], None], name: str) -> None:
    link(warehouse, name)
    victim = warehouse.parent / "victim"
    before = {str(entry): entry.read_bytes() for entry in victim.rglob("*") if entry.is_file()}
    errors = try_everything(warehouse, name)
    assert {str(entry): entry.read_bytes() for entry in victim.rglob("*") if entry.is_file()} == before
    assert any("link" in str(error) for error in errors)


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_catalog_that_is_a_link(warehouse: Path, suffix: str) -> None:
    other = warehouse.parent / "other.sqlite"
    with contextlib.closing(sqlite3.connect(other)) as own:
        own.execute("create table mine (a)")
        own.commit()
    before = other.read_bytes()
    file = warehouse / f"catalog.sqlite{suffix}"
    file.unlink(missing_ok=True)
    file.symlink_to(other)
    with pytest.raises(StoreError, match="link"):
        connect(warehouse)
    assert other.read_bytes() == before
    assert sorted(entry.name for entry in warehouse.parent.glob("other*")) == ["other.sqlite"]


def test_a_warehouse_s_own_folder_may_be_a_link(warehouse: Path) -> None:
    link = warehouse.parent / "link"
    link.symlink_to(warehouse)
    with connect(link) as database:
        assert np.array_equal(database.array("D").read().a, VALUES * 2)
        database.array("S").compact()
        database.drop("D")
        database.collect_garbage(keep_versions=1)
        assert len(database.array("S").read()) == 3


def test_a_link_that_no_array_claims_is_left_alone(warehouse: Path, is_whole: Callable[[], bool]) -> None:
    link = warehouse / "arrays" / "Z-0123456789ab"
    link.symlink_to(warehouse.parent / "victim")
    os.utime(warehouse.parent / "victim", (0, 0))
    with connect(warehouse) as database:
        database.collect_garbage()
    assert is_whole()
    assert link.is_symlink()


# Delta logs


@pytest.mark.parametrize("place", ["../../../victim/part-1.parquet", "file:///etc/hostname", "/etc/hostname"])
def test_a_log_that_names_files_outside(warehouse: Path, is_whole: Callable[[], bool], place: str) -> None:
    log = directory(warehouse, "S") / "_delta_log"
    newest = max(log.glob("*.json"))
    size = (warehouse.parent / "victim" / "part-1.parquet").stat().st_size
    action = {"path": place, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
    ahead = log / f"{int(newest.stem) + 1:020}.json"
    ahead.write_text(json.dumps({"add": action}) + "\n")
    with connect(warehouse) as database:
        array = database.array("S")
        assert len(array.read()) == 3
        for act in (lambda: array.insert({"x": [9], "v": [9.0]}), array.compact, database.collect_garbage):
            with contextlib.suppress(Error):
                act()
        assert len(array.read()) in (3, 4)
    assert is_whole()


# Markers


SECRET = "correct-horse"
ADDRESSES = [f"postgresql://me:{SECRET}@db.example.org/catalog?sslpassword={SECRET}", f"sqlite:///{{}}/x.sqlite?key={SECRET}",
             f"nonsense://{SECRET}@", f"{SECRET}", f"sqlite:///file:{{}}/x.sqlite?key={SECRET}&uri=true"]  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_in_a_marker_is_neither_opened_nor_shown(warehouse: Path, address: str) -> None:
    marker = warehouse / "windrow.json"
    marker.write_text(json.dumps({"format": 1, "catalog": address.format(warehouse.parent)}))
    with pytest.raises(StoreError, match="kept elsewhere") as caught:
        connect(warehouse)
    assert SECRET not in str(caught.value)
    assert "catalog=" in str(caught.value)
    assert not (warehouse.parent / "x.sqlite").exists()


@pytest.mark.parametrize("number", [0, -1, "0"])
def test_a_format_that_never_was_is_refused(warehouse: Path, number: object) -> None:
    (warehouse / "windrow.json").write_text(json.dumps({"format": number}))
    with pytest.raises(StoreError, match="no windrow ever wrote"):
        wr.connect(warehouse, engine="local")


def test_a_marker_holds_no_secret_and_a_catalog_elsewhere_is_opened_for_who_names_it(tmp_path: Path) -> None:
    address = f"sqlite:///file:{tmp_path}/elsewhere.sqlite?mode=rwc&secret={SECRET}&uri=true"
    with connect(tmp_path / "warehouse", catalog=address) as database:
        database.create("D", "<a: float64> [i=1:20:10]").write(np.ones(20))
    text = (tmp_path / "warehouse" / "windrow.json").read_text()
    assert SECRET not in text
    assert "elsewhere.sqlite" in text
    with pytest.raises(StoreError, match=r"kept elsewhere.*elsewhere\.sqlite"):
        connect(tmp_path / "warehouse")
    assert not (tmp_path / "warehouse" / "catalog.sqlite").exists()
    with connect(tmp_path / "warehouse", catalog=address) as database:
        assert float(database.array("D").read().a.sum()) == 20


def test_an_old_marker_loses_its_secret_when_it_is_opened_by_who_knows_it(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/elsewhere.sqlite?timeout=9"
    connect(tmp_path / "warehouse", catalog=address).close()
    marker = tmp_path / "warehouse" / "windrow.json"
    marker.write_text(json.dumps({"format": 1, "catalog": address}))
    connect(tmp_path / "warehouse", catalog=address).close()
    assert "timeout" not in marker.read_text()
    assert json.loads(marker.read_text())["format"] == FORMAT
    with pytest.raises(StoreError, match="kept elsewhere"):
        connect(tmp_path / "warehouse")


def test_the_console_and_the_doctor_are_told_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, address = str(tmp_path / "warehouse"), f"sqlite:///{tmp_path}/elsewhere.sqlite"
    with connect(tmp_path / "warehouse", catalog=address) as database:
        database.create("D", "<a: float64> [i=1:20:10]")
    assert any("kept elsewhere" in finding.text for finding in check_warehouse(path))
    monkeypatch.setenv("WINDROW_CATALOG", address)
    with Settings(db=path).connect(engine="local") as database:
        assert [array.name for array in database.arrays()] == ["D"]
    assert not any("kept elsewhere" in finding.text for finding in check_warehouse(path))
    (branch,) = (tmp_path / "warehouse").glob("arrays/D-*/refs/branch.main/ref.json")
    branch.unlink()
    assert ["made anew" in finding.text for finding in repair_warehouse(path)] == [True]
    assert branch.exists()


def test_a_branch_is_made_from_no_name_that_leads_outside(warehouse: Path, is_whole: Callable[[], bool]) -> None:
    """The catalog names the snapshot that a lost branch begins with."""
    (branch,) = warehouse.glob("arrays/D-*/refs/branch.main/ref.json")
    branch.unlink()
    with contextlib.closing(sqlite3.connect(warehouse / "catalog.sqlite")) as catalog:
        catalog.execute("update versions set pointer = '../../../../victim/part-1.parquet'")
        catalog.commit()
    with connect(warehouse) as database:
        for act in (database.array("D").read, database.collect_garbage, lambda: database.array("D").write([1.0])):
            with pytest.raises(CorruptionError):
                act()
    assert not branch.exists()
    assert is_whole()


def test_an_address_that_cannot_be_used_is_not_repeated_in_full(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        connect(tmp_path / "warehouse", catalog=f"nosuchdatabase://me:{SECRET}@host/catalog")
    assert SECRET not in str(caught.value)
    assert "nosuchdatabase" in str(caught.value)
