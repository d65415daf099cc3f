"""Random and damaged statements are read or refused, and what is read prints as text of the same meaning."""

from __future__ import annotations

import contextlib
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import LanguageError
from windrow.language.parser import parse
from windrow.plan.names import KEYWORDS
from windrow.plan.printing import to_text

from .examples import ALL
from .plans import any_statement
from .scripts import parse_script

SIGNS = [*"()[]<>=+-*/%,.;:@'\"#|", "||", "//", "<>", "--", "\n", "\0", "é", "日", "\ud800", "\u00a0"]
ODD = [
    "\u200b",
    "\u2028",
    "\u202e",
    "\ufeff",
    "\u0301",
    "\uff11",
    "\u0661",
    "ſ",
    "İ",
    "ß",
    "𝒂",
    "\U0010ffff",
    "\x85",
    "\x1c",
]
VALUES = ["1", "0x1f", "1.5", "1e999", "9" * 30, "'x'", "date '2012-01-01'", "a", "A", '"a b"', "<a>", "@3", "L1(1)"]
words = st.sampled_from([*sorted(KEYWORDS), *SIGNS, *ODD, *VALUES, "max(a)", "count(*)", "percentile(t,70)"])
noise = st.one_of(
    st.text(), st.text(string.printable), st.lists(words, max_size=25).map(" ".join), st.lists(words).map("".join)
)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A statement in which some places were changed."""
    text = draw(st.sampled_from(ALL) | any_statement.map(to_text))
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 6)))
        text = text[:begin] + draw(st.sampled_from(["", " "]) | words | st.text(max_size=2)) + text[end:]
    return text


@st.composite
def shuffled(draw: st.DrawFn) -> str:
    """The words of one or two statements in another order."""
    parts = draw(st.sampled_from(ALL)).split() + draw(st.sampled_from(ALL)).split()
    chosen = draw(st.lists(st.sampled_from(parts) | words, min_size=1, max_size=20))
    return " ".join([parts[0], *chosen])


@st.composite
def monstrous(draw: st.DrawFn) -> str:
    """A statement of which a piece comes again and again: deeply nested, or longer than anybody types."""
    text = draw(st.sampled_from(ALL))
    begin = draw(st.integers(0, len(text) - 1))
    end = min(len(text), begin + draw(st.integers(1, 12)))
    piece = draw(
        st.just(text[begin:end]) | words | st.sampled_from(["(select ", "((", "not ", "case when ", "filter(", "- "])
    )
    times = draw(st.integers(2, 60) | st.sampled_from([1_000, 20_000]))
    closing = ")" * times if draw(st.booleans()) else ""
    if draw(st.integers(0, 40)) == 0:
        piece = piece * (1 + 2_000_000 // (len(piece) * times))
    return text[:begin] + piece * times + text[begin:end] + closing + text[end:]


def check(text: str) -> None:
    try:
        statement = parse(text)
    except LanguageError as error:
        str(error).encode("utf-8", "surrogatepass")
    else:
        assert parse(to_text(statement)) == statement
    with contextlib.suppress(LanguageError):
        parse_script(text)


@settings(max_examples=150)
@given(noise)
def test_noise_is_read_or_refused(text: str) -> None:
    check(text)


@settings(max_examples=300)
@given(damaged() | shuffled())
def test_damaged_statements_are_read_or_refused(text: str) -> None:
    check(text)


@settings(max_examples=60)
@given(monstrous())
def test_monsters_are_read_or_refused(text: str) -> None:
    check(text)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=20_000)
@given(damaged() | shuffled() | noise | monstrous())
def test_many_statements_are_read_or_refused(text: str) -> None:
    check(text)
