"""The window benchmark: its samples, its peers, its arithmetic, and a whole run at a tiny scale."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.runs import done
from windrow.bench import windows
from windrow.bench.race import (
    METHODS,
    Contender,
    Pace,
    Problem,
    Result,
    Slab,
    check_agreement,
    mean_width,
    methods,
    race,
)
from windrow.bench.report import Measurement, Report
from windrow.bench.tables import METHOD_RATIOS, SPEED_UP, Line, Table, TableReport, align_columns
from windrow.bench.windows.choices import CHOSEN
from windrow.bench.windows.memory import high_water
from windrow.bench.windows.papers import ARRAYS, PUBLISHED, Published, measure_published, proportionality
from windrow.bench.windows.peers import PEERS, Peer, peer_contenders
from windrow.bench.windows.scale import FULL, QUICK, Bench, Scale
from windrow.bench.windows.targets import remove_values, spike_error
from windrow.console.commands.benchmarks import SECTIONS
from windrow.errors import DataError, StoreError, UnknownNameError

PACE = Pace(rounds=2, patience=0.01, sample=0.001)
TINY = Scale(PACE, brief=True, shrink=20, steps=130, rounds=1, decades=130, disk_bytes=0)


def bench_of(scale: Scale, peers: tuple[Peer, ...], folder: Path) -> Bench:
    return Bench(scale, peers, folder)


# Samples


@st.composite
def slabs(draw: st.DrawFn) -> Slab:
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    window = tuple(draw(st.integers(1, length)) for length in shape)
    axis = draw(st.integers(0, len(shape) - 1))
    rows = draw(st.integers(1, shape[axis] - window[axis] + 1))
    values = np.arange(math.prod(shape), dtype=np.float64).reshape(shape) * 37 % 11
    problem = Problem(values, "max", window, anchor=draw(st.sampled_from(["corner", "centred", "trailing"])))
    return Slab(problem, draw(st.sampled_from(METHODS)), axis, rows)


@given(slabs())
@settings(max_examples=50)
def test_a_sample_is_a_part_of_the_whole(slab: Slab) -> None:
    whole = slab.problem.answer("naive")
    part = whole[(slice(None),) * slab.axis + (slab.results,)]
    assert part.shape[slab.axis] == slab.rows
    assert np.array_equal(slab.evaluate()(), part)


@given(slabs())
@settings(max_examples=50)
def test_a_sample_is_scaled_by_the_cells_that_windows_cover(slab: Slab) -> None:
    problem = slab.problem
    covered = Problem(np.ones(problem.values.shape), "sum", problem.window, anchor=problem.anchor).answer("naive")
    part = covered[(slice(None),) * slab.axis + (slab.results,)]
    assert slab.factor == pytest.approx(covered.sum() / part.sum())


def test_slow_methods_are_sampled_and_all_agree() -> None:
    problem = Problem(np.random.default_rng(1).random((60, 50)), "sum", (20, 20))
    found = {contender.name: contender for contender in methods(problem, Pace(1, 0, 1e-6))}
    assert list(found) == list(METHODS)
    assert found["auto"].factor == 1
    assert found["naive"].factor > 1
    assert found["incremental"].factor > 1


def test_a_wrong_answer_has_no_speed() -> None:
    problem = Problem(np.ones((4, 4)), "max", (2, 2))
    answer = problem.answer()
    check_agreement(problem, "naive", answer, answer.copy())
    with pytest.raises(DataError, match="disagree"):
        check_agreement(problem, "naive", answer, answer + 1e-15)
    sums = replace(problem, aggregate="sum")
    check_agreement(sums, "naive", sums.answer(), sums.answer() + 1e-14)
    with pytest.raises(DataError, match="2×2"):
        check_agreement(sums, "naive", sums.answer(), sums.answer() + 1e-9)


# Races


def test_a_race_takes_turns_and_gives_up_on_the_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    calls: list[str] = []
    monkeypatch.setattr("time.process_time", lambda: clock[0])

    def runner(name: str, seconds: float) -> Contender:
        def action() -> None:
            clock[0] += seconds
            calls.append(name)

        return Contender(name, action, 10.0 if name == "slow" else 1.0)

    result = race([runner("quick", 0.25), runner("slow", 5.0)], Pace(5, 1.0, 1.0))
    assert "".join(name[0] for name in calls) == "qssqqsqq"
    assert result.seconds == {"quick": 0.25, "slow": 50.0}
    assert result.factors == {"slow": 10.0}


# Peers


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
@pytest.mark.parametrize("aggregate", ["sum", "avg", "min", "max", "percentile"])
@pytest.mark.parametrize("window", [(1, 7), (5, 7), (7,)], ids=str)
def test_a_peer_computes_what_windrow_does(
    peer: Peer, aggregate: str, window: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(peer.package)
    if peer.name == "polars":  # how many threads it has was decided when it was imported
        monkeypatch.setattr("polars.thread_pool_size", lambda: 1)
    shape = (40, 30)[-len(window) :]
    values = np.random.default_rng(4).random(shape)
    problem = Problem(values, aggregate, window, 50.0 if aggregate == "percentile" else None, peer.anchor)
    action = peer.make(problem)
    if action is None:
        return
    inside = tuple(slice(width, -width if length > 2 * width else None) for width, length in zip(window, shape))  # noqa: B905
    theirs: Any = np.asarray(action()).reshape(shape)[inside]
    assert theirs.size
    np.testing.assert_allclose(theirs, problem.answer()[inside], rtol=1e-9)


def offered(window: tuple[int, ...], aggregate: str) -> set[str]:
    shape = (20, 30, 40)[-len(window) :]
    problem = Problem(np.ones(shape), aggregate, window, 70.0 if aggregate == "percentile" else None)
    return {peer.name for peer in PEERS if peer.version and peer.make(problem) is not None}


def test_which_peers_take_part() -> None:
    installed = {peer.name for peer in PEERS if peer.version}
    assert {"pandas", "xarray"} <= installed
    assert offered((1, 1, 5), "sum") <= installed - {"OpenCV"}
    assert offered((5, 5, 5), "percentile") <= {"SciPy"}
    assert "xarray" not in offered((1, 1, 5), "percentile")
    assert offered((5, 5), "max") == installed & {"OpenCV", "SciPy", "xarray"}


def test_slow_peers_get_a_part_of_the_array() -> None:
    pandas = tuple(peer for peer in PEERS if peer.name == "pandas")
    problem = Problem(np.random.default_rng(2).random((300, 50)), "percentile", (1, 20), 70.0)
    (contender,) = peer_contenders(problem, Pace(1, 0, 1e-6), pandas)
    assert contender.factor == 300
    (whole,) = peer_contenders(problem, Pace(1, 0, 1e6), pandas)
    assert whole.factor == 1


def test_a_median_stands_in_for_another_percentile() -> None:
    bottleneck = next(peer for peer in PEERS if peer.name == "bottleneck")
    problem = Problem(np.ones(9), "percentile", (3,), 70.0)
    assert bottleneck.label(problem) == "bottleneck (median)"
    assert bottleneck.label(replace(problem, percent=50.0)) == "bottleneck"


# Tables


def line(naive: float, incremental: float, auto: float, paper: float | None, **peers: float) -> Line:
    result = Result({"naive": naive, "incremental": incremental, "auto": auto, **peers}, {"auto": 0.5}, {"naive": 8.0})
    return Line("5×5", 5, result, paper)


TABLE = Table("s", "A table", "About it.", (line(8, 2, 0.5, 3.5, SciPy=3, OpenCV=1), line(9, 3, 1, None)))


def test_ratios() -> None:
    first, second = TABLE.lines
    assert [first.ratio(ratio) for ratio in METHOD_RATIOS] == [4, 16, 2]
    assert [second.ratio(ratio) for ratio in METHOD_RATIOS] == [3, 9, None]


def test_a_table_shows_the_paper_beside_ours() -> None:
    rows = [[cell.strip() for cell in row.split("|")] for row in TABLE.to_markdown().splitlines() if "|" in row]
    header, _, first, second = rows
    place = header.index("the paper's")
    assert header[place - 1] == SPEED_UP.title
    assert (first[place - 1], first[place]) == ("4×", "3.5×")
    assert (second[place - 1], second[place]) == ("3×", "")
    assert "~8.00 s" in first
    text = TABLE.to_markdown()
    assert "the smallest part: naive 1/8" in text
    assert "not counted above, at most: auto 500.0 ms" in text
    assert "About it." in text


def test_aligned_tables_have_columns_of_one_width() -> None:
    made = align_columns(["a", "long title"], [["wide cell", "b"]])
    assert len({len(row) for row in made}) == 1


def test_report_files(tmp_path: Path) -> None:
    wider = replace(TABLE.lines[1], width=9)
    table = replace(TABLE, lines=(TABLE.lines[0], wider))
    rows = (Measurement("spark", "memory", 2.0, "GB", 1.5, "at most"), Measurement("scans", "sum", 2.0, "×", 1.0))
    report = TableReport(Report("a run", rows), (table,), {"SciPy": "1.0", "OpenCV": None})
    assert report.missing_peers == ["OpenCV"]
    written = {path.name for path in report.write(tmp_path)}
    held = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [row["met"] for row in held["rows"]] == [False, True]
    assert held["peers"] == {"SciPy": "1.0", "OpenCV": None}
    assert held["tables"][0]["lines"][0]["ratios"]["naive / auto"] == 16
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "OpenCV (not installed)" in text
    assert "| not met |" in text
    if "s.png" in written:
        assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
        assert "](s.png)" in text


# The papers


def test_the_papers_speed_ups_have_a_window_each() -> None:
    for published in PUBLISHED:
        assert len(published.speed_ups) in (0, len(published.windows))
        assert all(len(window) == len(ARRAYS[published.array].shape) for window in published.windows)


def stated(paper: str, place: str, aggregate: str, window: tuple[int, ...]) -> float | None:
    (found,) = (p for p in PUBLISHED if (p.paper, p.place, p.aggregate) == (paper, place, aggregate))
    return found.speed_up(window)


def test_the_docs_list_every_table_and_figure_and_a_brief_run_measures_each() -> None:
    measured = {(one.paper, one.place) for one in PUBLISHED}
    assert {(one.paper, one.place) for one in PUBLISHED if one.quick} == measured
    listed = set()
    for line in (Path(__file__).parents[2] / "docs" / "papers.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 and "bench windows --only paper-" in cells[2]:
            paper, _, places = cells[0].partition(", ")
            for kind, numbers in re.findall(r"(Table|Fig)[s.]* (\d+(?:(?:,| and) \d+)*)", places):
                short = {"Table": "Table", "Fig": "Fig."}[kind]
                listed |= {(paper, f"{short} {number}") for number in re.findall(r"\d+", numbers)}
    # Figures that draw a table's numbers are measured with it.
    drawn = {("001", "Fig. 10"), ("001", "Fig. 11"), ("002", "Fig. 10")}
    assert listed - drawn == measured
    assert drawn <= listed


def test_the_papers_numbers() -> None:
    assert stated("001", "Table 1", "percentile", (1, 1, 30)) == pytest.approx(41.01 / 3.04, abs=0.005)
    assert stated("001", "Table 2", "percentile", (5, 5, 5)) == pytest.approx(72.24 / 28.75, abs=0.005)
    assert stated("002", "Table 1", "avg", (50, 50)) == pytest.approx(39.89 / 0.3)
    assert stated("002", "Table 2", "max", (25, 25, 25)) == pytest.approx(88160 / 2040)
    assert stated("000", "Fig. 11", "min", (2500,)) == 17.9
    assert stated("000", "Fig. 11", "sum", (2500,)) == 12.5
    assert stated("000", "Fig. 11", "sum", (100,)) is None
    assert stated("002", "Table 3", "avg", (40, 10)) is None


@pytest.mark.parametrize(("length", "width"), [(80, 60), (5, 5), (7, 1), (6, 9)])
def test_mean_width(length: int, width: int) -> None:
    cells = [len(range(start, min(start + width, length))) for start in range(length)]
    assert mean_width(length, width) == pytest.approx(np.mean(cells))


def series(*times: tuple[int, float, float]) -> Table:
    lines = (Line(str(w), w, Result({"naive": slow, "incremental": fast, "auto": 1})) for w, slow, fast in times)
    return Table("s", "t", "", tuple(lines))


@pytest.mark.parametrize(
    ("times", "verdicts"),
    [
        (((100, 10, 5), (2500, 250, 5)), [True, True]),
        (((100, 10, 5), (2500, 250, 7)), [False, False]),
        (((100, 10, 5), (2500, 100, 5)), [True, False]),
    ],
)
def test_flat_and_proportional(times: tuple[tuple[int, float, float], ...], verdicts: list[bool]) -> None:
    published = Published("000", "Fig. 11", "arr1D", "min", ((100,), (2500,)))
    assert [row.met for row in proportionality(published, series(*times), 1_000_000)] == verdicts


def test_only_swept_widths_are_judged() -> None:
    published = Published("002", "Table 3", "2-D", "avg", ((40, 10), (40, 40), (40, 80)))
    lines = tuple(
        Line(f"40×{w}", w, Result({"naive": slow, "incremental": fast, "auto": 1}))
        for w, slow, fast in ((10, 1, 1), (40, 40, 4), (80, 80, 4))
    )
    flat, proportional = proportionality(published, Table("s", "t", "", lines), 10_000)
    assert flat.value == 1
    assert proportional.value == pytest.approx(1, abs=0.05)
    square = Published("002", "Table 1", "2-D", "avg", ((5, 5), (10, 10)))
    assert list(proportionality(square, Table("s", "t", "", lines), 10_000)) == []


# Whole runs


def test_sections_of_the_command_are_those_of_the_benchmark() -> None:
    assert tuple(windows.SECTIONS) == SECTIONS["windows"]
    assert set(windows.ON_SPARK) < set(SECTIONS["windows"])
    assert "store-to-store" in done("bench", "windows", "--help")


def test_an_unknown_section_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="no such section"):
        windows.run(only=["nonsense"])


def test_too_little_disk_is_refused(tmp_path: Path) -> None:
    greedy = replace(TINY, disk_bytes=10**18)
    windows._check_disk(greedy, tmp_path, ["scans"])
    with pytest.raises(StoreError, match="GB of disk"):
        windows._check_disk(greedy, tmp_path, ["decades"])


def test_a_brief_run_measures_the_ends() -> None:
    brief, whole = (bench_of(scale, (), Path()) for scale in (QUICK, FULL))
    assert brief.choose_cases([1, 2, 3]) == [1, 3]
    assert brief.choose_cases([1]) == [1]
    assert whole.choose_cases([1, 2, 3]) == [1, 2, 3]
    assert whole.shrink_shape((1000, 30)) == (1000, 30)
    assert bench_of(TINY, (), Path()).shrink_shape((1000, 30)) == (50, 1)


def test_missing_values_and_spikes(tmp_path: Path) -> None:
    problem = remove_values(Problem(np.ones((100, 100)), "sum", (3, 3)))
    assert 0.05 < np.isnan(problem.values).mean() < 0.15
    row = spike_error(bench_of(TINY, (), tmp_path))
    assert row.met


def test_a_published_table_without_peers(tmp_path: Path) -> None:
    (published,) = (p for p in PUBLISHED if (p.place, p.aggregate) == ("Fig. 11", "sum"))
    table = measure_published(bench_of(TINY, (), tmp_path), published)
    assert [each.case for each in table.lines] == ["100", "2500"]
    assert [each.paper for each in table.lines] == [None, 12.5]
    assert table.contenders == list(METHODS)
    assert len(list(proportionality(published, table, 50_000))) == 2
    assert "on 50,000" in table.title


IN_PROCESS = [section for section in windows.SECTIONS if section not in windows.ON_SPARK]


def test_a_run_without_peers_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = tuple(replace(peer, package="windrow_has_no_such_peer") for peer in PEERS)
    monkeypatch.setattr(windows, "PEERS", absent)
    said: list[str] = []
    sections = ["scans", "percentiles", "paper-001"]
    report = windows.run_at(TINY, tmp_path, sections, said.append)
    assert report.missing_peers == [peer.name for peer in PEERS]
    assert any("not installed" in text and "OpenCV" in text for text in said)
    unmeasured = [row for row in report.targets.rows if row.verdict == "not measured"]
    assert {row.subject for row in unmeasured} == {"scans", "percentiles"}
    held = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert sum(row["value"] is None for row in held["rows"]) == len(unmeasured)
    plots = {f"{section}.png" for section in sections}
    assert {path.name for path in tmp_path.iterdir()} <= {"report.json", "report.md", "report.png"} | plots


def whats(report: TableReport) -> list[str]:
    return [row.what for row in report.targets.rows]


@pytest.mark.parametrize(
    "section", [pytest.param(one, marks=pytest.mark.slow) if one == "choices" else one for one in IN_PROCESS]
)
def test_each_section_with_the_peers_there_are(section: str) -> None:
    report = windows.run_at(TINY, None, [section], lambda _: None)
    assert {table.section for table in report.tables} == {section}
    raced = {name for table in report.tables for name in table.contenders}
    assert raced & {*METHODS, "10 % missing", CHOSEN}
    assert all(took > 0 for table in report.tables for each in table.lines for took in each.result.seconds.values())
    # A small run says what it measured, not what a full one would have.
    assert not any("1,000×1,000" in text for text in (*(table.title for table in report.tables), *whats(report)))
    for row in report.targets.rows:
        assert row.value >= 0 or row.verdict == "not measured"


def test_high_water_is_at_least_what_was_touched() -> None:
    code = "import sys; held = bytearray(b'x') * 80_000_000; print('held', flush=True); sys.stdin.read()"
    for child in _child(code):
        assert (high_water(child.pid) or 10**9) > 80_000_000
    assert high_water(2**22 + 1) is None


def _child(code: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child
        child.communicate()


_TINY_RUN = """
import sys
from pathlib import Path
from windrow.bench.windows import run_at
from windrow.bench.race import Pace
from windrow.bench.windows.scale import Scale
scale = Scale(Pace(2, 0.01, 0.001), brief=True, shrink=20, steps=130, rounds=1, decades=130, disk_bytes=0)
run_at(scale, Path(sys.argv[1]), (), print)
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_whole_run(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _TINY_RUN, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    held = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    sections = set(windows.SECTIONS)
    assert {table["section"] for table in held["tables"]} == sections - {"decades"}
    judged = [row for row in held["rows"] if row["target"] is not None]
    assert {"missing", "scans", "spark", "000 Fig. 11"} <= {row["subject"] for row in judged}
    assert all(row["value"] is None or row["value"] > 0 for row in judged)
    assert "targets met" in done.stdout
    on_spark = [row["what"] for row in held["rows"] if row["subject"] == "spark"]
    assert len(on_spark) == 2
    assert all("14×7×130" in what for what in on_spark)
    plots = {f"{section}.png" for section in sections}
    assert {path.name for path in tmp_path.iterdir()} <= {"report.json", "report.md", "report.png"} | plots
