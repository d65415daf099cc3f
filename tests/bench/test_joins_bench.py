"""The join benchmark: its contenders agree, its arithmetic, and whole sections at a tiny scale."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from console.runs import done
from windrow.bench import joins, sections
from windrow.bench.joins import peers as joins_peers
from windrow.bench.joins.chunks import LENGTHS, made_chunks
from windrow.bench.joins.dense import CASES
from windrow.bench.joins.memory import GEO, PTF_5, PTF_25, STEPS, coordinates, detections
from windrow.bench.joins.ours import neighbours
from windrow.bench.joins.race import OURS, Answer, Prepared, always, gain, raced
from windrow.bench.joins.scale import FULL, PEERS, QUICK, JoinsBench, JoinsScale
from windrow.bench.race import Result
from windrow.bench.tables import Line
from windrow.console.commands.benchmarks import SECTIONS
from windrow.errors import DataError, MachineError, UnknownNameError
from windrow.model.shape import Shape

TINY = JoinsScale(
    detections=1_500,
    range_cells=300,
    places=1_000,
    rounds=1,
    spark_detections=3_000,
    spark_rounds=1,
    stars=500,
    side=40,
    old_chunks=2_000,
    new_chunks=40,
)


def by_hand(cells: dict[str, Any], shape: Shape) -> Answer:
    """Every pair of cells is looked at."""
    counts, sums = [], []
    radius = {str(PTF_5): 1, str(PTF_25): 2}[str(shape)]
    for time, ra, dec in zip(cells["time"], cells["ra"], cells["dec"], strict=True):
        across, along = np.abs(cells["ra"] - ra), np.abs(cells["dec"] - dec)
        if shape is PTF_5:
            before = time - cells["time"]
            near = (across + along <= radius) & (before >= 0) & (before <= STEPS)
        else:
            near = (across <= radius) & (along <= radius)
        counts.append(int(near.sum()))
        sums.append(float(cells["mag"][near].sum()))
    return Answer(np.array(counts), np.array(sums))


@pytest.mark.parametrize("shape", [PTF_5, PTF_25])
@pytest.mark.parametrize("order", [("time", "ra", "dec"), ("ra", "dec", "time")])
def test_windrows_side_is_right(shape: Shape, order: tuple[str, ...]) -> None:
    cells = detections(700, order)
    wanted = by_hand(cells, shape)
    wanted.check(neighbours(coordinates(cells), shape, cells["mag"]), "the kernels")
    wanted.check(neighbours(coordinates(cells), shape), "the kernels")


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


@pytest.mark.parametrize(
    ("package", "make", "shape"),
    [
        ("scipy", lambda cells: joins_peers.tree_of_crosses(cells, STEPS), PTF_5),
        ("duckdb", lambda cells: joins_peers.duckdb_offsets(cells, ("ra", "dec"), *joins_peers.crosses(STEPS)), PTF_5),
        ("duckdb", lambda cells: joins_peers.duckdb_ranges(cells, STEPS), PTF_5),
        ("polars", lambda cells: joins_peers.polars_offsets(cells, STEPS, joins_peers.crosses(STEPS)[0]), PTF_5),
        ("polars", lambda cells: joins_peers.polars_ranges(cells, STEPS), PTF_5),
        ("scipy", lambda cells: joins_peers.tree_of_squares(cells, ("ra", "dec"), 2), PTF_25),
        ("scipy", lambda cells: joins_peers.tree_of_positions(cells, 2), PTF_25),
        ("duckdb", lambda cells: joins_peers.duckdb_offsets(cells, ("ra", "dec"), joins_peers.squares(2)), PTF_25),
        ("duckdb", lambda cells: joins_peers.duckdb_positions(cells, joins_peers.squares(2)), PTF_25),
        ("sklearn", lambda cells: joins_peers.ball_tree(cells, ("ra", "dec"), 2), PTF_25),
    ],
)
def test_peers_answer_the_same_question(package: str, make: Any, shape: Shape) -> None:
    if not has(package):
        pytest.skip(f"{package} is not installed")
    cells = detections(600)
    prepared = make(cells)
    by_hand(cells, shape).check(prepared.fetch(), package)
    prepared.action()


def test_places_of_trees() -> None:
    if not has("scipy"):
        pytest.skip("scipy is not installed")
    random = np.random.default_rng(4)
    drawn = np.unique(random.integers(0, 30, (400, 2)), axis=0)
    cells = {"long": np.ascontiguousarray(drawn[:, 0]), "lat": np.ascontiguousarray(drawn[:, 1])}
    apart = np.abs(drawn[:, None] - drawn[None]).max(axis=2)
    wanted = Answer((apart <= 1).sum(axis=1))
    wanted.check(neighbours(cells, GEO), "the kernels")
    wanted.check(joins_peers.tree_of_pairs(cells, ("long", "lat"), 1).fetch(), "cKDTree")


def test_wrong_answers_have_no_speed(tmp_path: Path) -> None:
    bench = JoinsBench(TINY, PEERS, tmp_path)
    right, wrong = Answer(np.array([1, 2])), Answer(np.array([1, 3]))
    with pytest.raises(DataError, match="counts and those of other disagree, got 1 of 2 cells"):
        raced(bench, "", {OURS: always(lambda: right), "other": always(lambda: wrong)}, 2)
    sums = Answer(np.array([1, 2]), np.array([1.0, 2.0]))
    with pytest.raises(DataError, match="sums and those of other disagree"):
        sums.check(Answer(np.array([1, 2]), np.array([1.0, 2.1])), "other")
    sums.check(Answer(np.array([1, 2])), "one that only counts")
    line = raced(bench, "", {OURS: always(lambda: right), "other": Prepared(lambda: None, lambda: right)}, 2)
    assert set(line.result.seconds) == {OURS, "other"}


def test_gains() -> None:
    line = Line("", 1, Result({OURS: 0.5, "peer": 5.0}))
    found = gain("a", "b", line, "peer", 8.0)
    assert (found.value, found.verdict, found.detail) == (10.0, "met", "windrow 500.0 ms, peer 5.00 s")
    assert gain("a", "b", line, "peer", 12.0).verdict == "not met"
    lacking = gain("a", "b", line, "other", 8.0)
    assert math.isnan(lacking.value)
    assert lacking.detail == "other is not installed"


def test_shapes_of_filters() -> None:
    disc, _, _, diamond = (case.footprint for case in CASES)
    assert disc.shape == (21, 21)
    assert disc.sum() == sum(i * i + j * j <= 100 for i in range(-10, 11) for j in range(-10, 11))
    assert diamond.sum() == 25


def test_made_chunks_lie_in_the_grid() -> None:
    chunks = made_chunks(500, 1, 0, 40)
    for number, low, high, length in zip(*chunks, LENGTHS, strict=True):
        assert (low >= 1 + number * length).all()
        assert (high <= (number + 1) * length).all()
        assert (low <= high).all()
    keys = list(zip(*(number.tolist() for number in chunks.numbers), strict=True))
    assert len(set(keys)) == len(keys)
    assert keys == sorted(keys)


def test_sections_are_those_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tuple(joins.SECTIONS) == SECTIONS["joins"]
    with pytest.raises(UnknownNameError, match="no such section"):
        joins.run(only=["nonsense"])
    monkeypatch.setattr(sections, "active_session", object)
    with pytest.raises(MachineError, match="a Spark session runs in this process"):
        joins.run(only=["spark"])
    assert "chunk-pairs" in done("bench", "joins", "--help")
    assert QUICK.detections < FULL.detections == 10**6
    assert FULL.pace.rounds == FULL.rounds


def test_a_run_with_the_peers_there_are(tmp_path: Path) -> None:
    said: list[str] = []
    chosen = ["ptf5", "ptf25", "geo", "store", "dense", "chunk-pairs"]
    report = joins.run_at(TINY, tmp_path, chosen, said.append)
    assert {table.section for table in report.tables} == set(chosen)
    assert {row.subject for row in report.targets.rows} == set(chosen)
    for table in report.tables:
        assert all(took >= 0 for line in table.lines for took in line.result.seconds.values())
    held = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert len(held["rows"]) == len(report.targets.rows) == 5 + 4 + 2 + 3 + 1 + 5 + 1
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("windrow-bench-")]


def test_a_run_without_peers_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "PEERS", tuple(replace(peer, package="windrow_has_no_such_peer") for peer in PEERS))
    said: list[str] = []
    report = joins.run_at(TINY, None, ["ptf5", "geo", "dense", "store"], said.append)
    assert report.missing_peers == [peer.name for peer in PEERS]
    assert all(row.verdict == "not measured" for row in report.targets.rows)


def test_stars_pair_as_a_tree_pairs_them() -> None:
    report = joins.run_at(TINY, None, ["sky"], lambda _: None)
    assert {row.subject for row in report.targets.rows} == {"sky"}


_TINY_RUN = """
import sys
from pathlib import Path
from windrow.bench.joins import run_at
from windrow.bench.joins.scale import JoinsScale
run_at(JoinsScale(1500, 300, 1000, 1, 3000, 1, 500, 40, 2000, 40), Path(sys.argv[1]), ["spark"], print)
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_run_on_spark(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _TINY_RUN, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    held = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    (table,) = held["tables"]
    assert set(table["lines"][0]["result"]["seconds"]) == {"1 worker", "2 workers", "Spark's join"}
    assert [row["what"][:9] for row in held["rows"]] == ["PTF-5 sto", "time of t"]
