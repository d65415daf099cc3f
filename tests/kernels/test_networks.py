"""Networks against sorting: every merge, and every rank of every window of a tile."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.order.network_code import NetworkCode
from windrow.kernels.order.networks import Network
from windrow.kernels.order.tiles import Tile, TileNetwork


def run(network: Network, inputs: Sequence[Any]) -> list[Any]:
    """The value of every node."""
    nodes = list(inputs)
    for one, other in network.pairs:
        nodes += [min(nodes[one], nodes[other]), max(nodes[one], nodes[other])]
    return nodes


@pytest.mark.parametrize(("one", "other"), list(itertools.product(range(7), range(7))))
def test_merging_sorted_lists(one: int, other: int) -> None:
    # By the zero-one principle, lists of zeros and ones show that a network merges everything.
    network = Network(one + other)
    merged = network.merge(range(one), range(one, one + other))
    for first, last in itertools.combinations(range(one + other + 1), 2):
        network.merge_ranks(range(one), range(one, one + other), first, last)
    for zeros, others in itertools.product(range(one + 1), range(other + 1)):
        inputs = [int(k >= zeros) for k in range(one)] + [int(k >= others) for k in range(other)]
        nodes = run(network, inputs)
        assert [nodes[k] for k in merged] == sorted(inputs)
        for first, last in itertools.combinations(range(one + other + 1), 2):
            ranks = network.merge_ranks(range(one), range(one, one + other), first, last)
            assert [nodes[k] for k in ranks] == sorted(inputs)[first:last]


@st.composite
def tiles(draw: st.DrawFn) -> tuple[Tile, int, int]:
    axes = draw(st.integers(1, 3))
    width = tuple(draw(st.lists(st.integers(1, 4), min_size=axes, max_size=axes)))
    outputs = tuple(draw(st.lists(st.integers(1, 4), min_size=axes, max_size=axes)))
    step = tuple(draw(st.lists(st.integers(1, 5), min_size=axes, max_size=axes)))
    first = draw(st.integers(0, int(np.prod(width)) - 1))
    last = draw(st.integers(first + 1, int(np.prod(width))))
    return Tile(width, outputs, step), first, last


def windows(tile: Tile, cells: Any) -> list[list[float]]:
    """The sorted window of each output of a tile, outputs in C order."""
    found = []
    for output in np.ndindex(*tile.outputs):
        box = tuple(slice(k * s, k * s + w) for k, s, w in zip(output, tile.step, tile.width, strict=True))
        found.append(sorted(cells[box].reshape(-1).tolist()))
    return found


@settings(deadline=None)
@given(tiles(), st.integers(0, 2**32 - 1))
def test_tiles_find_their_ranks(case: tuple[Tile, int, int], seed: int) -> None:
    tile, first, last = case
    network = TileNetwork(tile, first, last)
    cells = np.random.default_rng(seed).integers(0, 9, tile.cells).astype(float)
    nodes = run(network.network, cells.reshape(-1).tolist())
    found = [[nodes[k] for k in ranks] for ranks in network.results]
    assert found == [window[first:last] for window in windows(tile, cells)]


def test_sharing_saves_most_of_the_work() -> None:
    def steps(outputs: int) -> float:
        network = TileNetwork(Tile((30,), (outputs,), (1,)), 21, 22)
        return network.network.steps(network.outputs()) / outputs

    assert steps(16) < steps(1) / 6


def test_code_is_found_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from windrow.kernels.compiler import machine_code

    code = NetworkCode(Tile((4, 1), (2, 1), (1, 1)), 1, 2, 32, 1, 32, 4)
    monkeypatch.setattr(machine_code, "_cache_directory", lambda: tmp_path)
    monkeypatch.setattr(machine_code, "_loaded", {})
    assert not code.ready()
    address = code.address()
    assert code.ready()
    assert code.address() == address
    machine_code._loaded.clear()
    monkeypatch.setattr(machine_code, "_compiled", None)  # another process would find the file
    assert code.ready()
    assert code.address() != 0
    assert [file.suffix for file in tmp_path.iterdir()] == [".o"]


def test_code_survives_a_directory_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    from windrow.kernels.compiler import machine_code

    monkeypatch.setattr(machine_code, "_cache_directory", lambda: None)
    monkeypatch.setattr(machine_code, "_loaded", {})
    code = NetworkCode(Tile((3, 1), (1, 1), (1, 1)), 1, 2, 32, 1, 32, 4)
    assert not code.ready()
    assert code.address() != 0


def test_damaged_code_is_compiled_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from windrow.kernels.compiler import machine_code

    monkeypatch.setattr(machine_code, "_cache_directory", lambda: tmp_path)
    monkeypatch.setattr(machine_code, "_loaded", {})
    code = NetworkCode(Tile((5, 1), (1, 1), (1, 1)), 1, 2, 32, 1, 32, 4)
    code.address()
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    machine_code._loaded.clear()
    assert code.address() != 0
    assert file.read_bytes() == whole
