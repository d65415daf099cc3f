"""Totals of sparse arrays by every path: folded part by part, from blocks, and worked out in plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import windrow as wr
from operations.test_dense_paths import (
    CONDITIONS,
    FLOATS,
    FOLDED,
    INTEGERS,
    LARGE,
    NAMES,
    RANKED,
    Problem,
    _at,
    _computed,
    answer,
)
from operations.totals_oracle import Asked, Cell, agrees, compute, group_cells
from windrow.execution.local import LocalExecutor
from windrow.kernels.folds import select
from windrow.operations.query.fused import cell_groups
from windrow.operations.query.run import fold_regrid
from windrow.storage import part_writing


class SparseProblem(Problem):
    """Cells here and there, of which some are deleted afterwards."""

    def table(self) -> pa.Table:
        return pa.table({name: self.values[name] for name in (*NAMES[: len(self.shape)], *"fgnm")})

    def cells(self) -> list[Cell]:
        found = []
        for row in self.table().to_pylist():
            cell = {name: None if value != value else value for name, value in row.items()}
            inside = all(lo <= cell[name] <= hi for name, (lo, hi) in zip(NAMES, self.box, strict=False))
            if cell["m"] != 100 and inside and (self.meets is None or self.meets(cell)):
                found.append(cell)
        return found


class RegridProblem(SparseProblem):
    """The same by blocks of some cells along each dimension."""

    steps: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        blocks = ", ".join(f"{name} {step}" for name, step in zip(NAMES, self.steps, strict=False))
        return f"{super().text} regrid ({blocks})"

    def cells(self) -> list[Cell]:
        names = NAMES[: len(self.shape)]
        return [
            {**cell, **{name: cell[name] // step for name, step in zip(names, self.steps, strict=True)}}
            for cell in super().cells()
        ]


@st.composite
def problems(draw: st.DrawFn, pool: list[Asked] = FOLDED, most: int = 4) -> SparseProblem:
    dimensions = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 9)) for _ in range(dimensions))
    chunks = tuple(draw(st.integers(1, 5)) for _ in range(dimensions))
    small, wide = draw(st.sampled_from(["int8", "uint8", "int32"])), draw(st.sampled_from(["int64", "int16"]))
    seed = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(0, min(40, math.prod(shape))))
    places = seed.permutation(math.prod(shape))[:count]
    floats = FLOATS[:7] if draw(st.booleans()) else FLOATS
    narrow = [number for number in INTEGERS if number >= 0 or small != "uint8"]
    large = LARGE if wide == "int64" and draw(st.booleans()) else INTEGERS
    values: dict[str, Any] = dict(zip(NAMES, np.unravel_index(places, shape), strict=False))
    values["f"] = pa.array(seed.choice(floats, count).astype(np.float32), from_pandas=True)
    values["g"] = pa.array(seed.choice(floats, count), from_pandas=True)
    numbers = seed.choice(np.array(large, object), count).astype(wide) if count else np.zeros(0, wide)
    values["n"] = pa.array(numbers, mask=seed.random(count) < 0.3)
    values["m"] = pa.array(seed.choice(narrow, count).astype(small))
    sides = [f"{n}=0:{extent - 1}:{size}" for n, extent, size in zip(NAMES, shape, chunks, strict=False)]
    schema = f"<f: float32, g: float64, n: {wide} null, m: {small}> [{', '.join(sides)}]"
    groups = tuple(draw(st.permutations(NAMES[:dimensions])))[: draw(st.integers(0, dimensions))]
    condition, meets = draw(st.sampled_from(CONDITIONS))
    box: tuple[tuple[int, int], ...] = ()
    if draw(st.booleans()):
        ends = [sorted((draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1)))) for n in shape]
        box = tuple((lo, hi) for lo, hi in ends)
    names = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=most, unique=True))
    return SparseProblem(schema, shape, values, tuple(names), groups, condition, meets, box)


@st.composite
def regrids(draw: st.DrawFn) -> RegridProblem:
    given = draw(problems())
    groups = NAMES[: len(given.shape)]
    asked = RegridProblem(given.schema, given.shape, given.values, given.asked, (), given.condition, given.meets, ())
    object.__setattr__(asked, "steps", tuple(draw(st.integers(1, 4)) for _ in groups))
    return asked


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wr.Database]:
    with wr.connect(tmp_path_factory.mktemp("paths"), engine="local", progress=False, workers=2) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several row groups and parts of a few cells."""
    monkeypatch.setattr(part_writing, "GROUP_CELLS", 4)
    monkeypatch.setattr(part_writing, "PART_BYTES", 2000)


