"""What the doctor says of each thing that was looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """One thing looked at: how it is, and how to mend it."""

    subject: str
    state: State
    text: str
    mend: str | None = None


def check_all(warehouse: str, *, start_spark: bool = True, repair: bool = False) -> Iterator[Finding]:
    """Look at Java, Spark, packages, memory, disk and a warehouse; each finding comes when it is made.

    ``repair`` first mends arrays of the warehouse that can be mended.
    """
    from windrow.api.doctor import machine
    from windrow.api.doctor.warehouse import check_warehouse, repair_warehouse

    yield from machine.check_java()
    if start_spark:
        yield from machine.check_spark()
    yield from machine.check_packages()
    yield from machine.check_memory()
    yield from machine.check_temporary()
    yield from machine.check_disk(warehouse)
    if repair:
        yield from repair_warehouse(warehouse)
    yield from check_warehouse(warehouse)
