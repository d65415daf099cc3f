"""``windrow sql``, and ``sql …`` as a statement: the queries of ``db.sql`` from a terminal."""

from __future__ import annotations

import csv
import io
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import windrow as wr
from console.runs import PROCESS, environment, windrow
from windrow.api.session.completion import next_words
from windrow.api.session.statements import Session
from windrow.api.sql_queries import SqlResult, register_table
from windrow.console.commands.settings import Settings
from windrow.console.render.formats import write_rows
from windrow.console.session.running import Console
from windrow.console.session.viewing import Limits, rows_view
from windrow.language.parser import parse
from windrow.plan.statements import Sql


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tables")
    day = np.arange(60)
    table = pa.table({"day": day, "delay": day * 31 % 17, "kind": ["a", "b"] * 30})
    pq.write_table(table, place / "flights.parquet")
    pa.csv.write_csv(table, place / "flights.csv")
    write_deltalake(place / "delta", table.slice(0, 40), partition_by=["kind"])
    write_deltalake(place / "delta", table.slice(40), mode="append")
    return place


@pytest.fixture(scope="module")
def db(spark_session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with wr.connect(tmp_path_factory.mktemp("sql"), spark=spark_session, engine="spark", progress=False) as database:
        database.create("A", "<a: float64> [i=1:4]").write({"a": np.array([4.0, 1.0, 3.0, 2.0])})
        yield database


def test_a_statement_of_sql_is_read_and_printed() -> None:
    for text in ("sql select 1", "SQL select `A@3`.a from `A@3` -- why"):
        found = parse(text)
        assert isinstance(found, Sql)
        assert parse(str(found)) == found
    assert "sql" in next_words(None, "", "")
    assert "mode(" in next_words(None, "sql select ", "sql select ")


@pytest.mark.parametrize("options", [["--table", "t"], ["--table", "t=a.csv", "--table", "t=b.csv"]])
def test_a_table_that_is_not_named_and_placed_is_a_wrong_command(options: list[str]) -> None:
    assert windrow("sql", "select 1", *options).exit_code == 2


def test_files_that_are_no_tables_are_refused(db: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no table")
    (tmp_path / "broken.parquet").write_text("no table")
    for name, path, told in [
        ("t", "nowhere.parquet", "there is no such file"),
        ("t", tmp_path / "notes.txt", "no table that windrow can read"),
        ("A", tmp_path / "notes.txt", "an array has that name"),
        ("a b", tmp_path / "notes.txt", "a table's name is a word"),
    ]:
        with pytest.raises(wr.Error, match=told):
            register_table(db, name, str(path))


@pytest.mark.spark
def test_parquet_csv_and_delta_are_the_same_table(db: Any, files: Path) -> None:
    answers = []
    for name in ("flights.parquet", "flights.csv", "delta"):
        register_table(db, "flights", str(files / name))
        over = "median(delay) over (order by day rows 6 preceding) as m"
        found = db.query(f"sql select day, kind, {over} from flights order by day")
        assert isinstance(found, SqlResult)
        stream = io.BytesIO()
        assert write_rows(found, "csv", stream) == 60
        answers.append(list(csv.reader(io.StringIO(stream.getvalue().decode()))))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][:3] == [["day", "kind", "m"], ["0", "a", "0"], ["1", "b", "7"]]


@pytest.mark.spark
def test_arrays_are_tables_and_only_the_first_rows_are_shown(db: Any) -> None:
    seen = rows_view(db.query("sql select i, sum(a) over (order by i) as s from A order by i"), Limits(rows=2))
    assert [line.text.split() for line in seen.lines][-3:] == [["1", "4"], ["2", "5"], ["…", "more", "rows"]]
    told = rows_view(db.query("sql explain select median(a) over (order by i) as m from A"), Limits())
    assert told.lines[0].text.startswith("windrow  array A")
    assert [line.text for line in rows_view(db.query("sql select a from A where a > 9"), Limits()).lines] == ["no rows"]
    assert str(db.query("sql create or replace temporary view late as select 1 as x")) == "done"


@pytest.mark.spark
def test_sql_does_not_see_an_open_batch(db: Any) -> None:
    db.query("begin")
    with pytest.raises(wr.DataError, match="does not see the open batch"):
        db.query("sql select 1")
    db.query("rollback")


@pytest.mark.spark
def test_a_script_runs_up_to_its_first_mistake(db: Any, files: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    script = (
        "-- paper 003, from a terminal\n"
        "create or replace temporary view late as select * from t where delay > 8;\n"
        "select count(distinct delay) over (order by day rows 3 preceding) as n from late order by day limit 2;\n"
        "select medain(delay) over (order by day) from late; select 1"
    )
    console = Console(Settings(format="json"))
    console._session = Session(db, options={"format": "json", "timing": "off"})
    assert console.run_sql(script, "queries.sql", {"t": str(files / "flights.parquet")}) == 1
    printed = capfdbinary.readouterr()
    assert printed.out.splitlines() == [b'{"n": 1}', b'{"n": 2}']
    assert b"Did you mean 'median'?" in printed.err
    assert console.run_sql("select 1", None, {"A": str(files / "flights.csv")}) == 1


@pytest.mark.spark
@pytest.mark.slow
def test_as_a_process_without_a_warehouse(files: Path, tmp_path: Path) -> None:
    query = "select mode(kind) as m, quantile(delay, 0.5) as q from t"
    command = [*PROCESS, "sql", query, "--table", f"t={files / 'flights.parquet'}", "--format", "csv"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=900)
    assert (ran.returncode, ran.stdout.splitlines()) == (0, ['"m","q"', '"a",8'])
    assert not (tmp_path / "warehouse").exists()
