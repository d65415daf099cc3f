"""Groups of pairs are patched by the pairs that came and left, not gathered again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.views.rules import grouped

PAIRS = "select count(*) as n, sum(R.x) as s, max(L.x) as m from A L similarity join A R with shape Linf(1)"


@pytest.fixture
def database(tmp_path: Path) -> Any:
    with wr.connect(tmp_path / "warehouse", engine="local", progress=False) as database:
        array = database.create("A", "<x: float64> [i=1:40:5, j=1:40:5]", sparse=True)
        places = np.random.default_rng(1).permutation(1600)[:700]
        array.insert({"i": places // 40 + 1, "j": places % 40 + 1, "x": places / 7})
        yield database


@pytest.mark.parametrize("by", ["", " group by L.i", " group by L.j"])
def test_once_a_group_has_a_state_it_is_not_gathered(database: Any, monkeypatch: Any, by: str) -> None:
    view = database.create_view("V", PAIRS + by)
    array = database.array("A")
    array.update({"x": "x + 1"})  # touches every group, and gives each its state
    gathered = []
    reduce = grouped.reduce_groups
    monkeypatch.setattr(grouped, "reduce_groups", lambda task: gathered.append(task) or reduce(task))
    array.insert({"i": [3, 4], "j": [7, 7], "x": [0.5, 0.25]})
    array.delete("i = 3 and j = 7")
    array.insert({"i": [3], "j": [7], "x": [0.125]})
    assert not gathered
    assert view.check().ok
    assert set(view.history().to_pydict()["way"][1:]) == {"patched"}


def test_the_largest_leaves(database: Any) -> None:
    view = database.create_view("V", PAIRS)
    array = database.array("A")
    array.insert({"i": [1], "j": [1], "x": [1e9]})
    array.delete("x = 1e9")
    assert view.check().ok
    array.delete()
    assert view.read().to_pydict() == {"n": [0], "s": [None], "m": [None]}
    array.insert({"i": [1, 1], "j": [1, 2], "x": [1.0, 2.0]})
    assert view.read().to_pydict() == {"n": [4], "s": [6.0], "m": [2.0]}


def test_what_is_said_of_it_beforehand(database: Any) -> None:
    told = str(database.explain_view(f"{PAIRS} group by L.i"))
    assert told.count("patched:") == 3
    told = str(database.explain_view(f"{PAIRS.replace('max', 'median')} group by L.i"))
    assert "m of a group of pairs cannot be told from what is known of its cells" in told
    database.create_view("V", PAIRS, maintain="strict")
    with pytest.raises(wr.SchemaError, match="strict"):
        database.create_view("W", PAIRS.replace("max", "median"), maintain="strict")
