"""What is done to the arrays and views of the random search, and to their twins beside them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
from hypothesis import strategies as st

import windrow as wr

from .checking import assert_answer
from .definitions import DIMENSIONS, GROWING, NUMBERED, SKY, STORED_SHAPE
from .kinds import BREAKING, KINDS
from .worlds import (
    BOX,
    CONDITIONS,
    EVERY_SPARSE,
    LAST_NUMBER,
    LONGEST,
    SETS,
    WIDTH,
    World,
    as_table,
    blocks,
    drawn,
    drawn_points,
    drawn_twins,
    labels,
    table,
)

seeds = st.integers(0, 2**32 - 1)
names = st.sampled_from(("S", "T"))
sparse_names = st.sampled_from(EVERY_SPARSE)
every_name = st.sampled_from((*EVERY_SPARSE, "D"))
conditions = st.sampled_from(tuple(CONDITIONS))
MOST_VIEWS = 7


@dataclass(frozen=True)
class Change:
    """A method that changes something, by a name of its own, with the strategies of its arguments."""

    name: str
    method: str
    arguments: dict[str, st.SearchStrategy[Any]]
    possible: Callable[[Any], bool]


CHANGES: dict[str, Change] = {}
ON_SPARK = ("spark write", "stream")
"""Changes that need a session."""


def change(
    name: str, possible: Callable[[Any], bool] = lambda machine: True, /, **arguments: st.SearchStrategy[Any]
) -> Callable[[Any], Any]:
    def note(method: Any) -> Any:
        CHANGES[name] = Change(name, method.__name__, arguments, possible)
        return method

    return note


class Changes:
    """Methods of a machine that has a warehouse, its twin and views."""

    database: Any
    world: World
    directory: Any
    kept: dict[str, Any]
    batches: list[tuple[str, str]]
    session: Any

    # Views

    @change(
        "create view",
        lambda self: len(self.kept) < MOST_VIEWS,
        kind=st.sampled_from(list(KINDS)),
        seed=seeds,
        deferred=st.booleans(),
    )
    def create_view(self, kind: str, seed: int, deferred: bool) -> None:
        self.add_view(kind, seed, deferred)

    @change("drop view", lambda self: len(self.kept) > 3, seed=seeds)
    def drop_view(self, seed: int) -> None:
        """One that no view stands on."""
        used = frozenset[str]().union(*(kept.step.bases() for kept in self.kept.values()))
        free = sorted(set(self.kept) - used)
        # Of views on views there are many: more often than not it is one of them.
        above = [name for name in free if self.kept[name].kind in ("on a view", "diamond")]
        free = above if above and seed % 4 else free
        name = free[seed // 4 % len(free)]
        self.database.drop_view(name)
        del self.kept[name]

    @change("refresh full", full=st.just(True))
    @change("refresh", full=st.just(False))
    def refresh(self, full: bool) -> None:
        for name, kept in self.kept.items():
            if kept.answer is None and not full:
                continue
            view = self.database.view(name)
            if kept.kind == "fragile" and self.is_broken(kept):
                with pytest.raises(wr.Error, match="zero"):
                    view.refresh(full=full)
                assert view.stale
                continue
            view.refresh(full=full)
            assert not view.stale
            kept.version = -1
            kept.answer = self.answer(kept) if kept.deferred else None

    def is_broken(self, kept: Any) -> bool:
        """Whether a cell that breaks a fragile view is in an array that it reads."""
        return any(abs(row["m"]) == BREAKING for name in kept.step.bases() for row in self.world.sparse[name].values())

    @change("breaking", name=names, seed=seeds)
    def break_views(self, name: str, seed: int) -> None:
        """A cell comes of which some views cannot be computed, or those that came go."""
        broken = {place for place, row in self.world.sparse[name].items() if abs(row["m"]) == BREAKING}
        if broken:
            self.database.array(name).delete(f"abs(m) = {BREAKING}")
            self.world.sparse[name] = {p: row for p, row in self.world.sparse[name].items() if p not in broken}
            return
        random = np.random.default_rng(seed)
        cells = {BOX[int(random.integers(len(BOX)))]: drawn(random) | {"m": BREAKING}}
        hit = {
            view: kept
            for view, kept in self.kept.items()
            if kept.kind == "fragile" and kept.answer is None and name in kept.step.bases()
        }
        before = {view: self.answer(kept) for view, kept in hit.items()}
        if any(kept.on_failure == "refuse" for kept in hit.values()):
            with pytest.raises(wr.Error, match="breaks the view"):
                self.database.array(name).insert(table(cells))
            return
        self.database.array(name).insert(table(cells))
        self.world.put(name, cells)
        for view, kept in hit.items():
            kept.answer = before[view]
            assert self.database.view(view).stale
            assert self.database.view(view).history().to_pylist()[-1]["way"] == "failed"

    # Changes of sparse arrays

    def some(self, random: np.random.Generator, most: int = 8) -> dict[Any, Any]:
        count = int(random.integers(1, most))
        return {BOX[k]: drawn(random) for k in sorted(random.permutation(len(BOX))[:count])}

    @change("insert", name=names, seed=seeds)
    def insert(self, name: str, seed: int) -> None:
        cells = self.some(np.random.default_rng(seed))
        self.database.array(name).insert(table(cells))
        self.world.put(name, cells)

    @change("insert the same", name=names)
    def insert_the_same(self, name: str) -> None:
        cells = dict(list(self.world.sparse[name].items())[::2])
        versions = {view: self.database.view(view).version for view in self.kept}
        if cells:
            self.database.array(name).insert(table(cells))
        for view, version in versions.items():
            assert self.database.view(view).version == version, view

    @change("insert a file", name=names, seed=seeds)
    def insert_a_file(self, name: str, seed: int) -> None:
        cells = self.some(np.random.default_rng(seed))
        path = Path(self.directory.name, "cells.parquet")
        pq.write_table(table(cells), path)
        self.database.query(f"insert into {name} from '{path}'")
        self.world.put(name, cells)

    @change("grow", seed=seeds)
    def grow(self, seed: int) -> None:
        """Cells of the array that grows, some of them beyond its end."""
        random = np.random.default_rng(seed)
        last = min(LONGEST, self.world.reach[GROWING] + int(random.integers(0, 3)))
        count = int(random.integers(1, 6))
        places = [(int(random.integers(1, max(1, last) + 1)), int(random.integers(-2, 4))) for _ in range(count)]
        cells = {place: drawn(random) for place in places}
        self.database.array(GROWING).insert(table(cells, GROWING))
        self.world.put(GROWING, cells)

    @change("keep", seed=seeds)
    def keep(self, seed: int) -> None:
        """Cells that share their place with others, beside which they come."""
        random = np.random.default_rng(seed)
        rows = [
            row
            for row in drawn_twins(random)
            if self.world.next_number(NUMBERED, (row["i"], row["j"])) < LAST_NUMBER - 8
        ]
        if rows:
            self.database.array(NUMBERED).insert(as_table(rows, DIMENSIONS[NUMBERED]), on_duplicate="keep")
            self.world.keep(NUMBERED, rows)

    @change("points", name=st.sampled_from(SKY), seed=seeds)
    def observe(self, name: str, seed: int) -> None:
        """Points of the sphere come, and cells are numbered where several share one."""
        points = drawn_points(np.random.default_rng(seed))
        self.database.array(name).insert(as_table(points, DIMENSIONS[name], pa.float64()))
        self.world.keep(name, points)

    @change("delete all", name=sparse_names, condition=st.none())
    @change("delete", name=sparse_names, condition=conditions)
    def delete(self, name: str, condition: str | None) -> None:
        self.database.array(name).delete(condition)
        self.world.delete(name, condition)

    @change("update", name=every_name, sets=st.sampled_from(list(SETS)), condition=st.none() | conditions)
    def update(self, name: str, sets: Any, condition: str | None) -> None:
        self.database.array(name).update(dict(sets), condition)
        self.world.update(name, sets, condition)

    @change("come and go", name=names, seed=seeds)
    def come_and_go(self, name: str, seed: int) -> None:
        """What came and went inside a batch was never there; what was replaced twice is replaced once."""
        random = np.random.default_rng(seed)
        cells, last = self.some(random, 4), {}
        with self.database.batch() as batch:
            batch.insert(name, table(cells))
            for place in cells:
                batch.delete(name, f"i = {place[0]} and j = {place[1]}")
            if random.random() < 0.5:
                last = {place: drawn(random) for place in list(cells)[:2]}
                batch.insert(name, table(last))
        for place in cells:
            self.world.sparse[name].pop(place, None)
        self.world.put(name, last)

    @change("failing batch", seed=seeds, fails=st.just(True), condition=st.none() | conditions, looks=st.booleans())
    @change("batch", seed=seeds, fails=st.just(False), condition=st.none() | conditions, looks=st.booleans())
    def batch(self, seed: int, fails: bool, condition: str | None, looks: bool) -> None:
        """Several arrays in one batch, queries inside it, and batches that come to nothing."""
        random = np.random.default_rng(seed)
        before = self.world.copy()
        try:
            with self.database.batch() as batch:
                for name in ("S", "T", "S"):
                    cells = self.some(random, 5)
                    batch.insert(name, table(cells))
                    self.world.put(name, cells)
                if looks:
                    found = batch.query("select count(*) as n from S group by i").compute().to_pylist()
                    assert {row["i"]: row["n"] for row in found} == Counter(i for i, _ in self.world.sparse["S"])
                    self.look_inside(batch)
                batch.delete("T", condition)
                self.world.delete("T", condition)
                batch.update("D", {"m": "-m"}, "m > 1")
                self.world.update("D", (("m", "-m"),), "m > 1")
                if fails:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            self.world = before

    def look_inside(self, batch: Any) -> None:
        """Views show a batch what it changed so far."""
        for name, kept in self.kept.items():
            if kept.answer is None:
                assert_answer(batch.array(name), self.answer_in(kept, batch.array), kept.step.text())

    @change("seen before", name=names, seed=seeds)
    def seen_before(self, name: str, seed: int) -> None:
        """A batch id that was applied already changes nothing."""
        if self.batches:
            id_, name = self.batches[seed % len(self.batches)]
            self.database.array(name).insert(table(self.some(np.random.default_rng(seed))), batch=id_)
        else:
            cells = self.some(np.random.default_rng(seed))
            self.database.array(name).insert(table(cells), batch="night")
            self.batches.append(("night", name))
            self.world.put(name, cells)

    @change("into", name=names, condition=conditions)
    def store_into(self, name: str, condition: str) -> None:
        """``into`` replaces all that an array holds."""
        self.database.query(f"select * from {name} where not ({condition}) into {name}")
        kept = {}
        for place, row in self.world.sparse[name].items():
            unknown = ("c >" in condition and row["c"] is None) or ("x" in condition and row["x"] is None)
            if "c >" in condition and row["m"] % 2 != 0:
                unknown = False  # false and unknown is false
            if not unknown and not CONDITIONS[condition](row):
                kept[place] = row
        self.world.sparse[name] = kept

    @change("shape", seed=seeds)
    def change_the_shape(self, seed: int) -> None:
        """An offset of the array that is a shape comes or goes."""
        random = np.random.default_rng(seed)
        place = int(random.integers(-2, 3)), int(random.integers(-2, 3))
        array = self.database.array(STORED_SHAPE)
        if place in self.world.offsets:
            array.delete(f"i = {place[0]} and j = {place[1]}")
        else:
            array.insert({"i": [place[0]], "j": [place[1]], "flag": [True]})
        self.world.offsets ^= {place}

    @change("spark write", lambda self: self.session is not None, name=names, seed=seeds)
    def write_from_spark(self, name: str, seed: int) -> None:
        cells = self.some(np.random.default_rng(seed))
        self.database.array(name).insert(self.as_frame(cells))
        self.world.put(name, cells)

    @change("stream", lambda self: self.session is not None, name=names, seed=seeds)
    def stream(self, name: str, seed: int) -> None:
        """Two micro-batches, of which the second does not touch what the first brought."""
        self.streams += 1
        folder = Path(self.directory.name, f"stream{self.streams}")
        folder.mkdir()
        cells = self.some(np.random.default_rng(seed), 9)
        for number in range(2):
            part = dict(list(cells.items())[number::2])
            pq.write_table(table(part), folder / f"part{number}.parquet")
        rows = self.session.readStream.schema(FRAME).option("maxFilesPerTrigger", 1).parquet(str(folder))
        stream = rows.writeStream.foreachBatch(
            lambda frame, number: self.database.array(name).insert(frame, batch=f"{folder.name} {number}")
        )
        stream = stream.option("checkpointLocation", f"{folder}.checkpoint").trigger(availableNow=True).start()
        stream.awaitTermination()
        self.world.put(name, cells)

    def as_frame(self, cells: dict[Any, Any]) -> Any:
        rows = [(*place, *(row[name] for name in "xcms")) for place, row in cells.items()]
        return self.session.createDataFrame(rows, FRAME)

    # Changes of the dense array

    @change("one attribute", seed=seeds, one=st.just(True))
    @change("dense write", seed=seeds, one=st.just(False))
    def write(self, seed: int, one: bool) -> None:
        random = np.random.default_rng(seed)
        first = int(random.integers(0, len(self.world.days)))
        last = int(random.integers(first, len(self.world.days)))
        left = int(random.integers(0, WIDTH))
        rows = [[drawn(random, True) for _ in range(left, WIDTH)] for _ in range(first, last + 1)]
        values = blocks(rows)
        if one:
            values = {"c": values["c"]}
        self.database.array("D").write(values, at=(first + 1, left))
        for t, row in enumerate(rows, first):
            for y, cell in enumerate(row, left):
                old = self.world.slices[t][y]
                self.world.slices[t][y] = old | ({"c": cell["c"]} if one else cell)

    @change("load", seed=seeds)
    def load(self, seed: int) -> None:
        """All rows of the matrix, as text."""
        random = np.random.default_rng(seed)
        rows = [[drawn(random, True) for _ in range(WIDTH)] for _ in self.world.days]
        for row in rows:
            for cell in row:
                cell["x"] = None if cell["x"] is None or math.isinf(cell["x"]) else cell["x"]
        self.database.query("load D\n" + "\n".join(" ".join(_written(cell) for cell in row) for row in rows))
        self.world.slices = rows

    @change(
        "append",
        lambda self: len(self.world.days) < 9,
        seed=seeds,
        gaps=st.lists(st.integers(1, 4), min_size=1, max_size=2),
    )
    def append(self, seed: int, gaps: list[int]) -> None:
        random = np.random.default_rng(seed)
        days = [int(day) for day in self.world.days[-1] + np.cumsum(gaps)]
        rows = [[drawn(random, True) for _ in range(WIDTH)] for _ in days]
        self.database.array("D").append(blocks(rows), labels={"t": labels(days)})
        for day, row in zip(days, rows, strict=True):
            self.world.put_slice(day, row)

    @change("late slice", lambda self: len(self.world.days) < 9, seed=seeds)
    def late_slice(self, seed: int) -> None:
        """A day that is there is replaced, one that comes late goes where it belongs."""
        random = np.random.default_rng(seed)
        day = int(random.integers(self.world.days[0], self.world.days[-1] + 1))
        row = [drawn(random, True) for _ in range(WIDTH)]
        values = blocks([row])
        valid = ~values["c"].mask
        data = xr.Dataset(
            {
                "x": (("t", "y"), values["x"]),
                "c": (("t", "y"), values["c"].filled(0)),
                "c__valid": (("t", "y"), np.broadcast_to(valid, values["x"].shape)),
                "m": (("t", "y"), values["m"]),
            },
            coords={"t": labels([day]).astype("M8[ns]"), "y": np.arange(WIDTH)},
        )
        self.database.array("D").write(data)
        self.world.put_slice(day, row)
        for kept in self.kept.values():
            kept.version = -1

    @change("relabel", seed=seeds)
    def relabel(self, seed: int) -> None:
        gaps = np.random.default_rng(seed).integers(1, 5, len(self.world.days))
        self.world.days = [int(day) for day in np.cumsum(gaps)]
        self.database.array("D").set_labels("t", labels(self.world.days))
        for kept in self.kept.values():
            kept.version = -1  # the labels of a result are part of it

    # What changes no value

    @change("rechunk", name=every_name, chunk=st.integers(1, 4))
    @change("compact", name=every_name, chunk=st.none())
    def compact(self, name: str, chunk: int | None) -> None:
        first = DIMENSIONS[name][0]
        versions = {view: self.database.view(view).version for view in self.kept}
        self.database.array(name).compact(None if chunk is None else {first: chunk})
        assert versions == {view: self.database.view(view).version for view in self.kept}

    @change("compact a view", seed=seeds)
    def compact_a_view(self, seed: int) -> None:
        stored = [name for name in self.kept if self.database.view(name).schema.dimensions]
        if stored:
            self.database.view(stored[seed % len(stored)]).compact()
            for kept in self.kept.values():
                kept.version = -1

    @change("collect", keep=st.none() | st.integers(1, 3))
    def collect(self, keep: int | None) -> None:
        self.database.collect_garbage(keep_versions=keep)

    @change("reopen")
    def reopen(self) -> None:
        self.database.close()
        self.connect()


FRAME = "i long, j long, x double, c long, m int, s string"


def _written(cell: dict[str, Any]) -> str:
    x = "nan" if cell["x"] is None else repr(cell["x"])
    return f"{x} {'null' if cell['c'] is None else cell['c']} {cell['m']}"
