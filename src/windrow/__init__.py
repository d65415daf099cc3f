"""windrow: an array database and analytics engine on Apache Spark.

Names are loaded when they are first used, so that ``import windrow`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from windrow.api import accessor_hook

__version__ = "0.1.0"

if TYPE_CHECKING:
    from windrow.aggregates.aggregate import (
        Aggregate,
        avg,
        count,
        count_distinct,
        max,
        median,
        min,
        mode,
        percentile,
        quantile_cont,
        quantile_disc,
        quantile_index,
        std,
        std_pop,
        sum,
        var,
        var_pop,
    )
    from windrow.aggregates.user import aggregate
    from windrow.api.array import Array, Location
    from windrow.api.batch import Batch, Report
    from windrow.api.database import Database, connect
    from windrow.api.framed import framed
    from windrow.api.query import Query, Windowed
    from windrow.api.sliding import sliding
    from windrow.errors import (
        CancelledError,
        ConflictError,
        CorruptionError,
        DataError,
        DuplicateError,
        Error,
        ExpressionError,
        FileFormatError,
        LanguageError,
        MachineError,
        MemoryLimitError,
        SchemaError,
        StoreError,
        UnknownNameError,
    )
    from windrow.model.box import Box
    from windrow.model.gridding import Gridding
    from windrow.model.labels import Labels
    from windrow.model.schema import Attribute, Dimension, Schema
    from windrow.model.shape import L1, L2, Hamming, Linf, offset_list, offsets
    from windrow.model.window import between, centred, corner, trailing, within
    from windrow.tables.frames import Frame, following, frames, preceding
    from windrow.tables.table_function import register

_HOMES = {
    "windrow.aggregates.aggregate": (
        "Aggregate",
        "avg",
        "count",
        "count_distinct",
        "max",
        "median",
        "min",
        "mode",
        "percentile",
        "quantile_cont",
        "quantile_disc",
        "quantile_index",
        "std",
        "std_pop",
        "sum",
        "var",
        "var_pop",
    ),
    "windrow.aggregates.user": ("aggregate",),
    "windrow.api.array": ("Array", "Location"),
    "windrow.api.batch": ("Batch", "Report"),
    "windrow.api.database": ("Database", "connect"),
    "windrow.api.framed": ("framed",),
    "windrow.tables.frames": ("Frame", "following", "frames", "preceding"),
    "windrow.api.query": ("Query", "Windowed"),
    "windrow.api.sliding": ("sliding",),
    "windrow.tables.table_function": ("register",),
    "windrow.errors": (
        "CancelledError",
        "ConflictError",
        "CorruptionError",
        "DataError",
        "DuplicateError",
        "Error",
        "ExpressionError",
        "FileFormatError",
        "LanguageError",
        "MachineError",
        "MemoryLimitError",
        "SchemaError",
        "StoreError",
        "UnknownNameError",
    ),
    "windrow.model.box": ("Box",),
    "windrow.model.gridding": ("Gridding",),
    "windrow.model.labels": ("Labels",),
    "windrow.model.schema": ("Attribute", "Dimension", "Schema"),
    "windrow.model.shape": ("L1", "L2", "Hamming", "Linf", "offset_list", "offsets"),
    "windrow.model.window": ("between", "centred", "corner", "trailing", "within"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "L1",
    "L2",
    "Aggregate",
    "Array",
    "Attribute",
    "Batch",
    "Box",
    "CancelledError",
    "ConflictError",
    "CorruptionError",
    "DataError",
    "Database",
    "Dimension",
    "DuplicateError",
    "Error",
    "ExpressionError",
    "FileFormatError",
    "Frame",
    "Gridding",
    "Hamming",
    "Labels",
    "LanguageError",
    "Linf",
    "Location",
    "MachineError",
    "MemoryLimitError",
    "Query",
    "Report",
    "Schema",
    "SchemaError",
    "StoreError",
    "UnknownNameError",
    "Windowed",
    "aggregate",
    "avg",
    "between",
    "centred",
    "connect",
    "corner",
    "count",
    "count_distinct",
    "following",
    "framed",
    "frames",
    "max",
    "median",
    "min",
    "mode",
    "offset_list",
    "offsets",
    "percentile",
    "preceding",
    "quantile_cont",
    "quantile_disc",
    "quantile_index",
    "register",
    "sliding",
    "std",
    "std_pop",
    "sum",
    "trailing",
    "var",
    "var_pop",
    "within",
]


accessor_hook.install()


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'windrow' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
