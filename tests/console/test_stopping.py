"""Stopping and notices, without a terminal: the ways that a query can end."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from conftest import Connect
from windrow.console.session import stopping
from windrow.console.session.notices import SPARK_STARTS, Notices
from windrow.console.session.stopping import run_stoppable
from windrow.errors import CancelledError, DataError
from windrow.execution.executor import Job


def test_results_and_failures_come_back(connect: Connect) -> None:
    db = connect()
    assert run_stoppable(db, lambda: 42) == 42
    with pytest.raises(DataError, match="wrong"):
        run_stoppable(db, _fail)


def _fail() -> None:
    raise DataError("wrong")


def test_every_job_of_a_query_is_stopped(connect: Connect) -> None:
    """Also one that begins after Ctrl-C, as the next part of the same query."""
    db = connect()
    ended: list[type[BaseException]] = []
    running = threading.Event()

    def query() -> None:
        try:
            for _ in range(1000):
                running.set()
                db.engine.local.run(Job("waiting", time.sleep, [0.02, 0.02]))
        except BaseException as error:
            ended.append(type(error))
            raise

    with pytest.raises(KeyboardInterrupt):
        run_stoppable(db, lambda: _interrupted(running) or query())
    assert ended == [CancelledError]
    assert run_stoppable(db, lambda: db.engine.local.run(Job("again", abs, [-1, -2]))) == [1, 2]


def _interrupted(running: threading.Event) -> None:
    """Ctrl-C as soon as the query runs."""

    def interrupt() -> None:
        running.wait(30)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()


def test_what_cannot_be_stopped_is_left_behind(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    db = connect()
    running, released = threading.Event(), threading.Event()
    left: list[threading.Event] = []
    monkeypatch.setattr(stopping, "PATIENCE", 0.1)
    monkeypatch.setattr(stopping, "_left_behind", left)

    def stubborn() -> None:
        running.set()
        released.wait()  # however long this machine stands still meanwhile

    with pytest.raises(KeyboardInterrupt):
        run_stoppable(db, lambda: _interrupted(running) or stubborn())
    assert [ended.is_set() for ended in left] == [False]
    ends: list[int] = []
    monkeypatch.setattr(stopping.os, "_exit", ends.append)
    stopping.end_if_left_behind(130)
    assert ends == [130]
    released.set()
    assert left[0].wait(30)
    stopping.end_if_left_behind(130)
    assert ends == [130]


def test_notices(capsys: pytest.CaptureFixture[str]) -> None:
    notices, heard = Notices(), []
    notices._reporter = lambda label, done, total: heard.append((label, done, total))
    notices("before", 1, 2)
    notices.begin()
    notices(SPARK_STARTS, 0, 1)
    notices(SPARK_STARTS, 1, 1)
    notices("computing", 1, 4)
    notices.end()  # stopped: the bar is cleared away
    notices("computing", 2, 4)
    notices.begin()
    notices.wanted = False
    notices("hidden", 1, 2)
    notices.end()
    assert heard == [("computing", 1, 4), ("computing", 4, 4)]
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.splitlines()) == 1
    assert "Spark" in shown.err
