"""Where slices go along a dimension, held against lists and dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import DataError, DuplicateError
from windrow.model.labels import Labels
from windrow.model.periods import cells_around, period_of_labels
from windrow.model.placing import Placed, Side, place
from windrow.model.schema import Dimension

numbers = st.lists(st.integers(0, 30), unique=True, max_size=8)
KINDS = (float, str, lambda n: np.datetime64("2012-01-01", "us") + np.timedelta64(n, "D"))


def labels_of(values: list[int], kind: Any) -> Labels:
    made = [kind(value) if kind is not str else f"{value:02}" for value in values]
    return Labels.of(np.array(made, np.dtypes.StringDType() if kind is str else None))


def after(placed: Placed, known: list[int], given_: list[int]) -> list[int | str]:
    """What lies where: the new slices as texts."""
    cells: dict[int, Any] = {}
    for position, value in enumerate(known):
        cells[position if placed.moved_to is None else int(placed.moved_to[position])] = value
    for target, value in zip(placed.targets, given_, strict=True):
        cells[int(target)] = f"new {value}"
    assert sorted(cells) == list(range(placed.extent))
    return [cells[position] for position in range(placed.extent)]


def expected(known: list[int], given_: list[int]) -> list[int | str]:
    every = sorted({*known, *given_})
    telling = known if len(known) > 1 else given_
    if len(known) > 1 and known not in (sorted(known), sorted(known, reverse=True)):
        every = [*known, *(value for value in given_ if value not in known)]
    elif len(telling) > 1 and telling == sorted(telling, reverse=True):
        every = every[::-1]
    return [f"new {value}" if value in given_ else value for value in every]


@given(numbers, numbers.filter(bool), st.sampled_from(KINDS), st.sampled_from(["up", "down", "as it is"]))
def test_slices_go_where_their_labels_belong(known: list[int], new: list[int], kind: Any, order: str) -> None:
    known = known if order == "as it is" else sorted(known, reverse=order == "down")
    held = labels_of(known, kind) if known else None
    placed = place(Side("time", True, len(known), held), len(new), labels_of(new, kind), None)
    found = after(placed, known, new)
    assert found == expected(known, new)
    assert placed.replaced(len(known)) == len(set(known) & set(new))
    names = [int(value.removeprefix("new ")) if isinstance(value, str) else value for value in found]
    if placed.labels is None:
        assert names == known
    else:
        assert placed.labels.same_values(labels_of(names, kind))
        assert names[: placed.label_start] == known[: placed.label_start]
    appended = place(Side("time", True, len(known), held), len(new), labels_of(new, kind), len(known))
    assert list(appended.targets) == list(placed.targets)


def test_what_contradicts_is_refused() -> None:
    side = Side("time", True, 3, Labels.of([1.0, 2.0, 3.0]))
    for given_, first, kind, match in (
        ([2.0], 0, DataError, "differ"),
        ([5.0], 4, DataError, "unlabelled"),
        ([5.0, 5.0], None, DuplicateError, "5.0"),
    ):
        with pytest.raises(kind, match=match):
            place(side, len(given_), Labels.of(given_), first)
    with pytest.raises(DataError, match="need some"):
        place(side, 1, None, 3)
    with pytest.raises(DataError, match="gets 2 cells"):
        place(side, 2, Labels.of([1.0]), None)
    assert list(place(side, 2, None, 1).targets) == [1, 2]


@given(st.integers(2, 24), st.integers(-720, 720), st.integers(0, 359), st.booleans(), st.integers(-180, 0))
def test_ranges_go_round(count: int, low: int, wide: int, descending: bool, first: int) -> None:
    values = first + np.arange(count) * 360.0 / count
    values = values[::-1] if descending else values
    labels = Labels.of(values, {"units": "degrees_east"})
    assert period_of_labels(Dimension("lon", 1, count), labels) == 360
    met = cells_around(labels, 360, low, low + wide)
    inside = [n for n, value in enumerate(values) if (value - low + 1e-7) % 360 <= wide + 2e-7]
    assert sorted(met.tolist()) == inside
    steps = np.diff(met) % count
    assert (steps == 1).all()


@pytest.mark.parametrize(
    ("values", "units", "wrap", "period"),
    [
        ([0.0, 90.0, 180.0, 270.0], "degrees_east", False, 360),
        ([0.0, 90.0, 180.0, 270.0, 360.0], "degree_E", False, 360),
        ([0.0, 90.0, 180.0], "degrees_east", False, None),
        ([0.0, 90.0, 180.0, 270.0], "degrees_north", False, None),
        ([0.0, 6.0, 12.0, 18.0], "hours", True, 24.0),
        ([0, 1, 2], "", True, 3),
        ([0.0, 1.0, 5.0], "", True, None),
        ([270.0, 0.0, 90.0, 180.0], "degrees_east", False, None),
    ],
)
def test_which_dimensions_go_round(values: list[float], units: str, wrap: bool, period: float | None) -> None:
    dimension = Dimension("lon", 1, len(values), wrap=wrap)
    assert period_of_labels(dimension, Labels.of(values, {"units": units})) == period
