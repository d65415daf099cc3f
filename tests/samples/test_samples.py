"""The public names of ``windrow.samples``: there, the same each time, and loaded only when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import windrow as wr
from windrow import samples


@pytest.mark.parametrize("name", samples.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(samples, name) is not None
    assert name in dir(samples)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'temprature_field'"):
        _ = samples.temprature_field


def test_samples_load_nothing_until_they_are_used() -> None:
    program = "import sys, windrow.samples; print([name for name in ('numpy', 'pyarrow') if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_scattered_cells_are_distinct_and_fit_their_schema(local: wr.Database) -> None:
    cells = samples.scattered_cells(3000)
    places = zip(*(cells.column(name).to_pylist() for name in ("time", "ra", "dec")), strict=True)
    assert len(set(places)) == 3000
    assert cells.equals(samples.scattered_cells(3000))
    array = local.create("S", samples.SCATTERED_SCHEMA, sparse=True)
    array.insert(cells)
    assert array.versions()[-1].cells == 3000


def test_nights_are_the_same_each_time_and_differ_from_one_another() -> None:
    assert samples.night_detections(1, 10).equals(samples.night_detections(1, 10))
    assert not samples.night_detections(1, 10).equals(samples.night_detections(2, 10))


def test_rank_tables() -> None:
    one, hundred, different = (samples.rank_table(name, 500)[0] for name in ("rank1", "rank100", "rank10M"))
    assert [len(set(column.tolist())) for column in (one, different)] == [1, 500]
    assert 50 < len(set(hundred.tolist())) <= 100
