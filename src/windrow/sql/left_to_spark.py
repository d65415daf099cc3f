"""Windows that stay Spark's: why, and how many tasks that is."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from windrow.aggregates.positions import NAMES as POSITIONS
from windrow.sql.over_clauses import KNOWN, PREFIX, partition_of, unwrap_call
from windrow.sql.reading import Reading


def tell_sparks(reading: Reading, window: exp.Window, named: Mapping[str, exp.Window]) -> str:
    """A window that Spark computes, for ``explain``."""
    name = unwrap_call(window.this).name
    keys = ", ".join(reading.label(key) for key in partition_of(reading, window, named))
    where = f"a task for each value of {keys}" if keys else "in one task"
    if name not in KNOWN and name not in POSITIONS:
        why = f"windrow has no {name}" if name else "windrow has no such function"
    elif keys:
        why = f"which is quick where no value has most of the rows; {PREFIX}{name} divides those too"
    else:
        why = f"windrow has no such form of {name}"
    return f"spark    {reading.label(window)}, {where}: {why}"
