"""How the columns of parts are encoded: keys as differences, values that repeat by a dictionary, and LZ4 over all."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.model.schema import CHUNK_COLUMN, Schema

DICTIONARY_BYTES = 65_536
"""Values too varied for a dictionary of this size are stored as they are: smaller, and faster both ways."""

SAMPLED, FEWEST_SAMPLED = 512, 64
"""Values that are looked at to tell how often they repeat, and how many there must be to tell."""

WORTHWHILE = 0.75
"""A dictionary is made where values and their places in it take at most so much of what the values take alone."""


def part_options(schema: Schema, varied: Collection[str] = ()) -> dict[str, Any]:
    """How parts are encoded; benchmarks give the same to their peers. ``varied`` are attributes of few equal values."""
    return {
        # Values that were measured hardly get smaller by any compression; this one takes the least time to undo.
        "compression": "lz4",
        "use_dictionary": [name for name in schema.attribute_names if name not in varied] or False,
        # Keys rise slowly: as differences they take a quarter less, and are both written and read faster.
        "column_encoding": dict.fromkeys((CHUNK_COLUMN, *schema.dimension_names), "DELTA_BINARY_PACKED"),
        "dictionary_pagesize_limit": DICTIONARY_BYTES,
        "write_page_checksum": True,
    }


def varied_attributes(group: pa.Table, schema: Schema) -> list[str]:
    """Numbers that hardly repeat, by some of them: a dictionary of such takes longer to write, to read and to store."""
    found = []
    for attribute in schema.attributes:
        if attribute.type.is_number:
            column = group.column(attribute.name)
            some = column.take(pa.array(np.arange(0, len(column), -(-len(column) // SAMPLED))))
            width = attribute.type.dtype.itemsize
            if len(some) >= FEWEST_SAMPLED and not _repays_dictionary(len(column), width, some):
                found.append(attribute.name)
    return found


def _repays_dictionary(rows: int, width: int, some: pa.ChunkedArray) -> bool:
    """Among so many values drawn from a number of equally frequent ones, about half their square over that number
    come again (the birthday problem): how often they do tells how many there are."""
    again = len(some) - len(some.unique())
    distinct = min(rows, len(some) ** 2 / 2 / max(again, 0.5))
    places = rows * max(1.0, np.log2(distinct)) / 8
    return bool(distinct * width + places <= WORTHWHILE * rows * width)
