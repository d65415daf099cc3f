"""The documentation: its Python runs and prints what it says, and what it names is there."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import inspect
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import windrow as wr
from windrow import errors
from windrow.api.transfer import export_file, import_file
from windrow.expressions.functions import FUNCTIONS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

_BLOCK = re.compile(
    r"^(?P<mark><!-- spark -->\n+)?```(?P<language>[a-z]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\]\((?P<target>[^)\s#]*)(?:#(?P<anchor>[^)\s]*))?\)")
_CODE = re.compile(r"`([^`\n]+)`")
_DESIGNS = {
    "model": ("model",),
    "storage": ("storage",),
    "execution": ("execution",),
    "operations": ("operations",),
    "joins": ("operations/join",),
    "placement": ("placement", "kernels/placement"),
    "views": ("views",),
    "windows": ("kernels", "aggregates", "plan"),
    "language": ("language", "expressions"),
    "sql": ("sql",),
    "api": ("api", "formats"),
    "dataframes": ("dataframes",),
    "console": ("console",),
}
"""Which layers each page under docs/design describes."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


# Blocks


@dataclass(frozen=True)
class Block:
    """A Python block of a page, and what it prints if the page says so in a text block right after it."""

    line: int
    body: str
    on_spark: bool
    output: str | None


def blocks(page: Path) -> list[Block]:
    """The Python blocks of a page in order."""
    text = page.read_text()
    found = list(_BLOCK.finditer(text))
    result = []
    for number, match in enumerate(found):
        if match["language"] != "python":
            continue
        output = None
        after = found[number + 1] if number + 1 < len(found) else None
        if after is not None and after["language"] == "text" and not text[match.end() : after.start()].strip():
            output = after["body"]
        line = text.count("\n", 0, match.start("body"))
        result.append(Block(line, match["body"], match["mark"] is not None, output))
    return result


