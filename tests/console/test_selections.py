"""What --select means."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.console.commands.selections import parse_selection, selections


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("3", 3),
        ("-3", -3),
        ("30.0", 30.0),
        ("1e3", 1000.0),
        ("'30'", "30"),
        ("Oslo", "Oslo"),
        ("nan", "nan"),
        ("2012-07", "2012-07"),
        ("1:10", (1, 10)),
        ("-5:-1", (-5, -1)),
        ("1:", (1, None)),
        (":10", (None, 10)),
        ("30.0:60.5", (30.0, 60.5)),
        ("30:60.5", ("30", 60.5)),
        ("-30.5:0", (-30.5, "0")),
        ("2012-01-01:2012-01-31", ("2012-01-01", "2012-01-31")),
        ("2012-01-01T06:00", "2012-01-01T06:00"),
        ("2012-01-01 06:00:30", "2012-01-01 06:00:30"),
        ("2012-01-01T06:00:2012-01-02", ("2012-01-01T06:00", "2012-01-02")),
        ("2012-01-01:2012-01-02T18:00:59.5", ("2012-01-01", "2012-01-02T18:00:59.5")),
        ("2012-01-01T06:00:00:2012-01-02T06:00:00", ("2012-01-01T06:00:00", "2012-01-02T06:00:00")),
        ("'a:b':'c'", ("a:b", "c")),
    ],
)
def test_parse(text: str, meaning: object) -> None:
    parsed = parse_selection(text)
    assert parsed == meaning
    assert type(parsed) is type(meaning)


@given(st.integers(), st.integers())
def test_index_ranges(first: int, last: int) -> None:
    assert parse_selection(f"{first}:{last}") == (first, last)


@given(st.datetimes(), st.datetimes())
def test_ranges_of_times(first: object, last: object) -> None:
    assert parse_selection(f"{first}:{last}") == (str(first), str(last))


@pytest.mark.parametrize("text", ["i", "=3", "i=", "i=:", "i=1:2:3", "i=1::3"])
def test_not_a_selection(text: str) -> None:
    option = click.Option(["--select"])
    with pytest.raises(click.BadParameter, match=r"selection|range"):
        selections(click.Context(click.Command("export")), option, (text,))


def test_a_dimension_is_selected_once() -> None:
    option = click.Option(["--select"])
    with pytest.raises(click.BadParameter, match="twice"):
        selections(click.Context(click.Command("export")), option, ("i=1", "i=2"))
