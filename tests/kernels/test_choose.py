"""The one choice of strategies: the cheapest that can, the one asked for, what is said about both; and that every
strategy that can do a problem gives what every other gives.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import DataError, UnknownNameError
from windrow.kernels import windows
from windrow.kernels.choose import Cost, Strategy, check_strategy, choose
from windrow.kernels.contract.geometry import most_cells
from windrow.kernels.contract.ranks import RankTable, cont_ranks, percentile_ranks
from windrow.kernels.contract.sweeps import AnySweep, Sweep, VariableSweep
from windrow.kernels.frames import strategies as frame_strategies
from windrow.kernels.frames.methods import choose_frames, frame_outcome
from windrow.kernels.frames.spans import Spans, spans_of
from windrow.kernels.naive import naive_windows
from windrow.kernels.windows import choose_windows, compute_windows

# The mechanism, on sums of numbers


def strategy(name: str, nanoseconds: float, *, most: int = 10, start: float = 0.0, compiling: float = 0.0) -> Any:
    def can(problem: int) -> str | None:
        return None if problem <= most else f"{problem} is more than {most}"

    return Strategy(
        name, f"does it {name}ly", can, lambda problem: Cost(nanoseconds * problem, "", compiling),
        lambda problem, more: (name, problem + more), start,
    )  # fmt: skip


QUICK, SLOW, LARGE = strategy("quick", 2.0, most=5), strategy("slow", 9.0), strategy("large", 1.0, most=90, start=40.0)


def test_the_cheapest_that_can_is_taken_and_runs() -> None:
    chain = [SLOW, QUICK, LARGE]
    assert [choose(chain, size).run(1) for size in (3, 8, 80)] == [("quick", 4), ("large", 9), ("large", 81)]


def test_a_strategy_that_takes_longer_to_start_than_another_in_all_is_asked_nothing() -> None:
    def refuse(problem: int) -> Any:
        raise AssertionError("it was asked")

    heavy = Strategy("heavy", "with great effort", refuse, refuse, refuse, start=1e6)
    choice = choose([QUICK, heavy], 3)
    assert choice.name == "quick"
    assert "heavy  over 1 ms  with great effort" in str(choice)


def test_what_has_to_be_compiled_is_shared_by_calls_alike() -> None:
    compiled = strategy("compiled", 1.0, compiling=1000.0)
    assert choose([SLOW, compiled], 5).name == "slow"
    assert choose([SLOW, compiled], 10).name == "compiled"


def test_the_text_names_all_candidates_with_what_they_cost_or_why_they_cannot() -> None:
    lines = str(choose([SLOW, QUICK, LARGE], 8)).splitlines()
    assert lines == [
        "large, the cheapest of 2",
        "  large  8 ns + 40 ns to start  does it largely",
        "  slow   72 ns                  does it slowly",
        "  quick  cannot                 8 is more than 5",
    ]
    assert str(choose([SLOW, QUICK], 8)).startswith("slow, the only one that can\n")


def test_a_name_forces_one_and_the_others_are_still_listed() -> None:
    choice = choose([SLOW, QUICK, LARGE], 3, "slow")
    assert choice.run(1) == ("slow", 4)
    assert [line.split()[0] for line in str(choice).splitlines()] == ["slow,", "slow", "quick", "large"]
    assert "slow, as asked" in str(choice)


def test_mistakes_are_named() -> None:
    with pytest.raises(DataError, match=r"strategy quick cannot do 8: 8 is more than 5\. Can: slow, large"):
        choose([SLOW, QUICK, LARGE], 8, "quick")
    with pytest.raises(UnknownNameError, match=r"no strategy swift for 8\. There are slow, quick"):
        choose([SLOW, QUICK], 8, "swift")
    with pytest.raises(DataError, match="no strategy can do this, got quick: 8 is more than 5"):
        choose([QUICK], 8)
    with pytest.raises(UnknownNameError, match=r"no such strategy, got 'serise'\. Did you mean 'series'"):
        check_strategy("auto", "serise", windows.NAMES)
    with pytest.raises(DataError, match="under method auto only, got method='naive' and strategy='scan'"):
        check_strategy("naive", "scan", windows.NAMES)
    check_strategy("naive", "auto", windows.NAMES)


# Windows

NUMBERS: dict[str, list[Any]] = {
    "float64": [0.0, -0.0, 1.5, -2.0, 7.0, np.nan, np.inf, -np.inf],
    "float32": [0.0, 1.5, -2.0, 7.0, np.nan],
    "int64": [0, 1, -5, 2**40, -(2**40)],
    "uint8": [0, 1, 7, 255],
    "bool": [False, True],
    "datetime64[us]": [0, 5, -7, np.iinfo(np.int64).min],
}


@st.composite
def window_problems(draw: st.DrawFn) -> tuple[Any, Any, list[AnySweep]]:
    kind = draw(st.sampled_from(sorted(NUMBERS)))
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = generator.choice(np.array(NUMBERS[kind]), shape).astype(kind)
    present = generator.random(shape) < 0.7 if draw(st.booleans()) else None
    sweeps: list[AnySweep] = []
    for extent in shape:
        start, width = draw(st.integers(-4, 3)), draw(st.integers(1, {1: 9, 2: 4, 3: 2}[len(shape)]))
        sweeps.append(Sweep(draw(st.integers(-1, 2)), extent, start, start + width - 1, draw(st.integers(1, 2))))
    if draw(st.booleans()):
        low = np.sort(generator.integers(0, shape[0], 4))
        sweeps[0] = VariableSweep(low, np.sort(low + generator.integers(-1, 3, 4)))
    return values, present, sweeps


def counts_of(outcome: Any, values: Any, present: Any, sweeps: list[AnySweep]) -> Any:
    return outcome.counts if outcome.counts is not None else naive_windows("count", values, present, sweeps).counts


@pytest.mark.parametrize("operation", list(windows.CHAINS))
@settings(max_examples=40, deadline=None)
@given(problem=window_problems(), share=st.sampled_from([0.0, 0.4, 0.5, 1.0]), interpolates=st.booleans())
def test_every_strategy_for_windows_equals_naive(
    operation: str, problem: tuple[Any, Any, list[AnySweep]], share: float, interpolates: bool
) -> None:
    values, present, sweeps = problem
    kind = values.dtype.kind
    if kind == "M" and (operation in ("sum", "avg", "squares") or (operation == "select" and interpolates)):
        return  # there is no such aggregate
    make: Any = cont_ranks if interpolates else percentile_ranks
    most = most_cells(values.shape, sweeps)
    ranks: RankTable | None = make(share if interpolates else 100 * share, most) if operation == "select" else None
    primitive = "sum" if operation == "avg" else operation
    want = naive_windows(primitive, values, present, sweeps, ranks)
    assert want.counts is not None
    there = want.counts > 0
    choice = choose_windows(operation, values.shape, values.dtype, sweeps, ranks)
    for candidate in choice.candidates:
        name = candidate.strategy.name
        if choose_obstacle(operation, values, sweeps, ranks, name):
            with pytest.raises(DataError, match=f"strategy {name} cannot do"):
                compute_windows(primitive, values, present, sweeps, ranks, strategy=name)
            continue
        got = compute_windows(primitive, values, present, sweeps, ranks, strategy=name)
        if got.counts is not None:
            np.testing.assert_array_equal(got.counts, want.counts, err_msg=name)
        elif got.empty is not None:
            np.testing.assert_array_equal(got.empty, ~there, err_msg=name)
        check_window_values(name, primitive, ranks, got, want, there)


def choose_obstacle(operation: str, values: Any, sweeps: Any, ranks: Any, name: str) -> str | None:
    problem = windows.window_problem(operation, values.shape, values.dtype, sweeps, ranks)
    [named] = [one for one in windows.CHAINS[operation] if one.name == name]
    return named.can(problem)


def check_window_values(name: str, operation: str, ranks: Any, got: Any, want: Any, there: Any) -> None:
    if operation == "count":
        return
    reals = operation in ("sum", "squares", "distinct") or (ranks is not None and ranks.interpolates)
    one, other = (np.asarray(outcome.reals if reals else outcome.exact)[there] for outcome in (got, want))
    if one.dtype.kind == "M":
        one = one.view(np.int64)
    if operation in ("sum", "squares"):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=name)
    else:
        np.testing.assert_array_equal(one.astype(other.dtype), other, err_msg=name)


@pytest.mark.parametrize("operation", list(windows.CHAINS))
def test_the_explanation_of_windows_names_every_strategy(operation: str) -> None:
    ranks = percentile_ranks(50, 25) if operation == "select" else None
    for shape in ((4, 4), (500, 500)):
        choice = choose_windows(operation, shape, np.float64, [Sweep(0, shape[0], -2, 2)] * 2, ranks)
        named = [line.split()[0] for line in str(choice).splitlines()[1:]]
        assert sorted(named) == sorted(one.name for one in windows.CHAINS[operation])
        assert named[0] == choice.name


def test_calls_alike_share_a_choice() -> None:
    sweeps = [Sweep(0, 300, -2, 2)] * 2
    first = choose_windows("max", (300, 300), np.dtype(np.float64), sweeps)
    assert choose_windows("max", (300, 300), np.dtype(np.float64), list(sweeps)) is first
    assert choose_windows("max", (300, 301), np.dtype(np.float64), sweeps) is not first
    for share in (50, 60):
        choice = choose_windows("select", (300, 300), np.dtype(np.float64), sweeps, percentile_ranks(share, 25))
        assert choice.problem.ranks is not None
        assert choice.problem.ranks.slope == share / 100


TINY = """
import sys
import numpy as np
import windrow as wr
values, lo = np.arange(12.0) % 5, np.arange(12) - 3
for name in ("count", "sum", "avg", "var", "max", "median", "percentile(70)", "mode", "count_distinct"):
    wr.sliding(values.reshape(3, 4), name, (2, 2))
    wr.framed(values, name, lo, lo + 4)
