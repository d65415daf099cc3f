"""The answers in ``cases``, found a second time by DuckDB from the SQL beside each question.

Nothing of windrow computes here: a mistake in it cannot be in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from windrow.errors import LanguageError
from windrow.language.parser import parse
from windrow.plan import statements as st
from windrow.plan.grouping.ordering import Ordered

from .answers import Case, cases

FILES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
CHANGES = (st.Load, st.LoadFile, st.ImportFiles, st.InsertCells, st.InsertFile, st.InsertQuery, st.Delete, st.Update)
DEFINITIONS = """
create macro present(v) as list_sort(list_filter(v, lambda x: x is not null));
create macro nearest_rank(v, p) as present(v)[least(len(present(v)), floor(p * len(present(v)) / 100 + 1))::int];
create macro at_index(v, q) as present(v)[floor(q * (len(present(v)) - 1))::int + 1];
create macro commonest(v) as
  (select x from (select unnest(present(v)) as x) group by x order by count(*) desc, x limit 1);
"""
"""The design's own rules: percentile by nearest rank, quantile_index, and the smallest of the most frequent values."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_sql_gives_the_same_answers(path: Path) -> None:
    with duckdb.connect() as database:
        database.execute(DEFINITIONS)
        for case in cases(path):
            if case.twin:
                found = database.execute(case.twin)
                columns = [column[0] for column in found.description or ()]
                check(case, columns, found.fetchall())


def check(case: Case, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
    place = f"line {case.line}: {case.statement}"
    changed = re.match(r"\w+ \w+: (\d+)", case.answer)
    if changed:
        assert rows[0][0] == int(changed[1]), place
    elif not isinstance(asked := parse(case.statement), (st.CreateArray, st.CreateView, st.Refresh, st.Drop)):
        in_order = isinstance(asked, st.Query) and isinstance(asked.plan, Ordered)
        rows = rows if in_order or "change" in columns else sorted(rows, key=order)
        assert "\n".join(shown(case, columns, rows)) == case.answer, place


def order(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Rows in the order of their coordinates, which come first and are never missing."""
    return tuple((value is not None, value) for value in row)


def shown(case: Case, columns: list[str], rows: list[tuple[Any, ...]]) -> Iterator[str]:
    """Rows of coordinates and attributes as the answers are written."""
    if not re.match(r"\w+:", case.answer):
        yield " ".join(columns)
        yield from (" ".join(map(text, row)).rstrip() for row in rows)
        return
    attributes = [name for name in columns if re.search(rf"^{name}:", case.answer, re.MULTILINE)]
    dimensions = columns.index(attributes[0])
    for name in attributes:
        values = [text(row[columns.index(name)]) for row in rows]
        if dimensions < 2:
            yield f"{name}: {' '.join(values)}".rstrip()
            continue
        yield f"{name}:"
        width = len({row[dimensions - 1] for row in rows})
        starts = range(0, len(values), max(1, width))
        yield from ("  " + " ".join(values[start : start + width]).rstrip() for start in starts)


def text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | Decimal):
        return f"{value:.6g}"
    return value.isoformat() if isinstance(value, datetime) else str(value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_question_about_cells_has_sql(path: Path) -> None:
    lacking = []
    for case in cases(path):
        if case.answer.startswith("error: ") or case.twin:
            continue
        statement = parse(case.statement)
        if isinstance(statement, (st.Query, st.CreateFrom, *CHANGES)) and "applied before" not in case.answer:
            lacking.append(f"line {case.line}: {case.statement}")
    assert lacking == []


def test_mistakes_need_no_sql() -> None:
    for path in FILES:
        for case in cases(path):
            try:
                parse(case.statement)
            except LanguageError:
                assert not case.twin
