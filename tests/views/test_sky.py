"""Views of partners on the sky are patched: at the poles, across 0 degrees, and against brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from .checking import Watched

RADIUS = 6.0
GRID = {"ra": (0, 360, "10 deg"), "dec": (-90, 90, "10 deg")}
OTHER = {"ra": (-180, 180, "15 deg"), "dec": (-90, 90, "9 deg")}
SCHEMA = "<mag: float64, flag: int64> [ra, dec]"


def points(random: np.random.Generator, count: int, turn: float = 0.0) -> dict[str, Any]:
    """A third of them around the poles, a third around 0 degrees, a third anywhere."""
    kind = np.arange(count) % 3
    ra = np.where(kind == 1, random.normal(0, 5, count), random.uniform(0, 360, count)) % 360
    around = np.where(random.random(count) < 0.5, 1, -1) * (90 - random.exponential(5, count) % 90)
    dec = np.where(kind == 0, around, np.where(kind == 1, random.normal(0, 6, count), random.uniform(-85, 85, count)))
    ra = (ra + turn) % 360 - turn
    return {"ra": ra, "dec": dec, "mag": random.integers(0, 9, count) / 4, "flag": random.integers(0, 5, count)}


def distances(left: Any, right: Any) -> Any:
    """Degrees between all points of two tables, by the angle of unit vectors."""
    one, other = (_vectors(table) for table in (left, right))
    across = np.linalg.norm(np.cross(one[:, None], other[None]), axis=2)
    return np.degrees(np.arctan2(across, one @ other.T))


def _vectors(table: Any) -> Any:
    ra, dec = (np.radians(np.array(table[f"{name}_exact"].to_pylist(), float)) for name in ("ra", "dec"))
    return np.column_stack([np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)])


def by_cell(table: Any) -> dict[tuple[int, ...], dict[str, Any]]:
    return {(row["ra"], row["dec"], row["n"]): row for row in table.to_pylist()}


def check_counts(database: Any, view: str, left: str, right: str, kept: bool) -> None:
    """The number of partners and the sum of their magnitudes, which are exact, for each cell."""
    lefts, rights = database.array(left).read(), database.array(right).read()
    near = distances(lefts, rights) <= RADIUS
    mags = np.array(rights["mag"].to_pylist())
    found = by_cell(database.view(view).read())
    expected = {
        (row["ra"], row["dec"], row["n"]): (int(line.sum()), float(mags[line].sum()) if line.any() else None)
        for row, line in zip(lefts.to_pylist(), near, strict=True)
        if kept or line.any()
    }
    assert {cell: (row["k"], row["s"]) for cell, row in found.items()} == expected


@pytest.fixture
def watched(local: Any) -> Watched:
    random = np.random.default_rng(7)
    for name, grid in (("G", GRID), ("H", OTHER)):
        array = local.create(name, SCHEMA, grid=grid, chunks={"ra": 6, "dec": 4, "n": 8})
        array.insert(points(random, 240, 180.0 if name == "H" else 0.0))
    return Watched(local)


def text(left: str, right: str, kind: str = "", by: str = "L.ra, L.dec, L.n", more: str = "") -> str:
    group = f" group by {by}" if by else ""
    return (
        f"select count(*) as k, sum(R.mag) as s, avg(R.mag) as m, max(R.flag) as top from {left} L "
        f"{kind}similarity join {right} R {more}with shape Sky('{RADIUS:g} deg') on (ra, dec){group}"
    )


def test_partners_on_the_sky_are_patched(watched: Watched) -> None:
    database, random = watched.database, np.random.default_rng(3)
    queries = {
        "itself": text("G", "G"),
        "two": text("G", "H"),
        "left": text("H", "G", "left "),
        "strip": text("G", "H", by="L.dec"),
        "total": text("G", "H", by=""),
        "close": text("G", "G", more="on distance() < 3 and L.flag <= R.flag "),
        "around": f"select count(*) as k, avg(mag) as m from G neighbours Sky('{RADIUS:g} deg') on (ra, dec)",
    }
    for name, query in queries.items():
        view = watched.view(name, query, maintain="strict")
        assert "patched" in str(database.explain_view(query)), name
        assert view.check().ok
    changes = [
        lambda: database.array("G").insert(points(random, 9)),
        lambda: database.array("H").insert(points(random, 9, 180.0)),
        lambda: database.array("G").delete("mag < 0.5"),
        lambda: database.array("H").update({"mag": "mag + 1", "flag": "flag - 2"}, "flag > 2"),
        lambda: database.array("G").insert(points(random, 60)),
        lambda: database.array("H").delete("dec_exact > 80"),
    ]
    for change in changes:
        change()
        watched.check()
        check_counts(database, "itself", "G", "G", kept=False)
        check_counts(database, "two", "G", "H", kept=False)
        check_counts(database, "left", "H", "G", kept=True)
        for name in queries:
            row = database.view(name).history().to_pylist()[-1]
            assert row["planned"] == "patch", (name, row)


def test_a_point_touches_its_partners_alone(watched: Watched) -> None:
    """Found by the circle around it, be that at a pole or across 0 degrees: no other result is looked at."""
    database = watched.database
    view = watched.view("V", text("G", "G"))
    for number, (ra, dec) in enumerate([(0.01, 0.0), (359.99, 1.0), (123.0, 89.5), (45.0, -89.9), (200.0, 30.0)]):
        batch = {"ra": [ra], "dec": [dec], "mag": [1.0], "flag": [number]}
        for _ in range(2):  # states are made when results are first touched
            database.array("G").insert(batch)
            watched.check()
        cells = database.array("G").read()
        mine = int(np.flatnonzero(np.array(cells["ra_exact"].to_pylist()) == ra)[0])
        near = int((distances(cells, cells.slice(mine, 1)) <= RADIUS).sum())
        row = view.history().to_pylist()[-1]
        assert (row["way"], row["touched"], row["pairs"]) == ("patched", near, near - 1), row
