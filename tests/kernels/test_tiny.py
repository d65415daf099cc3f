"""Tiny inputs: answered without a compiler, and with the very bits that compiled code gives."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import DataError
from windrow.kernels.contract.geometry import most_cells
from windrow.kernels.contract.ranks import cont_ranks, percentile_ranks
from windrow.kernels.contract.sweeps import Sweep, VariableSweep
from windrow.kernels.tiny import tiny_windows
from windrow.kernels.windows import choose_windows, compute_windows

EVERY_AGGREGATE = """
import sys
import numpy as np
from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.registry import DEFINITIONS
from windrow.aggregates.columns import Column
from windrow.aggregates.windows import Evaluation
from windrow.kernels.contract.sweeps import Sweep

values = np.arange(9.0).reshape(3, 3)
for kind in (np.float64, np.float32, np.int64, bool):
    columns = {"x": Column(values.astype(kind)), "y": Column(values[::-1].astype(kind))}
    block = Evaluation(columns, (3, 3), [Sweep(0, 3, -1, 1)] * 2)
    for name, definition in DEFINITIONS.items():
        second = "y" if definition.arguments == 2 else None
        block.result(Aggregate(name, "x", 0.5 if definition.parameter else None, second=second)).filled()
print(sorted({"numba", "llvmlite"} & set(sys.modules)))
"""


def test_no_aggregate_of_a_tiny_array_loads_a_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", EVERY_AGGREGATE], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


NUMBERS = {
    "float64": [0.0, -0.0, 1.5, -2.0, 7.0, math.nan, math.inf, -math.inf],
    "float32": [0.0, -0.0, 1.5, -2.0, 7.0, math.nan, math.inf, -math.inf],
    "int64": [0, 1, -5, 2**53, -(2**53)],
    "uint8": [0, 1, 7, 255],
    "bool": [False, True],
    "datetime64[us]": [0, 5, -7, np.iinfo(np.int64).min],
}


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, Any, list[Sweep | VariableSweep]]:
    kind = draw(st.sampled_from(sorted(NUMBERS)))
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = generator.choice(np.array(NUMBERS[kind]), shape).astype(kind)
    present = generator.random(shape) < 0.7 if draw(st.booleans()) else None
    sweeps: list[Sweep | VariableSweep] = []
    for extent in shape:
        start, width = draw(st.integers(-4, 3)), draw(st.integers(1, 5))
        sweeps.append(Sweep(draw(st.integers(-1, 2)), extent, start, start + width - 1, draw(st.integers(1, 2))))
    if draw(st.booleans()):
        low = np.sort(generator.integers(0, shape[0], 4))
        sweeps[0] = VariableSweep(low, np.sort(low + generator.integers(-1, 3, 4)))
    return values, present, sweeps


def compiled_strategy(operation: str, sweeps: list[Sweep | VariableSweep]) -> str:
    if not all(isinstance(sweep, Sweep) for sweep in sweeps):
        return "incremental"
    return {"select": "direct", "distinct": "counters", "mode": "counters"}.get(operation, "scan")


@pytest.mark.parametrize("operation", ["count", "min", "max", "percentile", "median", "distinct", "mode", "sum"])
@settings(max_examples=40)
@given(problem=problems())
def test_tiny_and_compiled_results_are_the_same_bits(operation: str, problem: tuple[Any, Any, Any]) -> None:
    values, present, sweeps = problem
    kind = values.dtype.kind
    if (operation == "sum" and kind in "fM") or (operation == "median" and kind == "M"):
        return  # sums of floats are compared with exact ones elsewhere
    make, share = (cont_ranks, 0.4) if operation == "median" else (percentile_ranks, 40)
    ranks = make(share, most_cells(values.shape, sweeps))
    name = {"percentile": "select", "median": "select"}.get(operation, operation)
    tiny = tiny_windows(name, values, present, sweeps, ranks)
    fast = compute_windows(name, values, present, sweeps, ranks, strategy=compiled_strategy(name, sweeps))
    assert tiny.counts is not None
    there = tiny.counts > 0
    if fast.counts is not None:
        assert (fast.counts == tiny.counts).all()
    elif name == "select" and fast.exact.dtype.kind == "f":
        assert np.isnan(fast.exact[~there]).all()  # which says it
        assert fast.empty is None
    else:
        assert ((~there) == (fast.empty if fast.empty is not None else False)).all()
    if operation == "count":
        return
    one, other = (o.reals if operation in ("median", "distinct") else o.exact for o in (tiny, fast))
    assert np.asarray(other[there]).astype(one.dtype).tobytes() == one[there].tobytes()


def test_large_inputs_are_not_tiny() -> None:
    def chosen(shape: tuple[int, ...], sweeps: list[Sweep]) -> str:
        return choose_windows("max", shape, np.float64, sweeps).name

    assert chosen((3, 3), [Sweep(0, 3, 0, 1)] * 2) == "tiny"
    assert chosen((1000, 1000), [Sweep(0, 1000, 0, 1)] * 2) == "scan"
    assert chosen((1000, 1000), [Sweep(0, 2, 0, 1)] * 2) == "tiny"


def test_nothing_at_all() -> None:
    none = compute_windows("max", np.zeros((0, 3)), None, [Sweep(0, 2, 0, 1), Sweep(0, 3, 0, 1)])
    assert none.counts is not None
    assert none.counts.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert compute_windows("sum", np.zeros(3), None, [Sweep(0, 0, 0, 1)]).reals.shape == (0,)


def test_sums_of_any_sign_are_exact_until_they_overflow() -> None:
    values = np.array([2**62, 2**62 - 1, -(2**62), 2**62], np.int64)
    assert compute_windows("sum", values, None, [Sweep(0, 4, 0, 1)]).exact.tolist()[:2] == [2**63 - 1, -1]
    with pytest.raises(DataError, match="overflows int64"):
        compute_windows("sum", values + 1, None, [Sweep(0, 4, 0, 1)])
