"""The storage benchmark: its arithmetic, its fairness, and a whole run at a tiny scale."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from windrow.bench import storage
from windrow.bench.report import Measurement, Report
from windrow.bench.storage import dense as storage_dense
from windrow.bench.storage import sparse as storage_sparse
from windrow.bench.timing import Timings, duration, environment, fresh_process, in_turns
from windrow.console.commands.benchmarks import SECTIONS
from windrow.errors import MachineError, StoreError
from windrow.model.box import Box
from windrow.samples.cells import SCATTERED_SCHEMA

FAST = Measurement("dense", "write", 0.9, "×", 0.6, detail="a | b")
SLOW = Measurement("sparse", "box", 3.0, "%", 2, "at most")
PLAIN = Measurement("sparse", "building", 12.5, "s")


@pytest.mark.parametrize(
    ("bound", "value", "met"),
    [("at least", 0.6, True), ("at least", 0.599, False), ("at most", 0.6, True), ("at most", 0.601, False)],
)
def test_verdict(bound: str, value: float, met: bool) -> None:
    row = Measurement("x", "y", value, "×", 0.6, bound)  # type: ignore[arg-type]
    assert row.met is met
    assert row.verdict == ("met" if met else "not met")
    assert ((row.margin or 0) >= 1) is met


def test_no_target_no_verdict() -> None:
    assert PLAIN.met is None
    assert PLAIN.verdict == ""
    assert "target" not in str(PLAIN)


def test_what_could_not_be_measured_is_neither_met_nor_missed() -> None:
    row = Measurement("x", "y", float("nan"), "×", 2.0)
    assert row.met is None
    assert row.margin is None
    assert row.verdict == "not measured"
    report = Report("a run", (row, FAST))
    assert report.summary == "1 of 1 targets met"
    assert json.loads(report.to_json())["rows"][0]["value"] is None


def test_line_says_value_target_and_verdict() -> None:
    assert "0.9×" in str(FAST)
    assert "target ≥ 0.6×: met" in str(FAST)
    assert "target ≤ 2 %: not met" in str(SLOW)


def test_report_files(tmp_path: Path) -> None:
    report = Report("a run", (FAST, SLOW, PLAIN))
    assert report.missed == (SLOW,)
    assert report.summary == "1 of 2 targets met"
    written = {path.name for path in report.write(tmp_path / "made" / "here")}
    assert {"report.json", "report.md"} <= written
    held = json.loads((tmp_path / "made" / "here" / "report.json").read_text(encoding="utf-8"))
    assert [row["met"] for row in held["rows"]] == [True, False, None]
    assert held["machine"]["cores"]
    text = (tmp_path / "made" / "here" / "report.md").read_text(encoding="utf-8")
    assert "| dense | write | 0.9× | ≥ 0.6× | met | a \\| b |" in text


def test_bars_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    Report("a run", (FAST, SLOW)).write(tmp_path)
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


def test_in_turns_warms_up_and_alternates() -> None:
    calls: list[str] = []
    times = in_turns(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3, between=lambda: calls.append("-")
    )
    assert "".join(calls).replace("-", "") in ("baabbaab", "abbaabba")
    assert calls[::2] == ["-"] * 8
    assert len(times["a"].seconds) == len(times["b"].seconds) == 3


def test_in_turns_keeps_preparation_off_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    def pass_seconds(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    times = in_turns({"a": lambda: pass_seconds(3)}, 2, warm_up=0, between=lambda: pass_seconds(50))
    assert times["a"].seconds == (3, 3)


@given(st.lists(st.floats(0.001, 1000), min_size=1))
def test_timings(seconds: list[float]) -> None:
    times = Timings(tuple(seconds))
    assert times.best == min(seconds)
    assert times.best <= times.median <= max(seconds)


def test_duration() -> None:
    assert duration(0.0123) == "12.3 ms"
    assert duration(2) == "2.00 s"


def test_fresh_process_says_what_failed() -> None:
    assert fresh_process("print('noise'); print('{\"n\": 3}')") == {"n": 3}
    with pytest.raises(MachineError, match="ValueError: bad"):
        fresh_process("raise ValueError('bad')")


def test_environment_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDROW_TEST_A", "1")
    monkeypatch.delenv("WINDROW_TEST_B", raising=False)
    with environment({"WINDROW_TEST_A": "2", "WINDROW_TEST_B": "3"}):
        assert os.environ["WINDROW_TEST_A"] == "2"
        assert os.environ["WINDROW_TEST_B"] == "3"
    assert os.environ["WINDROW_TEST_A"] == "1"
    assert "WINDROW_TEST_B" not in os.environ


def test_both_sides_write_the_same_field(tmp_path: Path) -> None:
    schema = storage_dense.field_schema(30)
    bare = str(tmp_path / "bare.zarr")
    storage_dense.create_bare(bare, schema)
    boxes = [Box((0, 0, 0), (23, 144, 287)), Box((24, 0, 0), (29, 144, 287))]
    for box in boxes:
        storage_dense.write_bare(storage_dense.BareWrite(bare, box))
    with wr.connect(tmp_path / "w", engine="local") as database:
        array = database.create("A", schema)
        for box in boxes:
            array.write({"t": storage_dense.PatternSource(schema).read(box)["t"]}, at=box.lo)
        ours = array.read()["t"].values
        chunk = array.schema.grid.chunk
    theirs = storage_dense.bare_array(bare)
    assert theirs.chunks == chunk
    assert np.array_equal(theirs[:], ours)
    assert np.isfinite(ours).all()
    assert len(np.unique(ours)) > 1000


@given(st.integers(1, 1000), st.integers(1, 2000))
def test_pattern_has_the_shape_of_its_box(start: int, steps: int) -> None:
    box = Box((start, 3, 4), (start + steps - 1, 4, 6))
    assert storage_dense.pattern_of(box).shape == (steps, 2, 3)


def test_cells_are_distinct_and_unsorted(tmp_path: Path) -> None:
    folder = storage_sparse.write_parquet(tmp_path / "cells", 20_000)
    table = pq.read_table(folder)
    places = set(zip(*(table.column(name).to_pylist() for name in ("time", "ra", "dec")), strict=True))
    assert table.num_rows == len(places) == 20_000
    assert (np.diff(table.column("time").to_numpy()) < 0).any()
    with wr.connect(tmp_path / "w", engine="local") as database:
        array = database.create("S", SCATTERED_SCHEMA, sparse=True)
        assert array.insert(folder).cells == 20_000


def test_the_command_knows_the_sections() -> None:
    assert (*storage.SECTIONS, *storage.ON_SPARK) == SECTIONS["storage"]


def test_too_little_disk_is_refused(tmp_path: Path) -> None:
    greedy = storage.Scale(24, 10, 10, 1, 1, 1, 10**18, 1, storage.Batches(0, 0, 0, 0, ()))
    with pytest.raises(StoreError, match="GB of disk"):
        storage.run_at(greedy, tmp_path, ["start"], lambda _: None)


_TINY_RUN = """
import sys
from pathlib import Path
from windrow.bench.storage import Batches, Scale, run_at
batches = Batches(500_000, 550_000, 3, 2, (2, 3))
run_at(Scale(72, 20_000, 50_000, 2, 20, 1, 0, 5_000, batches), Path(sys.argv[1]), (), print)
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_whole_run(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _TINY_RUN, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    held = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    judged = [row for row in held["rows"] if row["target"] is not None]
    subjects = {"start": 3, "commit": 4, "batches": 31, "metadata": 3, "patches": 6, "dense": 2, "sparse": 2}
    assert [row["subject"] for row in judged] == [name for name, count in subjects.items() for _ in range(count)]
    assert all(row["value"] > 0 for row in held["rows"] if row["subject"] != "batches")
    assert "targets met" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} <= {"report.json", "report.md", "report.png"}
