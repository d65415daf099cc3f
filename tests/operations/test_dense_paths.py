"""Totals of dense arrays by every path: folded, from blocks, and worked out in plain Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow as wr
from operations.totals_oracle import Asked, Cell, agrees, compute, group_cells
from windrow.execution.local import LocalExecutor
from windrow.expressions import tiles
from windrow.operations.query.fused import dense_runs

FLOATS = [0.0, -0.0, 1.5, -2.25, 0.1, 1e-3, 300.1, math.inf, -math.inf, math.nan, math.nan, 1e16, -1e16]
INTEGERS = [0, 1, -1, 5, 100, -128, 127]
LARGE = [2**63 - 1, -(2**63), 2**53 + 1, 7]
NAMES = ("i", "j", "k")


@dataclass(frozen=True)
class Problem:
    """An array, and a question to it."""

    schema: str
    shape: tuple[int, ...]
    values: dict[str, Any]
    asked: tuple[Asked, ...]
    groups: tuple[str, ...]
    condition: str = ""
    meets: Any = None
    box: tuple[tuple[int, int], ...] = ()

    @property
    def text(self) -> str:
        listed = ", ".join(f"{one.text} as r{number}" for number, one in enumerate(self.asked))
        conditions = [f"({self.condition})"] if self.condition else []
        for name, (lo, hi) in zip(NAMES, self.box, strict=False):
            conditions.append(f"{name} between {lo} and {hi}")
        where = f" where {' and '.join(conditions)}" if conditions else ""
        return f"select {listed} from A{where}" + (f" group by {', '.join(self.groups)}" if self.groups else "")

    def cells(self) -> list[Cell]:
        found = []
        for place in itertools.product(*map(range, self.shape)):
            inside = all(lo <= at <= hi for at, (lo, hi) in zip(place, self.box, strict=False))
            cell = dict(zip(NAMES, place, strict=False))
            for name in "fgnm":
                value = self.values[name][place].item()
                missing = value != value or (name == "n" and not self.values["n__valid"][place])
                cell[name] = None if missing else value
            if inside and (self.meets is None or self.meets(cell)):
                found.append(cell)
        return found


def _at(name: str) -> Any:
    return lambda cell: cell[name]


def _computed(cell: Cell) -> Any:
    if cell["f"] is None or cell["g"] is None:
        return None
    found = float(cell["f"]) * 1.8 - float(cell["g"])
    return None if found != found else found


FOLDED = [
    Asked("count(*)", _at("f"), "cells"),
    *(Asked(f"{kind}({name})", _at(name), kind) for kind in ("count", "sum", "avg", "min", "max") for name in "fgnm"),
    *(Asked(f"var({name})", _at(name), "var") for name in "fm"),
    *(Asked(f"{kind}(f * 1.8 - g)", _computed, kind) for kind in ("sum", "max", "count")),
]
RANKED = [Asked(f"median({name})", _at(name), "median") for name in "fgm"]
CONDITIONS: list[tuple[str, Any]] = [
    ("", None),
    ("f > 0.1", lambda c: c["f"] is not None and c["f"] > 0.1),
    ("not (f >= 300.1)", lambda c: c["f"] is not None and not c["f"] >= 300.1),
    ("f <> 0 and g is not null", lambda c: c["f"] is not None and c["f"] != 0 and c["g"] is not None),
    ("g between -2.25 and 1.5 or m = 5", lambda c: (c["g"] is not None and -2.25 <= c["g"] <= 1.5) or c["m"] == 5),
    ("f is null", lambda c: c["f"] is None),
    ("m < 0.5", lambda c: c["m"] < 0.5),
    ("f > 1e30 and f < -1e30", lambda c: False),
    ("n > 0 and m < 100", lambda c: c["n"] is not None and c["n"] > 0 and c["m"] < 100),
    ("not (n = 5 or n < 0)", lambda c: c["n"] is not None and not (c["n"] == 5 or c["n"] < 0)),
    ("n is null or n between 1 and 100", lambda c: c["n"] is None or 1 <= c["n"] <= 100),
    ("n is not null and f <> n", lambda c: c["n"] is not None and c["f"] is not None and c["f"] != float(c["n"])),
    ("not (n <> 1) or g is null", lambda c: c["n"] == 1 or c["g"] is None),
]


@st.composite
def problems(draw: st.DrawFn, pool: list[Asked]) -> Problem:
    dimensions = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 7)) for _ in range(dimensions))
    chunks = tuple(draw(st.integers(1, 5)) for _ in range(dimensions))
    small, wide = draw(st.sampled_from(["int8", "uint16", "int32"])), draw(st.sampled_from(["int64", "int16"]))
    seed = np.random.default_rng(draw(st.integers(0, 2**32)))
    tame = draw(st.booleans())
    floats = FLOATS[:7] if tame else FLOATS
    narrow = [number for number in INTEGERS if number >= 0 or small != "uint16"]
    large = LARGE if wide == "int64" and not draw(st.booleans()) else INTEGERS
    values: dict[str, Any] = {
        "f": seed.choice(floats, shape).astype(np.float32),
        "g": seed.choice(floats, shape),
        "n": seed.choice(np.array(large, object), shape).astype(wide),
        "n__valid": seed.random(shape) < 0.7,
        "m": seed.choice(narrow, shape).astype(small),
    }
    sides = [f"{n}=0:{extent - 1}:{size}" for n, extent, size in zip(NAMES, shape, chunks, strict=False)]
    schema = f"<f: float32, g: float64, n: {wide} null, m: {small}> [{', '.join(sides)}]"
    groups = tuple(draw(st.permutations(NAMES[:dimensions])))[: draw(st.integers(0, dimensions - 1))]
    condition, meets = draw(st.sampled_from(CONDITIONS if pool is FOLDED else CONDITIONS[:1]))
    box: tuple[tuple[int, int], ...] = ()
    if draw(st.booleans()):
        ends = [sorted((draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1)))) for n in shape]
        box = tuple((lo, hi) for lo, hi in ends)
    names = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=1 if pool is RANKED else 4, unique=True))
    return Problem(schema, shape, values, tuple(names), groups, condition, meets, box)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wr.Database]:
    with wr.connect(tmp_path_factory.mktemp("paths"), engine="local", progress=False, workers=2) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Borders of tiles and runs within arrays of a few cells."""
    monkeypatch.setattr(tiles, "TILE_CELLS", 5)
    monkeypatch.setattr(dense_runs, "LEAST_RUNS", 4)


