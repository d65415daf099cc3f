"""What is typed at the prompt: when Enter runs it, what Tab offers, how it is coloured, what help says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import windrow as wr
from windrow.api.database import Database
from windrow.api.session.script import is_ready, spans
from windrow.console.commands.settings import Settings
from windrow.console.prompt.colouring import StatementColours
from windrow.console.prompt.completion import StatementCompleter
from windrow.console.prompt.entry import read_typed
from windrow.console.prompt.help_texts import TOPICS, explain_topic, overview
from windrow.console.prompt.shell import open_history
from windrow.console.prompt.words import COMMANDS, LeaveError, run_command
from windrow.console.session.running import Console
from windrow.language.parser import parse
from windrow.language.tokens import expected


@pytest.mark.parametrize(
    ("text", "ready"),
    [
        ("", True),
        ("select A", True),
        ("select a", False),  # no such array: its from will follow
        ("select a,", False),
        ("select a from A", True),
        ("select a from A;", True),
        ("select a\nfrom A", False),
        ("select a\nfrom A;", True),
        ("select a\nfrom A\n", True),
        ("select a form A", True),  # the mistake is not at the end: it is shown now
        ("select 'a from A", False),
        ("aggr A sum(b) by window(2,", False),
        ("aggr A sum(b) by window(2,2)", True),
        ("aggr A sum(b) by window(2,2) into B", False),
        ("update A set a = 0", False),
        ("delete from A", False),
        ("check view V", True),
        ("show history V", True),
        ("refresh V", False),
        ("create array view V as select A", False),  # a clause of the query may follow
        ("explain create array view V as select A", True),
        ("delete from A where a > 1", False),
        ("drop A", False),
        ("drop A;", True),
        ("insert into A values (1: 2)", False),
        ("create A [i=1:3,", False),
        ("create A <int a>", False),
        ("create A [i=1:3] <int a>", True),
        ("load A", True),
        ("begin 'x;y'", True),
        ("-- a remark", False),
        ("list -- a remark", True),
        ("list; -- a remark", True),
        ("(" * 100_000, True),
    ],
)
def test_enter(text: str, ready: bool) -> None:
    assert is_ready(text, lambda name: name == "A") is ready


@given(st.text(alphabet="select Afrom'\";\n-#()[]<>=1:,", max_size=60))
def test_enter_never_fails(text: str) -> None:
    assert is_ready(text, lambda name: False) in (True, False)
    assert text.endswith(read_typed(text).statement)
    list(spans(text))


def test_the_statement_under_the_cursor() -> None:
    assert read_typed("select A; aggr B") == read_typed(" aggr B")
    assert read_typed("import 'a;b").quote == "a;b"
    assert read_typed("import 'a' into ").quote is None
    assert read_typed("select 'it''s").quote == "s"


# Completing


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with wr.connect(tmp_path_factory.mktemp("complete") / "w") as db:
        db.query("create Alpha [i=1:3, longitude=1:3] <double warmth, double water>")
        db.query("create sparse array Beta <int wind> [i=1:3]")
        db.query("create array view Gamma as select max(wind) as highest from Beta window (i 2)")
        yield db


def offers(database: Database | None, text: str, after: str = "") -> list[str]:
    document = Document(text + after, len(text))
    return [found.text for found in StatementCompleter(lambda: database).get_completions(document, CompleteEvent())]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("sel", ["select"]),
        ("SEL", ["select"]),
        ("aggr Al", ["Alpha"]),
        ("describe ", ["Alpha", "Beta", "Gamma"]),
        ("select wa from Alpha whe", ["where"]),
        ("select * from Alpha where lon", ["longitude"]),
        ("select * from Beta where w", ["wavg(", "week(", "weekday(", "wind"]),
        ("aggr Alpha percen", ["percentile("]),
        ("aggr Alpha max(warmth) by reg", ["regrid"]),
        ("select A; desc", ["describe"]),
        ("select max(warmth) from Alpha window (i cen", ["centred"]),
        ("select warmth from Alpha wh", ["where"]),
        ("hel", ["help"]),
        ("refresh Gam", ["Gamma"]),
        ("select * from Gamma where hig", ["highest"]),
        ("refresh Gamma ", ["full"]),
        ("drop Beta cas", ["cascade"]),
        ("create array view V with (ma", ["maintain"]),
        (
            "create view V deferred with (",
            ["budget", "chunks", "decay", "maintain", "on_failure", "seed", "store", "strategy", "window"],
        ),
        ("create view V with (chunks = 'i=3', on_failure = ", ["refuse", "stale"]),
        ("create view V with (store = c", ["cells"]),
        ("create view V with (store = cells) as sel", ["select"]),
        ("\\", ["\\d", "\\i", "\\timing"]),
        ("select warmth from Alpha limit ", []),
    ],
)
def test_tab(database: Database, text: str, wanted: list[str]) -> None:
    found = offers(database, text)
    assert found == wanted if len(wanted) != 0 else "select" not in found


def test_attributes_of_the_arrays_that_are_named(database: Database) -> None:
    assert offers(database, "select wa", " from Alpha") == ["warmth", "water", "wavg("]
    assert offers(database, "select wi", " from Alpha") == []
    assert offers(database, "select wi", " from Beta") == ["wind"]
    assert offers(None, "select wi") == []
    assert "Alpha" not in offers(None, "describe ")


def test_files_inside_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name in ("night.csv", "night's.csv", ".hidden"):
        (tmp_path / "data" / name).touch()
    assert offers(None, "import 'da") == ["data/"]
    assert offers(None, "import 'data/") == ["night''s.csv", "night.csv"]
    assert offers(None, "import 'data/.h") == [".hidden"]
    assert offers(None, "import 'none/x") == []


# Colours


def coloured(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for start, stop, kind in spans(text):
        found[text[start:stop]] = kind
    return found


def test_colours_are_those_of_the_language() -> None:
    found = coloured("select max(a) as m from A@3 where t = 'x' -- why\n;")
    kinds = {"select": "keyword", "max": "function", "as": "keyword", "@3": "number", "'x'": "text", "y": "comment"}
    assert found.items() >= kinds.items()
    assert "a" not in found
    assert coloured("list; select 'open")["'open"] == "text"
    assert coloured("select step from A").get("step") is None  # a name here
    assert coloured("# all of it")["#"] == "comment"
    assert coloured("select select select").get("select") == "keyword"


def test_colouring_waits_for_the_language_and_keeps_the_text() -> None:
    document = Document("select a\n from A")
    for loaded in (False, True):
        line = StatementColours(lambda known=loaded: known).lex_document(document)  # type: ignore[misc]
        assert ["".join(part[1] for part in line(number)) for number in (0, 1)] == document.lines
        assert ("class:keyword" in {part[0] for part in line(0)}) is loaded
        assert line(2) == []


# Help and commands


def test_help_knows_every_statement() -> None:
    begun = expected("")
    assert begun is not None
    first = set(begun.words)
    forms = {"aggregate", "apply", "between", "filter", "project", "regrid", "scan", "window"}
    assert {"select", "load", "plot"} <= first
    for word in first - forms:
        assert "For example" in explain_topic(word), word
    assert "Did you mean 'select'" in explain_topic("selct")
    assert all(name in overview(COMMANDS) for name in (*TOPICS, *COMMANDS))


@pytest.mark.parametrize("example", [example for topic in TOPICS.values() for example in topic.examples])
def test_examples_of_help_are_statements(example: str) -> None:
    assert parse(example)


def test_commands(database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = Console(Settings(db=database.path))
    assert not run_command("select Alpha", session)
    assert run_command("\\d", session)
    assert "Alpha  dense" in capsys.readouterr().out
    assert run_command("\\d Beta;", session)
    assert "sparse" in capsys.readouterr().out
    script = tmp_path / "s.wql"
    script.write_text("list views;\nselect Delta")
    assert run_command(f"\\i {script}", session)
    shown = capsys.readouterr()
    assert "Gamma  fresh" in shown.out
    assert shown.err.startswith(f"error: {script}, line 2: no such array")
    for wrong, said in (("\\i", "which file"), ("\\x", "no such command"), (f"\\i {tmp_path}/none", "no such file")):
        assert run_command(wrong, session)
        assert said in capsys.readouterr().err
    assert run_command("\\timing", session)
    assert session.options["timing"] == "on"
    for word in ("quit", "exit;", "\\q", "QUIT"):
        with pytest.raises(LeaveError):
            run_command(word, session)
    session.close()


def test_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("WINDROW_HISTORY", raising=False)
    open_history().store_string("select A")
    assert "select A" in (tmp_path / "state" / "windrow" / "history").read_text()
    monkeypatch.setenv("WINDROW_HISTORY", "")
    open_history().store_string("secret")
    (tmp_path / "file").touch()
    monkeypatch.setenv("WINDROW_HISTORY", str(tmp_path / "file" / "history"))  # no folder: only this session's
    open_history().store_string("secret")
    assert "secret" not in (tmp_path / "state" / "windrow" / "history").read_text()
