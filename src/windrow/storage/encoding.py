"""How columns of parts are encoded: keys as differences, values that repeat by a dictionary, LZ4 where that pays."""

from __future__ import annotations

from dataclasses import dataclass
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

COMPRESSED_SAMPLE = 65_536
"""Bytes of a column that are compressed to see what that gains."""

COMPRESSIBLE = 0.95
"""A column is compressed where that leaves at most so much of it: to undo what gains nothing still takes a copy."""


@dataclass(frozen=True)
class PartEncoding:
    """What the values of a part's first cells say of how its attributes are best stored."""

    varied: frozenset[str] = frozenset()
    """Attributes of few equal values, which no dictionary makes smaller."""
    incompressible: frozenset[str] = frozenset()
    """Those among them that compression does not make smaller either: measured floats, for the most part."""

    @classmethod
    def of_cells(cls, group: pa.Table, schema: Schema) -> PartEncoding:
        """The encoding that suits some cells in stored order."""
        varied = _varied_attributes(group, schema)
        return cls(frozenset(varied), frozenset(name for name in varied if not _is_compressible(group.column(name))))

    def options(self, schema: Schema) -> dict[str, Any]:
        """What Parquet's writer is told; benchmarks give the same to their peers."""
        keys = (CHUNK_COLUMN, *schema.dimension_names)
        names = (*keys, *schema.attribute_names)
        return {
            # Of all compressions this one takes the least time to undo.
            "compression": {name: "none" if name in self.incompressible else "lz4" for name in names},
            "use_dictionary": [name for name in schema.attribute_names if name not in self.varied] or False,
            # Keys rise slowly: as differences they take a quarter less, and are both written and read faster.
            "column_encoding": dict.fromkeys(keys, "DELTA_BINARY_PACKED"),
            "dictionary_pagesize_limit": DICTIONARY_BYTES,
            "write_page_checksum": True,
        }


def _is_compressible(column: pa.ChunkedArray) -> bool:
    """Whether the first values of a column take less room compressed."""
    some = column.slice(0, max(1, COMPRESSED_SAMPLE // column.type.byte_width)).combine_chunks()
    values = np.ascontiguousarray(some.drop_null().to_numpy(zero_copy_only=False))
    compressed = pa.Codec("lz4_raw").compress(pa.py_buffer(values))
    return bool(compressed.size <= COMPRESSIBLE * values.nbytes)


def _varied_attributes(group: pa.Table, schema: Schema) -> list[str]:
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
