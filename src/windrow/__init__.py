"""windrow: an array database and analytics engine on Apache Spark.

Names are loaded when they are first used, so that ``import windrow`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING

from windrow.api.accessor import hook as accessor_hook

__version__ = "0.1.0"

if TYPE_CHECKING:
    from windrow.aggregates.aggregate import (
        Aggregate,
        avg,
        corr,
        count,
        count_distinct,
        covar,
        covar_pop,
        first,
        kurtosis,
        last,
        max,
        median,
        min,
        mode,
        percentile,
        quantile,
        quantile_cont,
        quantile_disc,
        quantile_index,
        range,
        skew,
        std,
        std_pop,
        sum,
        var,
        var_pop,
    )
    from windrow.aggregates.positions import (
        cume_dist,
        dense_rank,
        first_value,
        lag,
        last_value,
        lead,
        nth_value,
        ntile,
        percent_rank,
        rank,
        row_number,
    )
    from windrow.aggregates.user import aggregate
    from windrow.api.array import Array
    from windrow.api.batch import Batch
    from windrow.api.database import Database, connect
    from windrow.api.framed import framed
    from windrow.api.query import Query, Windowed
    from windrow.api.reports import Report
    from windrow.api.selected import Selected
    from windrow.api.sliding import sliding
    from windrow.api.views import View
    from windrow.dataframes.frames import frames
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
        StaleViewWarning,
        StoreError,
        UnknownNameError,
    )
    from windrow.model.box import Box
    from windrow.model.frame import Frame, following, preceding
    from windrow.model.gridding import Gridding
    from windrow.model.labels import Labels
    from windrow.model.schema import Attribute, Dimension, Schema
    from windrow.model.shape import L1, L2, Hamming, Linf, Lp, any_offset, offset_list, offsets, shape, sky
    from windrow.model.window import between, centred, corner, trailing, within
    from windrow.plan.operators import operator
    from windrow.sql.table_function import register

_HOMES = {
    "windrow.aggregates.aggregate": (
        "Aggregate",
        "avg",
        "skew",
        "range",
        "quantile",
        "last",
        "kurtosis",
        "first",
        "covar_pop",
        "covar",
        "corr",
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
    "windrow.aggregates.positions": (
        "cume_dist",
        "dense_rank",
        "first_value",
        "lag",
        "last_value",
        "lead",
        "nth_value",
        "ntile",
        "percent_rank",
        "rank",
        "row_number",
    ),
    "windrow.aggregates.user": ("aggregate",),
    "windrow.api.array": ("Array",),
    "windrow.views.location": ("Location",),
    "windrow.api.batch": ("Batch",),
    "windrow.api.reports": ("Report",),
    "windrow.api.database": ("Database", "connect"),
    "windrow.api.framed": ("framed",),
    "windrow.dataframes.frames": ("frames",),
    "windrow.api.query": ("Query", "Windowed"),
    "windrow.api.selected": ("Selected",),
    "windrow.api.sliding": ("sliding",),
    "windrow.api.views": ("View",),
    "windrow.plan.operators": ("operator",),
    "windrow.sql.table_function": ("register",),
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
        "StaleViewWarning",
        "StoreError",
        "UnknownNameError",
    ),
    "windrow.model.box": ("Box",),
    "windrow.model.frame": ("Frame", "following", "preceding"),
    "windrow.model.gridding": ("Gridding",),
    "windrow.model.labels": ("Labels",),
    "windrow.model.schema": ("Attribute", "Dimension", "Schema"),
    "windrow.model.shape": (
        "L1",
        "L2",
        "Hamming",
        "Linf",
        "Lp",
        "any_offset",
        "offset_list",
        "offsets",
        "shape",
        "sky",
    ),
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
    "Lp",
    "MachineError",
    "MemoryLimitError",
    "Query",
    "Report",
    "Schema",
    "SchemaError",
    "Selected",
    "StaleViewWarning",
    "StoreError",
    "UnknownNameError",
    "View",
    "Windowed",
    "aggregate",
    "any_offset",
    "avg",
    "between",
    "centred",
    "connect",
    "corner",
    "corr",
    "count",
    "count_distinct",
    "covar",
    "covar_pop",
    "cume_dist",
    "dense_rank",
    "first",
    "first_value",
    "following",
    "framed",
    "frames",
    "kurtosis",
    "lag",
    "last",
    "last_value",
    "lead",
    "max",
    "median",
    "min",
    "mode",
    "nth_value",
    "ntile",
    "offset_list",
    "offsets",
    "operator",
    "percent_rank",
    "percentile",
    "preceding",
    "quantile",
    "quantile_cont",
    "quantile_disc",
    "quantile_index",
    "range",
    "rank",
    "register",
    "row_number",
    "shape",
    "skew",
    "sky",
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
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
    else:
        value = _aggregate_function(name)
        if value is None:
            raise AttributeError(f"module 'windrow' has no attribute {name!r}")
    globals()[name] = value
    return value


def _aggregate_function(name: str) -> object:
    """An aggregate that has no function written out for it is called by what the registry says of it."""
    if name.startswith("_") or find_spec(f"windrow.{name}") is not None:
        return None
    from windrow.aggregates.aggregate import function_of

    return function_of(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
