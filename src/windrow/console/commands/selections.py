"""What ``--select time=2012-01-01:2012-01-31`` means: labels where there are any, as in all text."""

from __future__ import annotations

import re

import click

Bound = int | float | str | None
Wanted = int | float | str | tuple[Bound, Bound]

_CLOCK = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
_ZONE = r"(?:Z|[+-]\d\d:\d\d)?"
# A time of day has colons of its own, so it must be recognised before a colon is taken for the one between two ends.
_VALUE = rf"(?:'[^']*'|\"[^\"]*\"|{_CLOCK}{_ZONE}|[^:]+)"
_SINGLE = re.compile(_VALUE)
_CELL = re.compile(r"cell\((?P<name>\w+)\)")
_RANGE = re.compile(rf"(?P<first>{_VALUE})?:(?P<last>{_VALUE})?")


def selections(_context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, Wanted]:
    """Each ``name=cell``, ``name=first:last`` or ``name=first:`` by its dimension's name."""
    result: dict[str, Wanted] = {}
    for text in values:
        name, equals, wanted = (part.strip() for part in text.partition("="))
        if not name or not equals or not wanted or wanted == ":":
            raise click.BadParameter(
                f"a selection is written as i=1:10 or time=2012-01-01:2012-01-31; got {text!r}", param=parameter
            )
        if name in result:
            raise click.BadParameter(f"dimension {name} is selected twice", param=parameter)
        result[name] = parse_selection(wanted, parameter)
    return result


def cell_of(name: str) -> str | None:
    """The dimension whose numbers of cells are meant by ``cell(name)``; None if its labels are."""
    found = _CELL.fullmatch(name)
    return None if found is None else found["name"]


def parse_selection(text: str, parameter: click.Parameter | None = None) -> Wanted:
    """One cell or an inclusive range, as numbers and texts.

    >>> [parse_selection(text) for text in ("3", "1:10", "-30:12.5", "'30'", "2012-01-01T06:00")]
    [3, (1, 10), ('-30', 12.5), '30', '2012-01-01T06:00']
    """
    if _SINGLE.fullmatch(text):
        value = _value(text)
        assert value is not None
        return value
    found = _RANGE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"a range has two ends, as in 1:10; got {text!r}", param=parameter)
    first, last = _value(found["first"]), _value(found["last"])
    if isinstance(first, int) and isinstance(last, (float, str)):
        first = str(first)  # a number beside a label is a label
    if isinstance(last, int) and isinstance(first, (float, str)):
        last = str(last)
    return first, last


def _value(text: str | None) -> Bound:
    if text is None:
        return None
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?", text) else text
