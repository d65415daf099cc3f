"""The frame benchmark: its frames and samples, its peers, its arithmetic, and a whole run at a tiny scale."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.runs import done
from windrow.bench import frames, sections
from windrow.bench.frames.kernels import FEW, SERIES, UNIQUE, Series, table_values, worst_ratio
from windrow.bench.frames.paper import FIGURES, RANKS, Figure, is_prime, prime_below, ranks, shape
from windrow.bench.frames.peers import PEERS, FramePeer, frame_peers
from windrow.bench.frames.race import (
    AUTO,
    FrameProblem,
    FrameSample,
    Spread,
    Way,
    check_frames,
    frame_methods,
    race_by_clock,
    sample_rows,
)
from windrow.bench.frames.scale import FULL, QUICK, FramesScale
from windrow.bench.frames.spark import check_sums, duckdb_target
from windrow.bench.race import Contender, Pace, Result
from windrow.bench.tables import Line, Table
from windrow.console.commands.benchmarks import SECTIONS
from windrow.errors import DataError, MachineError, UnknownNameError
from windrow.samples import rank_table, skewed_values

PACE = Pace(rounds=2, patience=0.01, sample=0.0005)
TINY = FramesScale(
    kernel_rows=600,
    kernel_pace=PACE,
    spark_rows=3000,
    spark_rounds=1,
    spark_width=50,
    percentile_rows=300,
    percentile_width=41,
    paper_rows=500,
    paper_pace=PACE,
    widths=(5, 50),
    paper_widths=(1, 100, 300),
)


def rows_of(problem: FrameProblem, row: int) -> list[int]:
    """The rows of one frame, by the words of the SQL."""
    if problem.spread is None:
        first, last = row - problem.width + 1, row
    else:
        before = row * problem.spread.factor % problem.spread.modulus
        first, last = row - before, row + problem.width - before
    return [other for other in range(problem.rows) if first <= other <= last]


@st.composite
def problems(draw: st.DrawFn, aggregate: str = "count_distinct") -> FrameProblem:
    rows, width = draw(st.integers(1, 40)), draw(st.integers(1, 12))
    values = np.arange(rows, dtype=np.int64) * 37 % 11
    spread = draw(st.sampled_from([None, Spread(7919, width), Spread(1_000_003, prime_below(width // 2))]))
    return FrameProblem(values, aggregate, width, spread)


# Frames and samples


@given(problems())
@settings(max_examples=50)
def test_frames_are_those_of_the_query(problem: FrameProblem) -> None:
    lo, hi = problem.bounds
    for row in range(problem.rows):
        assert [other for other in range(problem.rows) if lo[row] <= other < hi[row]] == rows_of(problem, row)
    assert problem.answer().tolist() == [len(set(problem.values[rows_of(problem, r)])) for r in range(problem.rows)]


@given(problems(), st.data())
@settings(max_examples=50)
def test_a_sample_is_a_part_of_the_whole(problem: FrameProblem, data: st.DataObject) -> None:
    sample = FrameSample(problem, data.draw(st.integers(1, problem.rows)))
    found = sample.evaluate(data.draw(st.sampled_from(["naive", "incremental"])))()
    assert found.tolist() == problem.answer("naive")[sample.frames].tolist()
    held = [len(rows_of(problem, row)) for row in range(problem.rows)]
    assert sample.factor == pytest.approx(sum(held) / sum(held[sample.frames]))


@pytest.mark.parametrize(
    ("fixed", "each", "rows"),
    [(0.0, 1e-6, 1_000_000), (0.0, 1e-5, 100_000), (0.0, 1e-2, 256), (0.05, 1e-5, 100_000), (5.0, 0.0, 256)],
)
def test_samples_grow_until_they_take_long_enough(
    fixed: float, each: float, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.process_time", lambda: clock[0])

    def prepare(rows: int) -> object:
        return lambda: clock.__setitem__(0, clock[0] + fixed + each * rows)

    found, compiling = sample_rows(prepare, 1_000_000, 256, Pace(1, 0, 1.0))  # type: ignore[arg-type]
    assert 0.4 * rows <= found <= rows
    assert compiling == pytest.approx(0, abs=1e-9)


def test_methods_agree_and_slow_ones_are_sampled() -> None:
    problem = FrameProblem(np.random.default_rng(1).integers(0, 9, 20_000), "mode", 500)
    ways = (Way("naive", "naive"), Way("tau 0.5", "incremental", 0.5), AUTO)
    naive, flushed, auto = frame_methods(problem, Pace(1, 0, 1e-6), ways)
    assert [naive.name, flushed.name, auto.name] == ["naive", "tau 0.5", "auto"]
    assert naive.factor > flushed.factor > auto.factor == 1


def test_a_wrong_answer_has_no_speed() -> None:
    problem = FrameProblem(np.array([1.5, 2.5]), "sum", 2)
    check_frames(problem, "naive", problem.answer(), problem.answer() * (1 + 1e-15))
    with pytest.raises(DataError, match="sum over frames of 2: auto and naive disagree"):
        check_frames(problem, "naive", problem.answer(), problem.answer() * (1 + 1e-9))
    with pytest.raises(DataError, match="disagree"):
        check_frames(replace(problem, aggregate="median"), "reuse", np.array([1.0]), np.array([1 + 1e-15]))
    check_sums("median", (1.0, 2.0), (1.0, 2.0))
    with pytest.raises(DataError, match="disagree"):
        check_sums("median", (1.0, 2.0), (1.0, 2.1))


def test_the_clock_stands_beside_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    processor, wall = [0.0], [0.0]
    monkeypatch.setattr("time.process_time", lambda: processor[0])
    monkeypatch.setattr("time.perf_counter", lambda: wall[0])

    def action() -> None:
        processor[0] += 1
        wall[0] += 3

    result, clock = race_by_clock([Contender("a", action, 4.0)], Pace(2, 1, 1))
    assert (result.seconds, clock) == ({"a": 4.0}, {"a": 12.0})


# Peers


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
@pytest.mark.parametrize("aggregate", ["sum", "count_distinct", "median", "mode"])
@pytest.mark.parametrize("spread", [None, Spread(7919, 20)], ids=["fixed", "random"])
def test_a_peer_computes_what_windrow_does(
    peer: FramePeer, aggregate: str, spread: Spread | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(peer.package)
    if peer.name == "polars":  # how many threads it has was decided when it was imported
        monkeypatch.setattr("polars.thread_pool_size", lambda: 1)
    problem = FrameProblem(np.random.default_rng(4).integers(0, 9, 200), aggregate, 20, spread)
    prepared = peer.make(problem)
    if prepared is None:
        assert (peer.name, spread is None) == ("polars", False)
        return
    prepared.action()
    theirs, ours = prepared.fetch(), problem.answer()
    if aggregate == "mode":  # of equally frequent values each may take another
        counts = [Counter(problem.values[rows_of(problem, row)].tolist()) for row in range(problem.rows)]
        theirs = np.array([count[value] for count, value in zip(counts, theirs, strict=True)])
        ours = np.array([count[value] for count, value in zip(counts, ours, strict=True)])
    np.testing.assert_allclose(theirs.astype(float), ours, rtol=1e-12)


def test_slow_peers_get_the_first_rows() -> None:
    pytest.importorskip("duckdb")
    problem = FrameProblem(np.random.default_rng(2).integers(0, 99, 5000), "median", 20)
    (part,) = frame_peers(problem, Pace(1, 0, 1e-9), PEERS[:1])
    assert part.factor == 5000 / 40
    (whole,) = frame_peers(problem, Pace(1, 0, 1e6), PEERS[:1])
    assert whole.factor == 1


# Targets


def test_the_kernels_targets() -> None:
    targets = {(each.aggregate, each.values): each.target for each in SERIES if not each.random}
    assert targets == {
        ("count_distinct", FEW): 100, ("count_distinct", UNIQUE): 20, ("median", FEW): 50, ("median", UNIQUE): 20,
        ("mode", FEW): 20,
    }  # fmt: skip
    assert {each.target for each in SERIES if each.random} == {30}
    assert np.unique(table_values(UNIQUE, 50)).tolist() == list(range(50))
    assert set(table_values(FEW, 5000).tolist()) == set(range(100))


def test_the_worst_width_is_judged() -> None:
    lines = [Line(f"W = {w}", w, Result({"auto": 1.0, "DuckDB": took})) for w, took in ((10, 30.0), (100, 19.0))]
    clocks = [{"auto": 1.0, "DuckDB": 60.0}, {"auto": 1.0, "DuckDB": 40.0}]
    row = worst_ratio(Series("mode", FEW, 20), 1000, lines, clocks)
    assert (row.value, row.verdict) == (19, "not met")
    assert "worst at W = 100" in row.what
    assert "W = 10 30× (by the clock 60×)" in row.detail
    alone = [replace(line, result=Result({"auto": 1.0})) for line in lines]
    assert worst_ratio(Series("mode", FEW, 20), 1000, alone, clocks).verdict == "not measured"


@pytest.mark.parametrize(
    ("aggregate", "ours", "theirs", "value", "met"),
    [
        ("count_distinct", 2.0, 3.0, 1.5, True),
        ("count_distinct", 2.0, 2.9, 1.45, False),
        ("median", 2.6, 2.0, 1.3, True),
        ("median", 2.7, 2.0, 1.35, False),
    ],
)
def test_targets_on_spark(aggregate: str, ours: float, theirs: float, value: float, met: bool) -> None:
    line = Line(aggregate, 1000, Result({"windrow": ours, "DuckDB": theirs}))
    row = duckdb_target(aggregate, 10, "in order", line, "")
    assert (row.value, row.met) == (pytest.approx(value), met)
    shuffled = duckdb_target(aggregate, 10, "shuffled", line, "")
    assert (shuffled.value, shuffled.target) == (row.value, 1.0 if aggregate == "median" else 1.5)
    missing = duckdb_target(aggregate, 10, "in order", Line(aggregate, 1, Result({"windrow": 1.0})), "")
    assert missing.verdict == "not measured"


# The paper


def test_primes() -> None:
    assert [prime_below(n) for n in (0, 1, 2, 5, 50, 500, 5000)] == [1, 1, 2, 5, 47, 499, 4999]
    assert [is_prime(n) for n in (0, 1, 2, 9, 49, 7919)] == [False, False, True, False, False, True]


@pytest.mark.parametrize("width", [1, 10, 100, 1000, 10_000])
def test_variable_frames_start_far_from_one_another(width: int) -> None:
    figure = next(figure for figure in FIGURES if figure.variable)
    problem = figure.problem(np.zeros(1000), width)
    spread = problem.spread
    assert spread is not None
    assert is_prime(spread.factor)
    assert spread.factor > 10 * spread.modulus
    before = problem.order - problem.bounds[0]
    assert np.abs(np.diff(before)).mean() >= spread.modulus // 3


def test_the_papers_tables() -> None:
    one, hundred, all_different = (rank_table(name, 1000) for name in RANKS)
    assert set(one[0].tolist()) == {1}
    assert one[1].tolist() != sorted(one[1].tolist()) == list(range(1000))
    assert hundred[1].tolist() == list(range(1000))
    assert len(set(hundred[0].tolist())) == 100
    assert len(set(all_different[0].tolist())) == 1000
    assert all_different[0].min() != all_different[1].min()


def test_ranks() -> None:
    a, b = np.array([2, 1, 2, 1, 2]), np.array([5, 6, 9, 1, 7])
    order = sorted(range(5), key=lambda row: (a[row], -b[row]))
    expected = [1 + sum(a[k] == a[row] and b[k] > b[row] for k in range(5)) for row in order]
    assert ranks(a, b).tolist() == expected == [1, 2, 1, 2, 3]


def curve(figure: Figure, *times: tuple[int, float, float]) -> Table:
    slow, fast = figure.methods[:2]
    lines = (Line(str(w), w, Result(dict.fromkeys(figure.methods, b) | {slow: a, fast: b})) for w, a, b in times)
    return Table("paper", "t", "", tuple(lines))


def figure_of(number: int) -> Figure:
    return next(figure for figure in FIGURES if figure.number == number and not figure.variable)


@pytest.mark.parametrize(
    ("times", "verdicts"),
    [
        (((10, 9, 9), (100, 10, 5), (10_000, 1000, 5)), [True, True, True]),
        (((10, 9, 9), (100, 10, 5), (10_000, 1000, 7)), [False, False, True]),
        (((10, 9, 9), (100, 10, 5), (10_000, 500, 5)), [True, False, True]),
        (((10, 9, 9), (100, 10, 5), (1000, 9, 5), (10_000, 1000, 5)), [True, True, False]),
    ],
)
def test_hash_tables_are_flat_and_gains_proportional(
    times: tuple[tuple[int, float, float], ...], verdicts: list[bool]
) -> None:
    figure = figure_of(4)
    assert [row.met for row in shape(figure, curve(figure, *times), 10_000_000)] == verdicts
    assert list(shape(replace(figure, variable=True), curve(figure, *times), 10_000_000)) == []


def test_the_lead_of_replace_must_grow_at_every_step() -> None:
    figure = figure_of(7)
    grows, falls = ((100, 10.0, 5.0), (1000, 100.0, 20.0)), ((10_000, 1000.0, 300.0),)
    assert all(row.met for row in shape(figure, curve(figure, *grows), 10_000))
    assert not any(row.met for row in shape(figure, curve(figure, *grows, *falls), 10_000))
    assert figure.stated == {10_000: 10.0}


# Whole runs


def test_sections_of_the_command_are_those_of_the_benchmark() -> None:
    assert tuple(frames.SECTIONS) == SECTIONS["frames"]
    assert "kernels" in done("bench", "frames", "--help")
    assert QUICK.kernel_rows < FULL.kernel_rows


def test_what_cannot_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="no such section"):
        frames.run(only=["nonsense"])
    monkeypatch.setattr(sections, "active_session", object)
    with pytest.raises(MachineError, match="a Spark session runs in this process"):
        frames.run(only=["spark"])


def test_a_run_without_peers_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "PEERS", tuple(replace(peer, package="windrow_has_no_such_peer") for peer in PEERS))
    said: list[str] = []
    report = frames.run_at(TINY, tmp_path, ["kernels", "paper"], said.append)
    assert report.missing_peers == ["DuckDB", "polars"]
    assert any("not installed" in text and "DuckDB" in text for text in said)
    assert {row.subject for row in report.targets.rows if row.verdict == "not measured"} == {"kernels"}
    assert {path.name for path in tmp_path.iterdir()} <= {
        "report.json", "report.md", "report.png", "kernels.png", "paper.png",
    }  # fmt: skip


def test_sections_with_the_peers_there_are() -> None:
    report = frames.run_at(TINY, None, ["kernels", "paper"], lambda _: None)
    assert len([table for table in report.tables if table.section == "kernels"]) == len(SERIES)
    titles = [table.title for table in report.tables if table.section == "paper"]
    assert [sum(f"Fig. {number}:" in title for title in titles) for number in range(2, 8)] == [1, 2, 2, 2, 2, 2]
    for table in report.tables:
        assert all(took > 0 for line in table.lines for took in line.result.seconds.values())
    assert all(row.value > 0 or math.isnan(row.value) for row in report.targets.rows)


def test_values_of_many_kinds_and_fractions_of_rows() -> None:
    report = frames.run_at(TINY, None, ["domains"], lambda _: None)
    assert [len(table.lines) for table in report.tables] == [8, 8, 8, 2, 2]
    assert all(row.target == 1.5 and row.value > 0 for row in report.targets.rows)
    assert len(report.targets.rows) == 4


def test_values_with_skew() -> None:
    even, skewed = (skewed_values(5000, 1000, exponent) for exponent in (0.0, 1.1))
    assert 0 <= min(even) <= max(even) < 1000
    assert 0 <= min(skewed) <= max(skewed) < 1000
    assert np.bincount(skewed).max() > 20 * np.bincount(even).max()
    with pytest.raises(DataError):
        skewed_values(10, 0)
    with pytest.raises(UnknownNameError, match="rank10M"):
        rank_table("rank101", 10)


_TINY_RUN = """
import sys
from pathlib import Path
from windrow.bench.frames import run_at
from windrow.bench.frames.scale import FramesScale
from windrow.bench.race import Pace
pace = Pace(2, 0.01, 0.0005)
run_at(FramesScale(600, pace, 3000, 1, 50, 300, 41, 500, pace), Path(sys.argv[1]), sys.argv[2:], print)
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_run_on_spark(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _TINY_RUN, str(tmp_path), "spark"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    held = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert len(held["tables"]) == 3
    contenders = [set(line["result"]["seconds"]) for table in held["tables"] for line in table["lines"]]
    assert contenders[-3:] == [{"windrow", "Spark"}] * 3
    assert all({"windrow", "floor"} <= each for each in contenders[:-3])
    assert held["rows"][0]["what"] == "start-up of the session"
    assert "CPU" in held["rows"][1]["detail"]
    assert {path.name for path in tmp_path.iterdir()} <= {"report.json", "report.md", "report.png"}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_one_partition_and_scalability_on_spark(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _TINY_RUN, str(tmp_path), "one-partition", "scalability"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    held = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [len(table["lines"]) for table in held["tables"]] == [6, 6, 3]
    assert all(
        {"windrow", "Spark"} <= set(line["result"]["seconds"]) for t in held["tables"][:2] for line in t["lines"]
    )
    assert all(len(line["result"]["seconds"]) == 4 for line in held["tables"][2]["lines"])
    judged = [row for row in held["rows"] if row["target"] is not None]
    assert len(judged) == 10 + 3