def run_page(page: Path, on_spark: bool) -> None:
    """Run a page's blocks in one namespace, those for Spark only if asked to, and compare what they print."""
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        if block.on_spark and not on_spark:
            continue
        # Empty lines before the code make a traceback name the page's own line.
        code = compile("\n" * block.line + block.body, str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if block.output is not None:
            shown = "\n".join(line.rstrip() for line in printed.getvalue().rstrip().splitlines())
            assert shown == block.output.rstrip(), f"{name_of(page)}, line {block.line}, prints:\n{shown}"
    for value in namespace.values():
        if isinstance(value, wr.Database):
            value.close()


def pages_with(on_spark: bool) -> list[Any]:
    documents = [page for page in PAGES if page.is_relative_to(DOCS)]
    chosen = [page for page in documents if any(block.on_spark == on_spark for block in blocks(page))]
    return [pytest.param(page, id=name_of(page)) for page in chosen]


@pytest.mark.parametrize("page", pages_with(on_spark=False))
def test_page_runs_without_spark(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        pytest.fail("a block that is not marked <!-- spark --> starts Spark")

    monkeypatch.setattr("windrow.execution.session.start_session", refuse)
    monkeypatch.chdir(tmp_path)
    run_page(page, on_spark=False)


OFTEN = ("howto-spark.md", "howto-frames.md")
"""The pages whose blocks on Spark run with every `make test`; the others are slow tests."""


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("often", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_pages_run_on_spark(tmp_path: Path, often: bool) -> None:
    """In a process of their own, because a page may start and stop a session as it likes."""
    from windrow.execution.java import find_java

    pages = [str(page) for page in (p.values[0] for p in pages_with(on_spark=True)) if (page.name in OFTEN) == often]
    assert pages
    settings = {"JAVA_HOME": str(find_java().path), "PYSPARK_PYTHON": sys.executable}
    _run_script([str(Path(__file__)), *pages], tmp_path, settings)


def _run_script(arguments: list[str], folder: Path, settings: dict[str, str]) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **settings}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=550
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


# Examples


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_runs_twice(example: Path, tmp_path: Path) -> None:
    """The second run finds the warehouse of the first, and must not do its work again."""
    first, second = (_run_script(["-W", "error", str(example)], tmp_path, {}) for _ in range(2))
    assert first.strip()
    assert "applied before" not in first
    assert "applied before" in second


# Names


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for match in _LINK.finditer(_prose(page)):
        if match["target"].startswith(("http:", "https:")):
            continue
        target = (page.parent / match["target"]).resolve() if match["target"] else page
        assert target.exists(), f"no {match['target']}"
        if match["anchor"] is not None:
            assert match["anchor"] in anchors(target), f"no #{match['anchor']} in {name_of(target)}"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _prose(page: Path) -> str:
    return _BLOCK.sub("", page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_and_modules_are_there(page: Path) -> None:
    for code in _CODE.findall(_prose(page)):
        for path in re.findall(r"(?<![\w/.-])((?:src|tests|docs|examples|scripts)/[\w./-]*\w)", code):
            assert (ROOT / path).exists(), f"no {path}"
        for dotted in re.findall(r"^(?:windrow|wr)(?:\.\w+)+", code):
            if not dotted.endswith(".json"):
                assert _resolves(dotted), f"no {dotted}"


def _resolves(dotted: str) -> bool:
    first, *rest = dotted.split(".")
    found: Any = importlib.import_module("windrow" if first == "wr" else first)
    for name in rest:
        if not hasattr(found, name):
            with contextlib.suppress(ImportError):
                importlib.import_module(f"{found.__name__}.{name}")
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_members_of_public_classes_are_there(page: Path) -> None:
    for code in _CODE.findall(_prose(page)):
        match = re.match(r"([A-Z]\w*)\.(\w+)", code)
        owner = getattr(wr, match[1], None) if match and match[1] in wr.__all__ else None
        if match and owner is not None:
            fields = {f.name for f in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else set()
            assert match[2] in fields or hasattr(owner, match[2]), f"no {code}"


@pytest.mark.parametrize("design", _DESIGNS)
def test_design_page_names_every_room_of_its_layers(design: str) -> None:
    """Pages explain ideas and need not list files, but a folder that no page speaks of is a folder without an idea."""
    named = set(_CODE.findall((DOCS / "design" / f"{design}.md").read_text()))
    for layer in _DESIGNS[design]:
        rooms = [file.parent for file in sorted((ROOT / "src" / "windrow" / layer).rglob("__init__.py"))]
        assert rooms, f"no {layer}"
        missing = [
            name_of(room) for room in rooms if not any(f"{name}/".startswith(f"{name_of(room)}/") for name in named)
        ]
        assert not missing, f"docs/design/{design}.md does not name them"


@pytest.mark.parametrize("page", sorted((DOCS / "design").glob("*.md")), ids=name_of)
def test_design_page_is_known(page: Path) -> None:
    """A page that CONTRIBUTING does not lead to is found by nobody."""
    assert f"({name_of(page)})" in (ROOT / "CONTRIBUTING.md").read_text()


def test_glossary_has_the_words_of_the_house() -> None:
    """Each word once, so that it has one meaning."""
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    assert len(words) == len(set(words))
    assert {"chunk", "block", "slice", "part", "window", "sparse window", "frame", "total", "bound query"} <= set(words)


# References


def signature(prefix: str, function: Any) -> str:
    """A function as the reference writes it: without annotations and without self."""
    whole = inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in whole.parameters.values() if p.name != "self"]
    return f"{prefix}{whole.replace(parameters=parameters, return_annotation=whole.empty)}"


def public_entries() -> Iterator[str]:
    """Every public name, as the reference must have it."""
    for name in wr.__all__:
        value = getattr(wr, name)
        yield name if inspect.isclass(value) or not callable(value) else signature(name, value)
    for owner in (wr.Database, wr.Array, wr.Batch):
        for name, value in inspect.getmembers_static(owner):
            if name.startswith("_") or (owner is wr.Batch and name in ("database",)):
                continue
            yield (
                signature(f"{owner.__name__}.{name}", value)
                if inspect.isfunction(value)
                else f"{owner.__name__}.{name}"
            )


@pytest.mark.parametrize("entry", list(public_entries()))
def test_python_reference_has_every_public_name(entry: str) -> None:
    assert f"`{entry}`" in (DOCS / "reference-python.md").read_text()


def test_python_reference_has_no_stale_calls() -> None:
    calls = {code for code in _CODE.findall(_prose(DOCS / "reference-python.md")) if re.match(r"[\w.]+\(", code)}
    owners = tuple(f"{owner}." for owner in ("Database", "Array", "Batch"))
    stale = {call for call in calls if call.startswith(owners)} - set(public_entries())
    assert not stale


@pytest.mark.parametrize("transfer", [import_file, export_file], ids=lambda transfer: transfer.__name__)
def test_python_reference_has_every_option_of_files(transfer: Any) -> None:
    text = (DOCS / "reference-python.md").read_text()
    options = [p.name for p in inspect.signature(transfer).parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert options
    assert [name for name in options if f"`{name}`" not in text] == []


def test_python_reference_has_every_function_of_expressions() -> None:
    codes = set(_CODE.findall((DOCS / "reference-python.md").read_text()))
    assert set(FUNCTIONS) - codes == set()


def test_errors_page_has_every_error() -> None:
    text = (DOCS / "errors.md").read_text()
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, errors.Error)]
    assert set(re.findall(r"^## (\w+Error|Error)$", text, re.MULTILINE)) == {kind.__name__ for kind in kinds}
    for kind in kinds:
        assert hasattr(wr, kind.__name__)


if __name__ == "__main__":
    # All in one folder, because Java cannot change its own; each page gets it empty.
    for given in sys.argv[1:]:
        run_page(Path(given), on_spark=True)
        for entry in Path.cwd().iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
