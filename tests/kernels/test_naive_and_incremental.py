"""The simple methods against a twin in plain Python that knows nothing of them."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import DataError
from windrow.kernels.contract.geometry import most_cells, sweep_axis
from windrow.kernels.contract.ranks import cont_ranks, percentile_ranks
from windrow.kernels.contract.sweeps import AnySweep, Sweep, VariableSweep
from windrow.kernels.counting.counters import count_windows
from windrow.kernels.naive import naive_windows
from windrow.kernels.papers.incremental import incremental_windows
from windrow.kernels.scans.operations import scan_windows
from windrow.kernels.tiny import tiny_windows

METHODS: list[Callable[..., Any]] = [naive_windows, incremental_windows, tiny_windows]


def window(values: Any, present: Any, sweeps: Sequence[AnySweep], output: Sequence[int]) -> list[Any]:
    """The present values of one window, cell by cell."""
    ranges = []
    for extent, sweep, k in zip(values.shape, sweeps, output, strict=True):
        if isinstance(sweep, VariableSweep):
            lo, hi = int(sweep.lo[k]), int(sweep.hi[k])
        else:
            position = sweep.first + k * sweep.step
            lo, hi = position + sweep.start, position + sweep.stop
        ranges.append(range(max(lo, 0), min(hi, extent - 1) + 1))
    found = []
    for cell in itertools.product(*ranges):
        value = values[cell].item()
        if (present is None or present[cell]) and value == value:
            found.append(value)
    return found


def expected(operation: str, found: list[Any], ranks: Any) -> Any:
    ordered = sorted(found)
    if operation == "sum":
        return sum(map(Fraction, found)) if all(map(math.isfinite, found)) else sum(found)
    if operation == "squares":
        mean = sum(map(Fraction, found)) / len(found)
        return sum((Fraction(value) - mean) ** 2 for value in found)
    if operation in ("min", "max"):
        return ordered[0] if operation == "min" else ordered[-1]
    if operation == "select":
        return ordered[ranks.lower[len(found)]]
    if operation == "distinct":
        return len(set(found))
    counts = Counter(found)
    most = max(counts.values())
    return min(value for value, times in counts.items() if times == most)


extents = st.lists(st.integers(1, 6), min_size=1, max_size=3)


@st.composite
def sweeps_for(draw: st.DrawFn, shape: Sequence[int]) -> list[AnySweep]:
    sweeps: list[AnySweep] = []
    for extent in shape:
        start = draw(st.integers(-7, 5))
        width = draw(st.integers(1, 8))
        if draw(st.booleans()):
            sweeps.append(
                Sweep(
                    draw(st.integers(-2, 3)), draw(st.integers(1, 7)), start, start + width - 1, draw(st.integers(1, 4))
                )
            )
        else:
            lo = sorted(draw(st.lists(st.integers(-2, extent), min_size=1, max_size=5)))
            hi = sorted(max(low - 1, low + draw(st.integers(-1, 4))) for low in lo)
            sweeps.append(VariableSweep(np.array(lo, np.int64), np.array(hi, np.int64)))
    return sweeps


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, Any, list[AnySweep]]:
    shape = tuple(draw(extents))
    cells = math.prod(shape)
    kind = draw(st.sampled_from(["float", "spikes", "int", "masked"]))
    if kind in ("float", "spikes"):
        plain = st.sampled_from([0.0, 1.5, -2.0, 3.25, math.nan, 1e16 if kind == "spikes" else 7.0])
        values = np.array(draw(st.lists(plain, min_size=cells, max_size=cells))).reshape(shape)
        return values, None, draw(sweeps_for(shape))
    whole = draw(st.lists(st.integers(-3, 3), min_size=cells, max_size=cells))
    mask = draw(st.lists(st.booleans(), min_size=cells, max_size=cells)) if kind == "masked" else None
    present = None if mask is None else np.array(mask).reshape(shape)
    return np.array(whole, np.int64).reshape(shape), present, draw(sweeps_for(shape))


def check(run: Callable[..., Any], operation: str, problem: tuple[Any, Any, list[AnySweep]]) -> None:
    values, present, sweeps = problem
    ranks = percentile_ranks(70, most_cells(values.shape, sweeps))
    outcome = (
        run(operation, values, present, sweeps, ranks) if run in METHODS else run(operation, values, present, sweeps)
    )
    for output in itertools.product(*(range(sweep.count) for sweep in sweeps)):
        found = window(values, present, sweeps, output)
        assert outcome.counts[output] == len(found)
        if not found:
            continue
        wanted = expected(operation, found, ranks)
        if operation in ("sum", "squares") and values.dtype.kind == "f":
            size = sum(abs(Fraction(value)) for value in found)
            scale = size if operation == "sum" else sum(Fraction(value) ** 2 for value in found)
            assert abs(Fraction(float(outcome.reals[output])) - wanted) <= scale * Fraction(
                1, 10**9 if operation == "squares" else 10**12
            )
        elif operation == "squares":
            assert outcome.reals[output] == pytest.approx(float(wanted), abs=1e-9)
        elif operation == "distinct":
            assert outcome.reals[output] == wanted
        else:
            assert outcome.exact[output] == wanted


@pytest.mark.parametrize("operation", ["sum", "squares", "min", "max", "select", "distinct", "mode"])
@pytest.mark.parametrize("run", METHODS, ids=["naive", "incremental", "tiny"])
@settings(max_examples=60)
@given(problem=problems())
def test_every_window_is_right(run: Any, operation: str, problem: tuple[Any, Any, list[AnySweep]]) -> None:
    check(run, operation, problem)


@pytest.mark.parametrize("operation", ["distinct", "mode"])
@settings(max_examples=60)
@given(problem=problems())
def test_counters_are_right(operation: str, problem: tuple[Any, Any, list[AnySweep]]) -> None:
    check(count_windows, operation, problem)


@pytest.mark.parametrize("run", METHODS, ids=["naive", "incremental", "tiny"])
def test_figure_3_of_paper_002(run: Any) -> None:
    array = np.array([[4, 7, 3, 1, 8], [5, 2, 6, 2, 2], [3, 9, 3, 2, 4], [7, 7, 8, 2, 6]])
    result = run("max", array, None, [Sweep(0, 4, 0, 1), Sweep(0, 5, 0, 2)]).exact
    assert result.tolist() == [[7, 7, 8, 8, 8], [9, 9, 6, 4, 4], [9, 9, 8, 6, 6], [8, 8, 8, 6, 6]]


@pytest.mark.parametrize("run", METHODS, ids=["naive", "incremental", "tiny"])
def test_an_infinity_leaves_the_window_cleanly(run: Any) -> None:
    values = np.array([1.0, math.inf, 1.0, 2.0, -math.inf, 3.0, 4.0])
    sums = run("sum", values, None, [Sweep(0, 7, 0, 1)]).reals
    assert sums.tolist() == [math.inf, math.inf, 3.0, -math.inf, -math.inf, 7.0, 4.0]


@pytest.mark.parametrize("run", METHODS, ids=["naive", "incremental", "tiny"])
def test_an_integer_sum_that_overflows_is_an_error(run: Any) -> None:
    values = np.array([2**62, 2**62, 5], np.int64)
    with pytest.raises(DataError, match="overflows int64"):
        run("sum", values, None, [Sweep(0, 3, 0, 1)])


@pytest.mark.parametrize("run", METHODS, ids=["naive", "incremental", "tiny"])
def test_interpolation_between_two_ranks(run: Any) -> None:
    values = np.array([4.0, 1.0, 2.0, math.inf])
    result = run("select", values, None, [Sweep(0, 4, 0, 1)], cont_ranks(0.5, 2)).reals
    assert result.tolist() == [2.5, 1.5, math.inf, math.inf]


def test_the_widest_window_is_swept() -> None:
    assert sweep_axis((10, 20), [Sweep(0, 10, 0, 8), Sweep(0, 20, 0, 2)]) == 0
    assert sweep_axis((3, 20), [Sweep(0, 3, 0, 8), Sweep(0, 20, 0, 4)]) == 1


@pytest.mark.parametrize("run", [*METHODS, scan_windows], ids=["naive", "incremental", "tiny", "scan"])
@pytest.mark.parametrize("spike", [1.5, 1e16, math.inf])
@pytest.mark.parametrize("level", [0.0, 1.0, 300.0, 1e9])
def test_squares_stay_accurate_far_from_a_spike_and_from_zero(run: Any, spike: float, level: float) -> None:
    values = np.random.default_rng(2).normal(size=60) * (level != 0.0) + level
    values[5] = spike
    squares = run("squares", values, None, [Sweep(0, 60, 0, 2)]).reals
    for k in range(6, 58):
        window = [Fraction(value) for value in values[k : k + 3].tolist()]
        mean = sum(window) / 3
        exact = sum((value - mean) ** 2 for value in window)
        assert abs(Fraction(squares[k].item()) - exact) <= sum(value**2 for value in window) / 10**11


ALPHABETS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "different": lambda random, length: random.normal(size=length),
    "few": lambda random, length: random.choice([-math.inf, 0.0, 1.0, 2.0, math.inf], length),
    "runs": lambda random, length: np.repeat(random.integers(0, 9, length), 40)[:length].astype(float),
    "rising": lambda random, length: np.arange(length) + random.normal(size=length),
    "falling": lambda random, length: random.integers(-3, 4, length) - np.arange(length, dtype=np.int64),
    "extremes": lambda random, length: random.choice(np.array([-(2**63), -1, 0, 2**63 - 1], np.int64), length),
    "unsigned": lambda random, length: random.choice(np.array([0, 1, 2**63, 2**64 - 1], np.uint64), length),
}


@pytest.mark.parametrize("alphabet", ALPHABETS)
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), width=st.integers(1, 260), step=st.integers(1, 9), missing=st.booleans())
def test_long_series(alphabet: str, seed: int, width: int, step: int, missing: bool) -> None:
    """Leaves split and vanish, heaps and tables are laid out anew, over windows of many values."""
    random = np.random.default_rng(seed)
    values = ALPHABETS[alphabet](random, 400)
    present = random.random(400) < 0.8 if missing else np.ones(400, bool)
    sweeps = [Sweep(0, 400 // step, -(width // 2), width - width // 2 - 1, step)]
    ranks = percentile_ranks(70, min(width, 400))
    cells = [window(values, present, sweeps, (k,)) for k in range(sweeps[0].count)]
    # Compiling takes longer than all else, and only order knows of signs.
    for operation in ("select", "max") if alphabet == "unsigned" else ("select", "min", "max", "distinct", "mode"):
        outcome = incremental_windows(operation, values, present, sweeps, ranks)
        assert outcome.counts is not None
        assert outcome.counts.tolist() == [len(found) for found in cells]
        answers = outcome.reals if operation == "distinct" else outcome.exact
        for found, answer in zip(cells, answers.tolist(), strict=True):
            assert not found or answer == expected(operation, found, ranks)


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("cells", [1, 2, 15, 16, 17, 40, 900])
def test_naive_sorts_windows_of_any_length(dtype: str, cells: int) -> None:
    random = np.random.default_rng(cells)
    for values in (random.integers(-50, 50, cells), np.arange(cells), -np.arange(cells), np.ones(cells)):
        ranks = percentile_ranks(30, cells)
        outcome = naive_windows("select", values.astype(dtype), None, [Sweep(0, 1, 0, cells - 1)], ranks)
        assert outcome.exact.tolist() == [sorted(values.tolist())[ranks.lower[cells]]]
