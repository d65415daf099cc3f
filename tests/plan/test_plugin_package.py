"""Plug-ins in a package of their own, installed into an environment of their own: from console, Python and Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import windrow

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.spark]

SCRIPT = """
import sys
import numpy as np
import windrow as wr
from windrow_example_plugins import TreePercentile

values = np.random.default_rng(3).integers(0, 50, (12, 40)).astype(float)
engine = sys.argv[2]
with wr.connect(sys.argv[1], engine=engine, progress=False, workers=2) as db:
    if engine == "local":
        db.create("A", "<t: float64> [y=0:11:5, x=0:39:16]").write({"t": values})
    A = db.array("A")
    found = A.window(y=wr.corner(3), x=wr.corner(5)).agg(own=TreePercentile("t"), p=wr.percentile("t", 70))
    both = found.compute()
    assert (both["own"].values == both["p"].values).all()
    smoothed = db.query("select t from smooth(A, 3)").compute()["t"].values
    padded = np.pad(values, ((0, 0), (1, 1)), constant_values=np.nan)
    wanted = np.nanmean([padded[:, k : k + 40] for k in range(3)], axis=0)
    np.testing.assert_allclose(smoothed, wanted, rtol=1e-12)
    chained = db.query("select tree_percentile(t) as p from smooth(A, 3) window (y 3, x 5)").compute()["p"].values
    assert np.isfinite(chained).all()
    tree = db.create_view(f"Tree_{engine}", A.window(y=wr.corner(3), x=wr.corner(5)).agg(p=TreePercentile("t")))
    smooth = db.create_view(f"Smooth_{engine}", db.query("select t from smooth(A, 3)"))
    A.write({"t": values[:2, :3] + 100}, at=(4, 20))
    assert (smooth.read()["t"].values != smoothed).any()
    for view in (tree, smooth):
        assert view.history().to_pydict()["way"] == ["created", "patched"], view.history().to_pydict()
        assert view.check().ok
    A.write({"t": values})
print("both work on", engine)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that sees what is installed here, and the package, which is installed nowhere else."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False)  # the interpreter's own setuptools may be too old to build a package
    found = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    site = subprocess.run(
        [found, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    (Path(site) / "around.pth").write_text(sysconfig.get_path("purelib") + "\n")
    package = tmp_path_factory.mktemp("package")
    for name in ("pyproject.toml", "windrow_example_plugins.py"):
        (package / name).write_text((ROOT / "examples" / "plugins" / name).read_text())
    pip = [sys.executable, "-m", "pip", "--python", str(found), "install", "-q", "--no-index", "--no-deps"]
    done = subprocess.run([*pip, "--no-build-isolation", package], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return found


def run(python: Path, *arguments: object) -> str:
    around = os.environ | {"PYTHONPATH": str(Path(windrow.__file__).parents[1]), "PYSPARK_PYTHON": str(python)}
    done = subprocess.run([python, *map(str, arguments)], capture_output=True, text=True, env=around, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_package_brings_a_tree_and_an_operator(python: Path, tmp_path: Path) -> None:
    assert sys.executable != str(python)
    place = tmp_path / "warehouse"
    for engine in ("local", "spark"):
        assert run(python, "-c", SCRIPT, place, engine).strip() == f"both work on {engine}"
    console = ("-m", "windrow.console.main", "--db", place)
    assert "tree_percentile" in run(python, *console, "-e", "list aggregates")
    assert "smooth" in run(python, *console, "-e", "list operators")
    shown = run(python, *console, "--format", "csv", "-e", "select max(t) as m from smooth(A, 3) group by y")
    assert len(shown.strip().splitlines()) == 13
    own, built_in = (
        run(python, *console, "--format", "csv", "-e", f"select {call} as p from A window (y 3, x 5)")
        for call in ("tree_percentile(t)", "percentile(t, 70)")
    )
    assert own == built_in