def check(database: wr.Database, problem: SparseProblem, path: str = "fused") -> None:
    if "A" in database:
        database.drop("A")
    array = database.create("A", problem.schema, sparse=True)
    array.insert(problem.table())
    array.delete("m = 100")
    found, blocks = (answer(database, problem, one) for one in (path, "blocks"))
    if isinstance(blocks, tuple):
        assert isinstance(found, tuple)
        assert found[0] == blocks[0]
        return
    if isinstance(found, tuple):  # an empty array has no box
        assert "there are no cells" in found[1]
        assert not array.read().num_rows
        return
    compare(problem, problem.groups, found, blocks)
    for workers in (1, 4):
        assert repr(answer(database, problem, path, workers)) == repr(found)


def compare(problem: SparseProblem, keys: tuple[str, ...], found: Any, blocks: Any) -> None:
    """Rows by group, in the same order by both paths, with the results of plain Python."""
    groups = group_cells(problem.cells(), keys)
    if not keys:
        groups.setdefault((), [])
    assert list(found) == list(blocks)
    assert found.keys() == groups.keys()
    for key, cells in groups.items():
        for asked, mine, theirs in zip(problem.asked, found[key], blocks[key], strict=True):
            expected, within = compute(asked, cells)
            assert agrees(mine, expected, within), (asked.text, key, mine, expected)
            assert agrees(theirs, expected, within), (asked.text, key, theirs, expected)
            assert not (mine == 0 and math.copysign(1, mine) < 0 and asked.kind in ("min", "max", "median"))


def check_regrid(database: wr.Database, problem: RegridProblem) -> None:
    if "A" in database:
        database.drop("A")
    array = database.create("A", problem.schema, sparse=True)
    array.insert(problem.table())
    array.delete("m = 100")
    keys = NAMES[: len(problem.shape)]
    grouped = replace(problem, groups=keys)  # only to name the dimensions of the result
    object.__setattr__(grouped, "steps", problem.steps)

    def ask(path: str, workers: int = 2) -> Any:
        engine = database.engine
        engine.path, engine.local = path, LocalExecutor(workers, engine.memory, lambda *_: None, engine.cancellation)
        try:
            rows = database.query(problem.text).compute().to_pylist()
        except wr.Error as error:
            return type(error)
        finally:
            engine.path = "auto"
        return {tuple(row[n] for n in keys): [row[f"r{k}"] for k in range(len(problem.asked))] for row in rows}

    found, blocks = ask("fused"), ask("blocks")
    if isinstance(blocks, type):
        assert found is blocks
        return
    compare(grouped, keys, found, blocks)
    for workers in (1, 4):
        assert repr(ask("fused", workers)) == repr(found)


@given(problems())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_folds_agree_with_blocks_and_with_plain_python(database: wr.Database, problem: SparseProblem) -> None:
    check(database, problem)


@pytest.mark.slow
@given(problems())
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_folds(database: wr.Database, problem: SparseProblem) -> None:
    check(database, problem)


RANKS = [*RANKED, Asked("median(f * 1.8 - g)", _computed, "median"), Asked("median(n)", _at("n"), "median")]