print(sorted({"numba", "llvmlite"} & set(sys.modules)))
"""


def test_choosing_what_is_tiny_loads_no_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", TINY], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# Frames


@st.composite
def frame_problems(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], Spans]:
    """Few and many values, whole or not; frames that slide, jump, are of one length, or have rows cut out."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = draw(st.sampled_from([1, 30, 400, 1500]))
    values = random.integers(0, draw(st.sampled_from([1, 3, 50, 1000])), rows) * draw(
        st.sampled_from([1, 10**9, 2**50])
    )
    if draw(st.booleans()):
        values = values / 2
    frame = draw(st.sampled_from(["sliding", "one length", "any", "rising", "cut"]))
    if frame == "sliding":
        lo = np.arange(rows) - draw(st.integers(-3, 40))
        return values, spans_of(lo, lo + draw(st.sampled_from([1, 9, 33, 300])), rows)
    count = draw(st.integers(1, 200))
    lo = random.integers(-2, rows + 2, count)
    hi = lo + (7 if frame == "one length" else random.integers(-2, draw(st.sampled_from([3, 30, 500])), count))
    if frame == "rising":
        lo, hi = np.sort(lo), np.sort(hi)
    cut = np.sort(random.integers(0, rows + 1, (2, count)), 0) if frame == "cut" else None
    return values, spans_of(lo, hi, rows, None if cut is None else (cut[0], cut[1]))


