"""Every Python line of the README runs, gives what the README says, and every page it links to is there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import windrow as wr
from windrow.samples import temperature_field

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
_RESULT = re.compile(r"^(?P<expression>\S.*?)  # → (?P<result>.*)$")


def python_blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def with_checks(block: str) -> str:
    """The block with ``expression  # → result`` turned into an assertion, line numbers kept."""
    lines = []
    for line in block.splitlines():
        found = _RESULT.match(line)
        lines.append(f"check({found['expression']}, {found['result']!r})" if found else line)
    return "\n".join(lines)


def check(value: object, stated: str) -> None:
    assert str(value) == stated


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
def test_python_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values, labels = temperature_field(lon=6, lat=5, time=40)
    dimensions = ("lon", "lat", "time")
    xr.Dataset({"t2m": (dimensions, values)}, labels).to_netcdf("t2m.nc", engine="h5netcdf")
    names: dict[str, object] = {"check": check, "__name__": "readme"}
    blocks = python_blocks()
    try:
        for number, block in enumerate(blocks, 1):
            exec(compile(with_checks(block), f"README.md, block {number}", "exec"), names)
    finally:
        names["db"].close()  # type: ignore[attr-defined]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["high.png", "p90.nc", "t2m.nc", "warehouse"]
    with xr.open_dataset("p90.nc") as found:
        wanted = wr.sliding(values, "percentile(90)", (1, 1, 30), "trailing", method="naive")
        np.testing.assert_array_equal(found["p90"].transpose(*dimensions).values, wanted)


def test_results_are_checked() -> None:
    assert sum(len(re.findall(r"  # → ", block)) for block in python_blocks()) >= 8
    with pytest.raises(AssertionError):
        exec(with_checks("1 + 1  # → 3"), {"check": check})


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert "docs/storage.md" in links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_commands_exist() -> None:
    from windrow.console.main import commands

    named = set(re.findall(r"`windrow ([a-z][a-z-]*)", README))
    assert named
    assert named <= set(commands.commands)
