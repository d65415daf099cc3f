"""Patch or rebuild: what is touched is counted by cells, both ways are taken, and no wrong guess lasts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from windrow.views import bring, cost
from windrow.views.estimate import Estimate

from .checking import Watched

QUERIES = {
    "neighbours": "select count(*) as n, sum(v) as s from A neighbours Linf(1)",
    "pairs": "select L.v - R.v as d from A L similarity join A R with shape L1(1)",
    "join": "select max(R.v) as m from A L similarity join A R with shape L1(2) group by L.i, L.j",
    "groups": "select sum(v) as s from A group by i, j",
    "window": "select sum(v) as s from A window (i centred 3, j centred 3)",
    "chosen": "select v * 2 as w from A where v > 0",
}


@pytest.fixture(autouse=True)
def fixed_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small views are rebuilt too if a batch touches most of them, and no measured time has a say in it."""
    monkeypatch.setattr(cost, "FIXED_CELLS", 8.0)
    monkeypatch.setattr(cost, "FURTHEST", 1.0)


def last(view: Any) -> dict[str, Any]:
    found: dict[str, Any] = view.history().to_pylist()[-1]
    return found


def share(row: dict[str, Any]) -> float:
    """What the history says."""
    said = re.match(r"([\d.]+)% of the results are touched", row["why"])
    assert said, row["why"]
    return float(said[1]) / 100


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("kind", QUERIES)
def test_both_ways_are_announced_and_taken(local: Any, kind: str, sparse: bool) -> None:
    watched = Watched(local)
    array = local.create("A", "<v: int64> [i=0:19:5, j=0:19:5]", sparse=sparse)
    i, j = (axis.reshape(-1) for axis in np.indices((20, 20)))
    array.insert({"i": i, "j": j, "v": i + j + 1})
    view = watched.view("V", QUERIES[kind])
    array.insert({"i": [3], "j": [4], "v": [70]})
    watched.check()
    assert (last(view)["planned"], last(view)["way"]) == ("patch", "patched")
    array.insert({"i": i, "j": j, "v": i * j + 5})
    watched.check()
    assert (last(view)["planned"], last(view)["way"]) == ("rebuild", "rebuilt")
    assert share(last(view)) > cost.WORTH
    array.insert({"i": [19], "j": [0], "v": [80]})
    watched.check()
    assert (last(view)["planned"], last(view)["way"]) == ("patch", "patched")


def test_cells_that_lie_all_over_are_counted_and_not_what_lies_between(local: Any) -> None:
    """300 cells anywhere among 100,000: a few boxes that hold them hold nearly all, and few results are touched."""
    random = np.random.default_rng(0)
    array = local.create("A", "<v: float64> [i=0:999:100, j=0:999:100]", sparse=True)
    places = random.choice(1_000_000, 100_000, replace=False)
    array.insert({"i": places // 1000, "j": places % 1000, "v": places * 1.0})
    view = local.create_view("V", "select count(*) as n, sum(v) as s from A neighbours L1(1)")
    for _ in range(2):
        places = random.choice(1_000_000, 300, replace=False)
        array.insert({"i": places // 1000, "j": places % 1000, "v": places * -1.0})
        row = last(view)
        assert (row["planned"], row["way"]) == ("patch", "patched")
        truth = row["touched"] / view.read().num_rows
        assert truth / 1.5 < share(row) < 1.5 * truth
    assert view.check().ok


def test_a_wrong_estimate_does_not_lead_to_rebuilding_for_ever(local: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some rebuilds in a row a patch is tried, and says what it takes."""
    monkeypatch.setattr(cost, "TRY_AFTER", 3)
    monkeypatch.setattr(bring, "estimate_touched", lambda *_: Estimate(100.0, 100.0))
    array = local.create("A", "<v: int64> [i=0:99:10]", sparse=True)
    array.insert({"i": np.arange(100), "v": np.arange(100)})
    view = local.create_view("V", "select sum(v) as s from A neighbours Linf(1)")
    rows = []
    for number in range(8):
        array.insert({"i": [50], "v": [1000 + number]})
        rows.append(last(view))
        assert view.check().ok
    ways = [row["way"] for row in rows]
    assert ways == [*["rebuilt"] * 3, "patched", *["rebuilt"] * 3, "patched"]
    assert all(row["way"] == {"patch": "patched", "rebuild": "rebuilt"}[row["planned"]] for row in rows)
    assert "a patch is tried" in rows[3]["why"]


def test_what_was_measured_corrects_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds are learned of each result that was expected: a patch that touched less than was thought took less."""
    monkeypatch.setattr(cost, "FURTHEST", 4.0)
    found = Estimate(1000.0, 1000.0)
    first = cost.choose("auto", found, {})
    assert first.rebuilds
    learned = first.learn({}, 1.0)
    for _ in range(cost.TRY_AFTER - 1):
        choice = cost.choose("auto", found, learned)
        assert choice.rebuilds
        learned = choice.learn(learned, 1.0)
    tried = cost.choose("auto", found, learned)
    assert not tried.rebuilds
    learned = tried.learn(learned, 0.01)
    assert not cost.choose("auto", found, learned).rebuilds
    slow = tried.learn({**learned, "patch": 8.0 / 1000}, 8.0)
    assert cost.choose("auto", found, slow).rebuilds
    for maintain in ("incremental", "strict", "full"):
        assert cost.choose(maintain, found, learned).rebuilds == (maintain == "full")