def answer(database: wr.Database, problem: Problem, path: str, workers: int = 2) -> Any:
    """Rows by group, or the error."""
    engine = database.engine
    engine.path = path
    engine.local = LocalExecutor(workers, engine.memory, lambda *_: None, engine.cancellation)
    try:
        query = database.query(problem.text)
        found = query.compute()
    except wr.Error as error:
        return type(error), str(error).split(",")[0]
    finally:
        engine.path = "auto"
    results = [f"r{number}" for number in range(len(problem.asked))]
    if not hasattr(found, "column_names"):
        rows = {}
        for place in itertools.product(*(range(found.sizes[name]) for name in problem.groups)):
            one = found.isel(dict(zip(problem.groups, place, strict=True)))
            key = tuple(int(one[name]) for name in problem.groups)
            rows[key] = [_plain(one, name) for name in results]
        return rows
    listed = found.to_pylist()
    return {tuple(row[name] for name in problem.groups): [row[name] for name in results] for row in listed}


def _plain(one: Any, name: str) -> Any:
    present = one.get(f"{name}__valid")
    return None if present is not None and not bool(present) else one[name].item()


def check(database: wr.Database, problem: Problem, path: str) -> None:
    if "A" in database:
        database.drop("A")
    database.create("A", problem.schema).write(problem.values)
    found = answer(database, problem, path)
    blocks = answer(database, problem, "blocks")
    if isinstance(blocks, tuple):
        assert isinstance(found, tuple), (blocks, found)
        assert found[0] == blocks[0]
        return
    groups = group_cells(problem.cells(), problem.groups)
    if not problem.groups:
        groups.setdefault((), [])
    dense = not problem.condition
    assert found.keys() == blocks.keys()
    assert found.keys() == groups.keys() or (dense and groups.keys() <= found.keys())
    for key, cells in groups.items():
        for asked, mine, theirs in zip(problem.asked, found[key], blocks[key], strict=True):
            expected, within = compute(asked, cells)
            assert agrees(mine, expected, within), (asked.text, key, mine, expected)
            assert agrees(theirs, expected, within), (asked.text, key, theirs, expected)
            assert not (mine == 0 and math.copysign(1, mine) < 0 and asked.kind in ("min", "max", "median"))
    for workers in (1, 4):
        assert repr(answer(database, problem, path, workers)) == repr(found)


@given(problems(FOLDED))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_folds_agree_with_blocks_and_with_plain_python(database: wr.Database, problem: Problem) -> None:
    check(database, problem, "fused")


@given(problems(RANKED))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_ranks_agree_with_blocks_and_with_plain_python(database: wr.Database, problem: Problem) -> None:
    check_ranks(database, problem)


def check_ranks(database: wr.Database, problem: Problem) -> None:
    cells = math.prod(n for name, n in zip(NAMES, problem.shape, strict=False) if name not in problem.groups)
    if problem.box:
        sides = zip(NAMES, problem.box, strict=False)
        cells = math.prod(hi - lo + 1 for name, (lo, hi) in sides if name not in problem.groups)
    if cells > 1:
        check(database, problem, "ranks")


@pytest.mark.slow
@given(problems(FOLDED))
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_folds(database: wr.Database, problem: Problem) -> None:
    check(database, problem, "fused")


@pytest.mark.slow
@given(problems(RANKED))
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_ranks(database: wr.Database, problem: Problem) -> None:
    check_ranks(database, problem)