@pytest.fixture(params=[0, 32])
def _short_groups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups parted by NumPy, and sorted one by one."""
    monkeypatch.setattr(select, "SHORT_GROUP", request.param)


@pytest.mark.usefixtures("_short_groups")
@given(problems(RANKS, 1))
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_ranks_agree_with_blocks_and_with_plain_python(database: wr.Database, problem: SparseProblem) -> None:
    check(database, problem, "ranks")


@pytest.mark.slow
@pytest.mark.usefixtures("_short_groups")
@given(problems(RANKS, 1))
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_ranks(database: wr.Database, problem: SparseProblem) -> None:
    check(database, problem, "ranks")


@pytest.mark.parametrize("longest", [0, 2**16])
@given(problem=regrids())
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_blocks_of_a_regrid_are_folded_the_same(database: wr.Database, longest: int, problem: RegridProblem) -> None:
    before = cell_groups.LONGEST_TABLE
    cell_groups.LONGEST_TABLE = longest  # places that are looked up, and such that are computed
    try:
        check_regrid(database, problem)
    finally:
        cell_groups.LONGEST_TABLE = before


@pytest.mark.slow
@given(regrids())
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_regrids(database: wr.Database, problem: RegridProblem) -> None:
    check_regrid(database, problem)


def test_several_quantiles_in_one_pass(database: wr.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_writing, "GROUP_CELLS", 1000)
    monkeypatch.setattr(part_writing, "PART_BYTES", 20_000)
    array = database.create("Q", "<v: int32> [x=0:99:10, y=0:99:10]", sparse=True)
    places = np.random.default_rng(2).permutation(10_000)[:6_000]
    array.insert(pa.table({"x": places // 100, "y": places % 100, "v": (places * 7919 % 1000).astype(np.int32)}))
    text = "select median(v) as a, percentile(v, 70) as b, quantile_disc(v, 0.1) as c from Q group by {}"
    for keys in ("x", "y", "x, y"):
        found = {}
        for path in ("ranks", "blocks"):
            database.engine.path = path
            found[path] = database.query(text.format(keys)).compute()
        database.engine.path = "auto"
        assert found["ranks"].equals(found["blocks"])


def test_what_is_no_plain_regrid_is_not_folded(database: wr.Database) -> None:
    array = database.create("P", "<v: float64> [x=0:9:5, y=0:9:5]", sparse=True)
    x, y = np.divmod(np.arange(100), 10)
    array.insert(pa.table({"x": x, "y": y, "v": x / 7 + y}))
    database.create("D", "<v: float64> [x=0:9:5, y=0:9:5]").write({"v": (x / 7 + y).reshape(10, 10)})
    folded = {
        "select avg(v) as r, max(v) as m from P regrid (x 3, y 4)": True,
        "select avg(v) as r, max(v) as m from P where v > 3 regrid (x 3)": True,
        "select median(v) as r, max(v) as m from P regrid (x 3, y 4)": False,
        "select avg(v) as r, max(v) as m from P regrid (x 3, y 4) min count 9": False,
        "select avg(v) as r, max(v) as m from P regrid (x 3, y 4) boundary drop": False,
        "select avg(v) as r, max(v) as m from P window (x centred 3)": False,
        "select avg(v) as r, max(v) as m from D where v > 3 regrid (x 3)": False,
    }
    database.engine.path = "fused"
    try:
        for text, expected in folded.items():
            bound = database.query(text).bind()
            found = fold_regrid(database.engine, bound.source)
            assert (found is not None) is expected, text
            if found is not None:
                database.engine.path = "blocks"
                blocks = database.query(text).compute()
                database.engine.path = "fused"
                assert found.select(["x", "y", "m"]).equals(blocks.select(["x", "y", "m"]))
                np.testing.assert_allclose(found["r"].to_numpy(), blocks["r"].to_numpy(), rtol=1e-13)
    finally:
        database.engine.path = "auto"
