"""Aggregates are data: nobody outside their own folder asks what an aggregate is called."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import windrow as wr
from windrow.aggregates.aggregate import Aggregate, function_of
from windrow.aggregates.registry import DEFINITIONS, SYNONYMS, definition

SOURCE = Path(__file__).resolve().parents[2] / "src" / "windrow"
ELSEWHERE = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    # Kernels know operations, some of which are called as aggregates are; benchmarks ask for aggregates by name.
    if path.relative_to(SOURCE).parts[0] not in ("aggregates", "kernels", "bench")
]
NAMES = {*DEFINITIONS, *SYNONYMS} - {"first", "last", "range", "mode"}  # words that mean other things, too


def texts(node: ast.AST | None) -> set[str]:
    """The texts that stand there, alone or in a list."""
    listed = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return {part.value for part in listed if isinstance(part, ast.Constant) and isinstance(part.value, str)}


def told_apart(tree: ast.AST) -> list[str]:
    """Where names of aggregates decide something: comparisons, cases, beginnings, tables and lists of names."""
    found = []
    for node in ast.walk(tree):
        sides: set[str] = set()
        if isinstance(node, ast.Compare):
            sides = set().union(*map(texts, (node.left, *node.comparators)))
        elif isinstance(node, ast.MatchValue):
            sides = texts(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("swith"):
            sides = set().union(*map(texts, node.args))
        elif isinstance(node, ast.Dict):
            names = set().union(*map(texts, node.keys))
            sides = names if len(names & NAMES) > 1 else set()
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            sides = texts(node) if len(texts(node) & NAMES) > 1 else set()
        if sides & NAMES:
            found.append(f"line {node.lineno}: {ast.unparse(node)[:100]}")  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("path", ELSEWHERE, ids=lambda path: str(path.relative_to(SOURCE)))
def test_names_of_aggregates_are_not_compared(path: Path) -> None:
    found = told_apart(ast.parse(path.read_text()))
    # The package lists its public names, which decides nothing.
    assert not found or path == SOURCE / "__init__.py", found


@pytest.mark.parametrize(
    "code",
    [
        'if aggregate.name == "corr": pass',
        'if "wavg" != what: pass',
        'x = 1 if kind in ("sum", "other") else 2',
        'match name:\n    case "median": pass',
        'y = name.startswith("var")',
        'TABLE = {"sum": 1, "avg": 2}',
        'JOINED = frozenset({"min", "max"})',
    ],
)
def test_comparisons_would_be_found(code: str) -> None:
    assert told_apart(ast.parse(code))


def test_every_part_is_an_aggregate_that_joins_from_no_more_parts() -> None:
    for name, found in DEFINITIONS.items():
        second = "y" if found.arguments == 2 else None
        aggregate = Aggregate(name, "x", 0.5 if found.parameter else None, second=second)
        assert (found.join is None) == (not found.parts), name
        for part in aggregate.parts().values():
            assert set(definition(part.name).parts) <= set(found.parts), (name, part.name)
            assert definition(part.name).join is not None


def test_each_is_computed_in_one_way() -> None:
    for name, found in DEFINITIONS.items():
        assert (found.compose is None) != (found.operation is None), name
        assert (found.finish is None) == (found.operation is None), name
        assert (found.compose is None) == (not found.made_of), name
        assert found.summary
        assert found.usage().startswith(f"{name}(")


def test_each_has_a_function_written_out_or_not() -> None:
    """``wr.wavg`` is nowhere written: what the registry says is enough."""
    for name, found in DEFINITIONS.items():
        ask = getattr(wr, name)
        arguments = ["a", "b"][: found.arguments] + ([0.5] if found.parameter else [])
        second = "b" if found.arguments == 2 else None
        assert ask(*arguments) == Aggregate(name, "a", 0.5 if found.parameter else None, second=second), name
        assert function_of(name)(*arguments) == ask(*arguments), name  # type: ignore[misc]
    written_nowhere: Any = wr
    with pytest.raises(wr.DataError, match="takes fewer arguments"):
        written_nowhere.wavg("a", "b", 3)
    with pytest.raises(AttributeError, match="no attribute 'wavgs'"):
        _ = written_nowhere.wavgs
