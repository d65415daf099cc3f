"""Plan nodes and what they hold: what cannot be is refused, and windows meet schemas."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from parsing import parse_query
from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.user import REGISTERED, aggregate
from windrow.errors import Error, SchemaError, UnknownNameError
from windrow.expressions.nodes import Binary, Column, Literal
from windrow.model.notation import parse_schema
from windrow.model.shape import L1, Shape
from windrow.model.window import Extent, Window, centred, corner, regrid, trailing
from windrow.plan import statements as st
from windrow.plan.nodes import (
    DEEPEST_PLAN,
    Alias,
    Filter,
    GroupBy,
    Neighbours,
    Plan,
    Project,
    Scan,
    Selection,
    SimilarityJoin,
    Windowed,
    joined_names,
)
from windrow.plan.specs import Block, Measure, Output, Range, RegridSpec, WindowAxis, WindowSpec

A = Scan("A")
a = Column("a")
MAX = (Measure("m", "max", a),)
SCHEMA = parse_schema("<a: float64> [i=1:10, j=1:20, k=1:*]")[1]
AXIS = WindowAxis("i", corner(2))


def test_windows_bind_as_window_of_does() -> None:
    named = WindowSpec((WindowAxis("j", centred(3), 2), WindowAxis("i", trailing(4))), "drop", 5)
    extents = {"j": centred(3), "i": trailing(4)}
    assert named.bind(SCHEMA) == Window.of(SCHEMA, extents, step={"j": 2}, boundary="drop", min_count=5)
    placed = WindowSpec(tuple(WindowAxis(None, corner(width)) for width in (1, 2, 3)))
    assert placed.bind(SCHEMA) == Window.of(SCHEMA, {"i": 1, "j": 2, "k": 3})


def test_blocks_bind_as_regrid_does() -> None:
    named = RegridSpec((Block("j", 5),), "drop", 2)
    assert named.bind(SCHEMA) == regrid(SCHEMA, {"j": 5}, boundary="drop", min_count=2)
    placed = RegridSpec((Block(None, 2), Block(None, 3), Block(None, 4)))
    assert placed.bind(SCHEMA) == regrid(SCHEMA, {"i": 2, "j": 3, "k": 4})


def test_windows_meet_only_dimensions_that_are_there() -> None:
    with pytest.raises(SchemaError, match=r"3 sizes, one for each dimension, got 2.*i, j, k"):
        WindowSpec((WindowAxis(None, corner(2)),) * 2).bind(SCHEMA)
    with pytest.raises(UnknownNameError, match="no such dimension, got 'x'"):
        RegridSpec((Block("x", 2),)).bind(SCHEMA)


def test_measures_become_aggregates() -> None:
    assert Measure("p", "Percentile", a, 70).aggregate() == Aggregate("percentile", "a", 70.0)
    assert Measure("n", "count").aggregate() == Aggregate("count", None)
    product = Measure("s", "sum", Binary("*", a, Column("b")))
    assert product.attribute is None
    assert product.aggregate("computed") == Aggregate("sum", "computed")
    with pytest.raises(Error, match="have to be computed first"):
        product.aggregate()
    with pytest.raises(UnknownNameError, match="no such aggregate, got 'maxx'"):
        Measure("m", "maxx", a).aggregate()


def test_user_aggregates_are_known_by_name() -> None:
    with pytest.raises(Error, match="no such function, got 'reach'"):
        parse_query("select reach(a) from A")

    @aggregate("reach", result="float64")
    class Reach:
        def empty() -> Any:  # type: ignore[misc]
            return (np.inf, -np.inf)

        def add(state: Any, x: Any) -> Any:  # type: ignore[misc]  # noqa: N805
            return (min(state[0], x), max(state[1], x))

        def result(state: Any) -> Any:  # type: ignore[misc]  # noqa: N805
            return state[1] - state[0]

    try:
        plan = parse_query("select reach(a) - min(a) as r from A")
        assert isinstance(plan, Project)
        assert isinstance(plan.source, GroupBy)
        assert plan.source.aggregates[0].aggregate() == Reach("a")  # type: ignore[call-arg]
    finally:
        del REGISTERED["reach"]


def test_walking_a_plan() -> None:
    joined = SimilarityJoin(Alias(A, "X"), Scan("B"), L1(1))
    plan = Filter(joined, Literal(True))
    assert list(plan.walk()) == [plan, joined, Alias(A, "X"), A, Scan("B")]
    assert joined_names(SimilarityJoin(joined, Scan("C"), L1(1))) == ["X", "B", "C"]


def test_plans_are_not_nested_for_ever() -> None:
    plan: Plan = A
    for _ in range(DEEPEST_PLAN - 1):
        plan = Filter(plan, Literal(True))
    with pytest.raises(SchemaError, match="levels deep"):
        Filter(plan, Literal(True))


IMPOSSIBLE: list[tuple[str, Callable[[], object]]] = [
    ("not a valid name", lambda: Scan("a b")),
    ("by version and by moment", lambda: Scan("A", 3, datetime(2026, 1, 1))),
    ("a number from 0", lambda: Scan("A", -1)),
    ("not a valid name", lambda: Alias(A, "")),
    ("needs ranges", lambda: Selection(A, ())),
    ("needs ranges", lambda: Selection(A, (Range("i", 1, 2), Range(None, 1, 2)))),
    ("names a dimension twice", lambda: Selection(A, (Range("i", 1, 2), Range("i", 1, 2)))),
    ("has no end", lambda: Range("i", None, None)),
    ("an index or a label, got true", lambda: Range("i", True, 2)),
    ("at least one column", lambda: Project(A, ())),
    ("two columns of one name, got 'c'", lambda: Project(A, (Output("c", a), Output("c", a)))),
    ("nothing to compute", lambda: GroupBy(A, (), ())),
    ("grouped by twice", lambda: GroupBy(A, (a, a), MAX)),
    ("unknown method, got 'fast'", lambda: Windowed(A, WindowSpec((AXIS,)), MAX, "fast")),
    ("at least one dimension", lambda: WindowSpec(())),
    ("some dimensions and not others", lambda: WindowSpec((AXIS, WindowAxis(None, Extent(0, 1))))),
    ("names a dimension twice", lambda: WindowSpec((AXIS, AXIS))),
    ("single dimensions, got boundary='wrap'", lambda: WindowSpec((AXIS,), "wrap")),
    ("must not be negative", lambda: WindowSpec((AXIS,), "clip", -1)),
    ("a step must be at least 1, got 0", lambda: WindowAxis("i", corner(2), 0)),
    ("size of a block must be at least 1", lambda: Block("i", 0)),
    ("at least one term", lambda: Neighbours(A, Shape(()), MAX)),
    ("must not be negative", lambda: Neighbours(A, L1(1), MAX, -1)),
    ("two sides of a join have one name, got 'A'", lambda: SimilarityJoin(A, A, L1(1))),
    ("needs a name", lambda: SimilarityJoin(Filter(A, a), Scan("B"), L1(1))),
    ("must be one array", lambda: SimilarityJoin(A, SimilarityJoin(Scan("B"), Scan("C"), L1(1)), L1(1))),
    ("unknown kind of join, got 'outer'", lambda: SimilarityJoin(A, Scan("B"), L1(1), None, "outer")),
    ("max needs a value", lambda: Measure("m", "max")),
    ("percentile needs a parameter", lambda: Measure("m", "percentile", a)),
    ("max takes no parameter, got 3", lambda: Measure("m", "max", a, 3)),
    ("must be finite", lambda: Measure("m", "percentile", a, float("nan"))),
    ("sets each of its attributes once", lambda: st.Update("A", (("a", a), ("a", a)))),
    ("sets each of its attributes once", lambda: st.Update("A", ())),
    ("a setting is given twice", lambda: st.Save(A, "x", (("a", 1), ("a", 2)))),
    ("needs cells", lambda: st.InsertCells("A", ())),
    ("needs coordinates", lambda: st.Cell(())),
    ("a row of values is empty", lambda: st.Load("A", ((),))),
    ("needs a file", lambda: st.ImportFiles((), "A")),
    ("nothing of that kind", lambda: st.List("tables")),
    ("of one array", lambda: st.List("versions")),
    ("of one array", lambda: st.List("arrays", "A")),
    ("unknown kind of plot, got 'pie'", lambda: st.Plot(A, None, "pie")),
    ("only arrays and views", lambda: st.Drop("A", "table")),
]


@pytest.mark.parametrize(("words", "make"), IMPOSSIBLE, ids=[f"{n} {w}" for n, (w, _) in enumerate(IMPOSSIBLE)])
def test_what_cannot_be_is_refused(words: str, make: Callable[[], object]) -> None:
    with pytest.raises(Error, match=words):
        make()
