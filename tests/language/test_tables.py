"""The grammar's tables: kept between runs, made anew when they are missing or damaged; its words are known."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from windrow.language import tables
from windrow.language.mistakes import words_of
from windrow.language.tables import grammar_text, kept_tables, parser
from windrow.plan.names import KEYWORDS


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's tables are kept; nothing is there yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = kept_tables(grammar_text())
    assert path is not None
    assert path.is_relative_to(tmp_path)
    return path


def load() -> str:
    """Parses with a parser that is loaded as a new process would."""
    return tables.parser.__wrapped__().parse("aggr A sum(b)", start="statement").pretty()


def test_tables_are_kept_and_used(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load()
    assert kept.exists()
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    monkeypatch.setattr("lark.Lark.__init__", lambda *_, **__: pytest.fail("the grammar was read again"))
    assert load() == first == parser().parse("aggr A sum(b)", start="statement").pretty()


@pytest.mark.parametrize("content", [b"", b"\x80\x04", b"no pickle"])
def test_damaged_tables_are_made_anew(kept: Path, content: bytes) -> None:
    kept.parent.mkdir()
    kept.write_bytes(content)
    load()
    assert kept.stat().st_size > 10_000


def test_a_place_that_cannot_be_written_is_no_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "sum" in load()
    assert os.listdir(tmp_path) == ["file"]


def test_another_grammar_is_kept_elsewhere(kept: Path) -> None:
    assert kept_tables(grammar_text() + "\n") != kept


def test_keywords_are_the_grammar_s() -> None:
    words = set()
    for terminal in parser().terminals:
        for word in words_of(terminal.name):
            words.update(word.split())
    # Second spellings, and words that are keywords only together with the one after them.
    words |= {"analyse", "centered", "neighbors"}
    words -= {"count", "exists", "if", "min"}
    assert words == KEYWORDS


def test_every_keyword_is_a_terminal_s_word() -> None:
    for terminal in parser().terminals:
        for word in words_of(terminal.name):
            # Some are keywords only before what must follow them, so that they are names everywhere else.
            followed = [word, *(f"{word} {after}" for after in ("(", "3", "similarity"))]
            assert any(re.match(terminal.pattern.to_regexp(), text) for text in followed), terminal.name
