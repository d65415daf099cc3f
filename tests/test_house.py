"""The tree shows the architecture: small folders that say what they hold, and a map that is true."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "windrow"
PACKAGES = sorted(file.parent for file in SOURCE.rglob("__init__.py"))
ROOMS = ("kernels", "operations", "bench", "console")
"""Layers whose rooms the map shows too."""
MOST_MODULES = 30
MOST_LINES = 400
"""Of a module; most have 100 to 300."""
MOST_OF_A_FUNCTION = 60
"""Lines with its signature and docstring: what fits a screen."""

_ENTRY = re.compile(r"^(?P<indent> +)(?P<name>[\w.]+)(?P<folder>/?)\s{2,}(?P<says>\S.*)$")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_a_folder_can_be_looked_through(package: Path) -> None:
    modules = [file.name for file in package.glob("*.py") if file.name != "__init__.py"]
    assert len(modules) <= MOST_MODULES, modules


def test_modules_and_functions_are_short() -> None:
    for file in SOURCE.rglob("*.py"):
        text = file.read_text()
        assert len(text.splitlines()) <= MOST_LINES, name_of(file)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                assert lines <= MOST_OF_A_FUNCTION, f"{name_of(file)}: {node.name} has {lines} lines"


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_a_package_says_what_it_holds(package: Path) -> None:
    assert ast.get_docstring(ast.parse((package / "__init__.py").read_text()))


def test_every_folder_of_modules_is_a_package() -> None:
    """Else it would escape the checks above."""
    assert sorted({file.parent for file in SOURCE.rglob("*.py")}) == PACKAGES


def packages_imported(tree: ast.AST) -> set[str]:
    """The packages that a module imports, wherever in it."""
    named = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    named += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return {name.partition(".")[0] for name in named}


def test_only_the_compilers_room_knows_numba() -> None:
    """import-linter says so too; here also of what only type checkers read."""
    for file in SOURCE.rglob("*.py"):
        if SOURCE / "kernels" / "compiler" not in file.parents:
            assert not packages_imported(ast.parse(file.read_text())) & {"numba", "llvmlite"}, name_of(file)
    hidden = "def f():\n    if x:\n        from llvmlite import ir\n        import numba.core"
    assert packages_imported(ast.parse(hidden)) == {"llvmlite", "numba"}


def map_entries() -> list[tuple[int, str, str]]:
    """How deep each line of CONTRIBUTING's map stands, what it names and what it says of it."""
    drawn = re.search(r"^src/windrow/\n(.*?)^\S", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)
    assert drawn is not None
    found = [_ENTRY.match(line) for line in drawn[1].splitlines()]
    return [(len(entry["indent"]) // 2, entry["name"] + entry["folder"], entry["says"]) for entry in found if entry]


def layers() -> list[str]:
    """The layers that import-linter checks, from the top."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    stated = next(contract for contract in linter["contracts"] if contract.get("containers") == ["windrow"])["layers"]
    return [name.strip("() ") for line in stated for name in re.split(r"[:|]", line)]


def test_the_map_shows_the_layers_in_their_order() -> None:
    shown = [name.rstrip("/").removesuffix(".py") for depth, name, _ in map_entries() if depth == 1]
    assert shown == layers()


def test_the_map_shows_every_folder_and_no_other() -> None:
    for name in layers():
        assert (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file(), name
    shown: dict[str, set[str]] = {}
    layer = ""
    for depth, name, _ in map_entries():
        if depth == 1:
            layer = name.rstrip("/")
        else:
            shown.setdefault(layer, set()).add(name)
    rooms = {layer: {f"{p.name}/" for p in PACKAGES if p.parent == SOURCE / layer} for layer in ROOMS}
    folders = {layer: {name for name in names if name.endswith("/")} for layer, names in shown.items()}
    assert folders == rooms
    for layer, names in shown.items():
        assert all((SOURCE / layer / name).exists() for name in names), layer


def test_the_console_knows_only_the_api() -> None:
    """import-linter says so of what runs; here also of what only type checkers read."""
    allowed = re.compile(r"windrow(\.(api|bench|console|errors|samples)(\.|$)|$)")
    for file in (SOURCE / "console").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            wrong = [name for name in names if name.startswith("windrow") and not allowed.match(name)]
            assert not wrong, f"{name_of(file)} imports {wrong[0]}"


@pytest.mark.parametrize("below", ["sql", "dataframes"])
def test_sql_and_dataframes_do_not_know_databases(below: str) -> None:
    for file in (SOURCE / below).rglob("*.py"):
        assert "windrow.api" not in file.read_text(), name_of(file)
