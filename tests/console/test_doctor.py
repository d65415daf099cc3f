"""What the doctor finds, on a machine and in warehouses that were hurt on purpose."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.requirements import Requirement

import windrow as wr
from console.runs import done, windrow
from windrow.api.doctor import machine as machine_checks
from windrow.api.doctor.findings import State
from windrow.model.labels import Labels
from windrow.storage.dense.store import DenseStore
from windrow.storage.locks import ArrayLock
from windrow.storage.publishing import News
from windrow.storage.tables import labels, locks


@pytest.fixture
def warehouse(local: Any) -> Path:
    local.create("A", "<a: float64> [i=1:4:2]").write({"a": np.arange(4.0)})
    local.create("S", "<v: int32> [x=1:100:10]", sparse=True).insert({"x": [3, 50], "v": [1, 2]})
    return Path(local.path)


def examine(warehouse: Path) -> tuple[int, str]:
    result = windrow("doctor", "--no-spark", "--db", warehouse)
    assert "Traceback" not in result.output
    return result.exit_code, result.stdout


def findings(text: str, state: State) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"{state} ")]


def test_a_sound_warehouse(warehouse: Path) -> None:
    code, text = examine(warehouse)
    assert code == 0
    assert findings(text, State.PROBLEM) == []
    subjects = {line.split()[1] for line in findings(text, State.OK)}
    assert {"Java", "Python", "packages", "memory", "temporary", "disk", "warehouse"} <= subjects
    assert "2 arrays, 2 with store and catalog in step" in text


def test_no_warehouse_is_no_problem(tmp_path: Path) -> None:
    code, text = examine(tmp_path / "none")
    assert code == 0
    assert "none yet" in text
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_warehouse(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    code, text = examine(tmp_path)
    assert code == 3
    assert "is not a windrow warehouse" in findings(text, State.PROBLEM)[0]


def test_a_newer_format(warehouse: Path) -> None:
    (warehouse / "windrow.json").write_text('{"format": 99}')
    code, text = examine(warehouse)
    assert code == 3
    assert "hint: Upgrade windrow" in text


def test_a_catalog_that_is_no_database(warehouse: Path, local: Any) -> None:
    local.close()
    for file in warehouse.glob("catalog.sqlite*"):
        file.write_bytes(b"not a database" * 1000)
    code, text = examine(warehouse)
    assert code == 3
    assert "warehouse" in findings(text, State.PROBLEM)[0]


@pytest.mark.parametrize("name", ["A", "S"])
def test_a_store_that_is_gone(warehouse: Path, local: Any, name: str) -> None:
    shutil.rmtree(local.array(name).location().path)
    code, text = examine(warehouse)
    assert code == 3
    assert f"{name}: its folder" in findings(text, State.PROBLEM)[0]
    assert "2 arrays, 1 with store" in text


def test_a_dense_store_without_its_snapshots(warehouse: Path, local: Any) -> None:
    shutil.rmtree(Path(local.array("A").location().path, "snapshots"))
    code, text = examine(warehouse)
    assert code == 3
    assert "A: its store cannot be read" in findings(text, State.PROBLEM)[0]


@pytest.mark.parametrize("damage", ["gone", "damaged"])
def test_a_dense_store_without_its_branch(warehouse: Path, local: Any, damage: str) -> None:
    (branch,) = warehouse.glob("arrays/A-*/refs/branch.main/ref.json")
    branch.unlink() if damage == "gone" else branch.write_text("")
    code, text = examine(warehouse)
    assert code == 0
    assert f"A: the branch of its store is {damage}" in findings(text, State.WARNING)[0]
    assert "windrow doctor --repair" in text
    text = done("doctor", "--no-spark", "--repair", "--db", warehouse)
    assert f"A: the branch of its store was {damage} and is made anew" in text
    assert "2 arrays, 2 with store and catalog in step" in text
    assert local.array("A").version == 1
    assert DenseStore(local.array("A").location().path).head() == local.array("A").location().version


def test_a_sparse_part_cut_short(warehouse: Path, local: Any) -> None:
    (part,) = Path(local.array("S").location().path).glob("*.parquet")
    part.write_bytes(part.read_bytes()[:-1])
    code, text = examine(warehouse)
    assert code == 3
    assert f"S: 1 file of its newest version gone or cut short: {part.name}" in text


def test_a_log_with_an_entry_gone(warehouse: Path, local: Any) -> None:
    Path(local.array("S").location().path, "_delta_log", f"{0:020}.json").unlink()
    code, text = examine(warehouse)
    assert code == 3
    assert "S: its store cannot be read: entry 0 of the log" in findings(text, State.PROBLEM)[0]


def test_a_store_ahead_of_the_catalog(warehouse: Path, local: Any) -> None:
    """As a writer leaves it that dies after its commit and before publishing."""
    array = local.array("A")
    store = DenseStore(array.location().path)
    store.rechunk(array.schema, array.box.hi, {})
    code, text = examine(warehouse)
    assert code == 0
    assert f"A: its store is at {store.head()}" in findings(text, State.WARNING)[0]
    done("collect-garbage", "--db", warehouse)
    assert findings(examine(warehouse)[1], State.WARNING) == []


def test_a_sparse_store_ahead_of_the_catalog(warehouse: Path, local: Any) -> None:
    from windrow.storage.delta.log import Entry
    from windrow.storage.sparse import SparseStore

    array = local.array("S")
    place = array.location()
    SparseStore(place.path).commit(array.schema, place.version, Entry([], [], "never published", False))
    code, text = examine(warehouse)
    assert code == 0
    assert "S: its store is at 2, the catalog at 1" in findings(text, State.WARNING)[0]


def test_orphans_and_trash(warehouse: Path, local: Any) -> None:
    (warehouse / "arrays" / "B-0123456789ab").mkdir()
    local.catalog.publish(News((), dropped=[local.catalog.array("S")]))
    code, text = examine(warehouse)
    assert code == 0
    warnings = findings(text, State.WARNING)
    assert any("1 dropped array not yet removed" in line for line in warnings)
    assert any("1 folder that no array claims, such as arrays/B-0123456789ab" in line for line in warnings)
    assert text.splitlines()[-1] == "2 warnings"


def test_locks(warehouse: Path, local: Any) -> None:
    held = ArrayLock(local.catalog, local.catalog.array("A").id).acquire("A", 1)
    try:
        code, text = examine(warehouse)
        assert code == 0
        assert "A is being written by process" in text
        with local.catalog.writing() as connection:
            connection.execute(locks.update().values(process_started=1))
        code, text = examine(warehouse)
        assert code == 0
        assert "which is gone" in findings(text, State.WARNING)[0]
    finally:
        held.release()


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from windrow.execution.java import find_java

    monkeypatch.setattr(machine_checks, "find_java", lambda: find_java({"PATH": str(tmp_path)}, installed=()))
    code, text = examine(tmp_path / "none")
    assert code == 3
    assert "no Java at all" in findings(text, State.PROBLEM)[0]
    assert "apt-get install" in text
    assert text.splitlines()[-1] == "1 problem"


def test_a_java_that_was_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, text = examine(tmp_path / "none")
    assert code == 0
    assert "has no bin/java" in findings(text, State.WARNING)[0]


def test_packages_against_requirements(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = ["numpy>=1", "numpy<1.0", "no-such-thing>=2", 'other-thing; extra == "plot"', 'far; extra == "dev"']
    monkeypatch.setattr(machine_checks, "_requirements", lambda: [Requirement(text) for text in stated])
    found = list(machine_checks.check_packages())
    problems = [finding for finding in found if finding.state is State.PROBLEM]
    assert [finding.text.split(":")[0] for finding in problems] == ["numpy", "no-such-thing"]
    assert problems[1].mend == "pip install 'no-such-thing>=2'"
    assert any("other-thing is not installed" in finding.text for finding in found)
    assert not any("far" in finding.text for finding in found)


def test_requirements_are_known() -> None:
    named = {requirement.name for requirement in machine_checks._requirements()}
    assert {"pyspark", "icechunk", "deltalake", "matplotlib"} <= named


def test_an_unwritable_temporary_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine_checks.tempfile, "tempdir", str(tmp_path / "gone"))
    (finding,) = machine_checks.check_temporary()
    assert finding.state is State.PROBLEM
    assert "TMPDIR" in str(finding.mend)


@pytest.mark.parametrize(("free", "state"), [(10**6, State.PROBLEM), (10**9, State.WARNING), (10**10, State.OK)])
def test_little_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: int, state: State) -> None:
    monkeypatch.setattr(machine_checks.shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(0, 0, free))
    (finding,) = machine_checks.check_disk(str(tmp_path / "deep" / "down"))
    assert finding.state is state
    assert str(tmp_path) in finding.text


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
def test_spark_really_works(warehouse: Path) -> None:
    text = done("doctor", "--db", warehouse)
    (line,) = [line for line in text.splitlines() if line.split()[1:2] == ["Spark"]]
    assert line.startswith("ok ")
    assert "first Python job in" in line


def test_slices_that_are_out_of_order_are_mended(local: Any) -> None:
    array = local.create("T", "<t: float64, k: int32 null> [time=1:*:2, x=1:3:2]")
    values = np.arange(7.0)[:, None] + np.zeros(3)
    array.append({"t": values})
    # As an earlier windrow left it: late slices at the end, and one day twice.
    array.set_labels("time", np.array([f"2012-01-0{day}" for day in (4, 5, 1, 2, 6, 2, 3)], "M8[D]"))
    _, text = examine(local.path)
    assert "T: slices of time are out of order" in findings(text, State.WARNING)[0]
    assert array.version == 2
    done("doctor", "--no-spark", "--repair", "--db", local.path)
    assert findings(examine(local.path)[1], State.WARNING) == []
    assert array.read()["t"].values[:, 0].tolist() == [2.0, 5.0, 6.0, 0.0, 1.0, 4.0]
    assert array.read(time="2012-01-02")["t"].values.tolist() == [[5.0, 5.0, 5.0]]
    assert array.to_xarray().sizes["time"] == 6
    assert int(array.chunks().cells.sum()) == 18
    assert array.at(version=2).read()["t"].values[:, 0].tolist() == list(range(7))
    array.append({"t": values[:1] + 9}, labels=np.array(["2012-01-07"], "M8[D]"))
    assert array.read()["t"].values[:, 0].tolist() == [2.0, 5.0, 6.0, 0.0, 1.0, 4.0, 9.0]


def test_labels_that_overlap_as_earlier_windrows_stored_them_can_be_read(local: Any) -> None:
    array = local.create("T", "<t: float64> [time=1:*:2]")
    days = np.array([f"2012-01-0{day}" for day in (1, 2, 3, 4)], "M8[D]")
    array.append(np.arange(3.0), labels=days[:3])
    array.append(np.arange(1.0), labels=days[3:])
    # A file of the second to the fourth day was stored with all its labels, from the second position on.
    with local.catalog._writer.begin() as connection:
        old = {"start": 1, "encoded": Labels.of(days[1:]).to_bytes()}
        connection.execute(labels.update().where(labels.c.since == 2).values(old))
    local.close()
    with wr.connect(local.path, engine="local") as database:
        assert database.array("T").read()["time"].values.astype("M8[D]").tolist() == days.tolist()
        database.array("T").append(np.arange(1.0), labels=days[:1])
    done("doctor", "--no-spark", "--repair", "--db", local.path)
