"""Settings and fixtures shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Times vary too much on shared machines for a deadline to mean anything. On a developer's machine each run looks at
# new examples, and a failure prints the blob that repeats it. A CI run looks at the same ones each time, so that what
# stops a change from landing is the change. `thorough` searches widely, at random.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile(
    "ci",
    settings.get_profile("default"),
    derandomize=True,
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", settings.get_profile("default"), max_examples=1000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default"))

# No test may open a window.
os.environ.setdefault("MPLBACKEND", "Agg")

Connect = Callable[..., Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that start Spark come first: they take longest, and at the end one worker would wait for the other's."""
    long = {item.path for item in items if item.get_closest_marker("spark")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """One Spark session for all tests that need one; two partitions are enough for data that fits a screen."""
    from windrow.execution.session import start_session

    session = start_session(2, 2 * 2**30)
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> str:
    """Where work runs: each test that uses it runs on both."""
    name: str = request.param
    return name


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[Connect]:
    """Opens connections to one warehouse of the test's own, in this process unless told otherwise."""
    import windrow as wr

    opened = []

    def open_connection(**options: Any) -> wr.Database:
        database = wr.connect(tmp_path / "warehouse", **({"engine": "local", "progress": False} | options))
        opened.append(database)
        return database

    yield open_connection
    for database in opened:
        database.close()


@pytest.fixture
def database(connect: Connect, engine: str, request: pytest.FixtureRequest) -> Any:
    """A connection to an empty warehouse, on each engine."""
    return _connected(connect, engine, request)


@pytest.fixture(params=["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow])])
def patient_database(connect: Connect, request: pytest.FixtureRequest) -> Any:
    """The same for tests that take many small steps, which on Spark are slow."""
    return _connected(connect, request.param, request)


def _connected(connect: Connect, engine: str, request: pytest.FixtureRequest) -> Any:
    if engine == "local":
        return connect()
    return connect(engine="spark", spark=request.getfixturevalue("spark_session"))


@pytest.fixture
def local(connect: Connect) -> Any:
    """A connection to an empty warehouse whose work runs in this process."""
    return connect()