@pytest.mark.parametrize("operation", list(frame_strategies.CHAINS))
@settings(max_examples=50, deadline=None)
@given(problem=frame_problems(), share=st.sampled_from([0.0, 0.3, 0.5, 1.0]), interpolates=st.booleans())
def test_every_strategy_for_frames_equals_naive(
    operation: str, problem: tuple[np.ndarray[Any, Any], Spans], share: float, interpolates: bool
) -> None:
    values, spans = problem
    if operation == "sum" and values.dtype.kind != "f" and np.abs(values).max(initial=0) > 2**45:
        values = values // 2**10  # sums that overflow are errors, which other tests see to
    ranks = None
    if operation == "select":
        ranks = cont_ranks(share, spans.most) if interpolates else percentile_ranks(100 * share, spans.most)
    want = frame_outcome(operation, values, spans, ranks, method="naive")
    filled = spans.sizes > 0
    choice = choose_frames(operation, values, spans, ranks)
    for candidate in choice.candidates:
        name = candidate.strategy.name
        if candidate.strategy.can(choice.problem) is not None:
            with pytest.raises(DataError, match=f"strategy {name} cannot do"):
                frame_outcome(operation, values, spans, ranks, strategy=name)
            continue
        got = frame_outcome(operation, values, spans, ranks, strategy=name)
        exact = operation in ("min", "max", "mode") or (operation == "select" and not interpolates)
        one, other = ((o.exact if exact else o.reals)[filled] for o in (got, want))
        if operation in ("sum", "squares"):
            scale = max(1.0, float(np.abs(values).max(initial=0))) ** (2 if operation == "squares" else 1)
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * scale, err_msg=name)
        else:
            np.testing.assert_array_equal(one, other, err_msg=name)


@pytest.mark.parametrize("operation", list(frame_strategies.CHAINS))
def test_the_explanation_of_frames_names_every_strategy(operation: str) -> None:
    values = np.arange(5000) * 7 % 50
    lo = np.arange(5000)
    for width in (3, 100):
        spans = spans_of(lo, lo + width, len(values))
        choice = choose_frames(operation, values, spans, cont_ranks(0.5, width) if operation == "select" else None)
        named = [line.split()[0] for line in str(choice).splitlines()[1:]]
        assert sorted(named) == sorted(one.name for one in frame_strategies.CHAINS[operation])
        assert choice.name == named[0]
