"""The demo on a grid small enough for a test."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import windrow as wr
from console.runs import done, windrow
from windrow.samples import temperature_field

SMALL = ("--lon", 12, "--lat", 9, "--days", 40)


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = done("demo", *SMALL)
    assert [line.split()[0] for line in said.splitlines()[:7]] == [f"{number}." for number in range(1, 8)]
    assert "the view T30@2 was patched: 108 of 4,428 cells" in said
    assert Path("windrow-demo.png").read_bytes().startswith(b"\x89PNG")
    values, labels = temperature_field(12, 9, 41)
    with wr.connect(create=False) as db:
        stored = db.array("T").read()
        np.testing.assert_array_equal(stored["t"].values, values)
        np.testing.assert_array_equal(stored["time"].values, labels["time"])
        moved = db.array("T30").read()
    for name, call in (("p10", "percentile(10)"), ("p90", "percentile(90)")):
        wanted = wr.sliding(values, call, (1, 1, 30), "trailing", method="naive")
        np.testing.assert_array_equal(moved[name].values, wanted)
    means = wr.sliding(values, "avg", (1, 1, 30), "trailing", method="naive")
    np.testing.assert_allclose(moved["avg"].values, means, rtol=1e-12)

    again = done("demo", *SMALL, "--out", "again.png")
    assert "T30@1" in again
    assert Path("again.png").exists()
    assert windrow("demo", *SMALL, "--out", "none/x.png").exit_code == 3
    with wr.connect(create=False) as db:
        assert [array.name for array in db.arrays()] == ["T"]
        assert [view.name for view in db.views()] == ["T30"]


@pytest.mark.parametrize(
    ("demo", "options", "names"),
    [
        ("sky", ("--detections", 1500, "--nights", 2), ("SKY", "SKY_NEAR")),
        ("places", ("--places", 1500, "--regions", 2), ("GEO", "GEO_NEAR")),
    ],
)
def test_demos_of_views(
    demo: str, options: tuple[object, ...], names: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = done("demo", demo, *options)
    assert sum("view patched" in line for line in said.splitlines()) == 2
    assert "the view is what its query gives from scratch" in said
    assert Path(f"windrow-{demo}.png").read_bytes().startswith(b"\x89PNG")
    done("demo", demo, *options)  # replaces its own
    with wr.connect(create=False, engine="local") as db:
        array, view = db.array(names[0]), db.view(names[1])
        assert view.read().num_rows == array.read().num_rows
        assert view.check().ok
        db.drop_view(view.name)
        db.create(view.name, "<a: int64> [i=1:3]", sparse=True)
    result = windrow("demo", demo, *options)
    assert result.exit_code == 1
    assert "not the demo's" in result.stderr
    assert windrow("demo", demo, options[2], 10_000).exit_code == 1


def test_the_demo_does_not_replace_arrays_of_yours(local: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    local.create("T", "<a: int64> [i=1:3]").write({"a": np.arange(3)})
    result = windrow("demo", *SMALL, "--db", local.path)
    assert result.exit_code == 1
    assert "not the demo's" in result.stderr
    assert local.array("T").read()["a"].values.tolist() == [0, 1, 2]


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else known(name))
    result = windrow("demo", *SMALL, "--db", tmp_path / "w")
    assert result.exit_code == 3
    assert "hint: pip install 'windrow[plot]'" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_sizes_must_be_positive(tmp_path: Path) -> None:
    assert windrow("demo", "--days", 0, "--db", tmp_path / "w").exit_code == 2
