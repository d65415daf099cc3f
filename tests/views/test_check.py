"""``check view``: each result is measured by its own rows, whatever stands elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .checking import damage_states, read

NEAR = "neighbours Linf(1)"
QUERIES = {
    "sum": f"select sum(v) as s from A {NEAR}",
    "avg": f"select avg(v) as s from A {NEAR}",
    "var": f"select var_pop(v) as s from A {NEAR}",
    "std": f"select std_pop(v) as s from A {NEAR}",
    "covar": f"select covar_pop(v, w) as s from A {NEAR}",
    "corr": f"select corr(v, w) as s from A {NEAR}",
    "wavg": f"select wavg(v, w) as s from A {NEAR}",
    "max": f"select max(v) as s from A {NEAR}",
    "median": f"select median(v) as s from A {NEAR}",
    "above": f"select 2 * s - 1 as t from (select sum(v) as s from A {NEAR})",
    "filtered": f"select s from (select sum(v) as s from A {NEAR}) where s > 1",
    "groups": "select sum(v) as s from A group by i",
    "pairs": "select sum(L.v * R.v) as s from A L similarity join A R with shape Linf(1) group by L.i",
    "of sums": f"select sum(s) as t from (select sum(v) as s from A {NEAR}) group by i",
}


def make(database: Any, query: str, **settings: Any) -> tuple[Any, Any]:
    """An array with an enormous value far away from the others, and a view whose states are in use."""
    array = database.create("A", "<v: float64, w: float64> [i=0:99:10, j=0:0]", sparse=True)
    places, rng = [1, 2, 3, 50, 51], np.random.default_rng(1)
    array.insert({"i": places, "j": [0] * 5, "v": [1.1, 2.3, 4.7, 1e30, 1.0], "w": rng.random(5)})
    view = database.create_view("V", query, maintain="incremental", **settings)
    array.insert({"i": [2, 4, 51], "j": [0] * 3, "v": [2.9, 5.3, -1e29], "w": rng.random(3)})
    return array, view


@pytest.mark.parametrize("kind", QUERIES)
def test_an_enormous_value_elsewhere_hides_nothing(local: Any, kind: str) -> None:
    _, view = make(local, QUERIES[kind])
    assert view.check().ok
    states = local.array("__windrow_state_V")
    floats = [attribute.name for attribute in states.schema.attributes if attribute.type.is_float]
    values = [name for name in floats if name.rsplit("_", 1)[-1] not in ("low", "error", "size", "drift")]
    damage_states(local, "V", {name: f"{name} * 1.001 + 0.01" for name in values}, "i < 10")
    checked = view.check()
    assert checked.damaged_states, checked
    assert not checked.ok
    view.refresh(full=True)
    assert view.check().ok


@pytest.mark.parametrize("query", ["sum", "above", "filtered"])
def test_a_wrong_result_is_seen_beside_an_enormous_one(local: Any, query: str) -> None:
    array, view = make(local, QUERIES[query])
    damage_states(local, "V", {"__windrow_0_x_high": "__windrow_0_x_high + 1000"}, "i < 10")
    array.insert({"i": [5], "j": [0], "v": [7.7], "w": [0.5]})
    assert any(abs(row[view.schema.attribute_names[0]]) > 1000 for row in read(view).to_pylist() if row["i"] < 10)
    assert view.check().differences.num_rows


@pytest.mark.parametrize("kind", [*QUERIES, "window", "regrid", "total"])
def test_rounding_is_no_fault(local: Any, kind: str) -> None:
    """Batches in any order, with values that cancel, leave views that are right to the last digits but a few."""
    more = {
        "window": "select sum(v) as s, avg(w) as a from A window (i centred 5)",
        "regrid": "select sum(v) as s, std(w) as a from A regrid (4, 1)",
        "total": "select sum(v) as s, avg(v) as a, var(w) as x from A",
    }
    array, view = make(local, (QUERIES | more)[kind])
    rng = np.random.default_rng(7)
    for _ in range(6):
        places = rng.choice(60, 12, replace=False)
        values = rng.normal(size=12) * 10.0 ** rng.integers(-3, 12, 12)
        array.insert({"i": places, "j": [0] * 12, "v": values, "w": rng.normal(size=12)})
        array.delete(f"i = {rng.integers(60)}")
        checked = view.check()
        assert checked.ok, checked
