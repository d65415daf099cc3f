"""Parts: the Parquet files of a sparse array.

A part holds a contiguous range of chunks, sorted; a row group holds whole chunks, up to about 65,000 cells, so that a
box is read by a few row groups. Pages carry checksums. A part never changes: cells that are replaced or deleted later
are marked in its vector, and readers leave those rows out.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import CorruptionError
from windrow.model.box import Box
from windrow.model.schema import CHUNK_COLUMN, Schema
from windrow.storage.cells import coordinates, from_stored, stored_fields
from windrow.storage.delta.vectors import read_rows
from windrow.storage.failures import vector_failures
from windrow.storage.footers import Footer, read_footer
from windrow.storage.records import Int64Array, Part

_FEW_CHUNKS = 10_000

MASKED_CELLS = 262_144
"""Cells that are decoded together for kernels: what each call costs then hardly counts, and they stay in the cache."""


@dataclass(frozen=True)
class PartReader:
    """Reads the parts of one version; errors name ``title`` ("A@3"). It pickles."""

    title: str
    directory: str
    schema: Schema

    def batches(
        self,
        part: Part,
        box: Box | None = None,
        columns: Iterable[str] | None = None,
        chunks: Int64Array | None = None,
    ) -> Iterator[pa.Table]:
        """The live cells of a part that lie in ``box``, one table per row group that may hold any, as stored.

        ``chunks`` (ordinals, ascending) leaves out the cells of all others.
        """
        for table, mask, _ in self._masked_groups(part, box, columns, chunks):
            yield table if mask is None else table.filter(pa.array(mask))

    def numbered_batches(
        self, part: Part, box: Box | None = None, columns: Iterable[str] | None = None
    ) -> Iterator[tuple[pa.Table, Int64Array]]:
        """The same, with the row numbers that the cells have in the part."""
        for table, mask, start in self._masked_groups(part, box, columns):
            if mask is None:
                yield table, np.arange(start, start + table.num_rows)
            else:
                yield table.filter(pa.array(mask)), np.flatnonzero(mask) + start

    def _masked_groups(
        self,
        part: Part,
        box: Box | None,
        columns: Iterable[str] | None,
        chunks: Int64Array | None = None,
    ) -> Iterator[tuple[pa.Table, npt.NDArray[np.bool_] | None, int]]:
        """Row groups that may hold cells in ``box``, which rows of each are such (None: all), and its first row."""
        dead = self.dead_rows(part)
        groups = None if box is None else functools.partial(self._groups_touching, box, chunks)
        names = list(stored_fields(self.schema).names if columns is None else columns)
        needed = names if box is None else list(dict.fromkeys([*names, *self.schema.dimension_names]))
        if chunks is not None:
            needed = list(dict.fromkeys([*needed, CHUNK_COLUMN]))
        for table, start in self._row_groups(part, groups, needed):
            gone = dead[slice(*np.searchsorted(dead, (start, start + table.num_rows)))]
            mask = None
            if len(gone) or box is not None or chunks is not None:
                mask = _mask_of_box(table, self.schema, box)
                mask[gone - start] = False
                if chunks is not None:
                    mask &= _mask_of_chunks(table, chunks)
                mask = None if mask.all() else mask
            yield table.select(names), mask, start

    def chunk_batches(self, part: Part, ordinals: Int64Array) -> Iterator[pa.Table]:
        """The live cells of some chunks (ordinals ascending), one table per row group that may hold any, as stored."""
        dead = self.dead_rows(part)

        def holding(footer: Footer) -> Sequence[int]:
            lowest, highest = footer.bounds
            held = np.searchsorted(ordinals, lowest[:, 0], "left") < np.searchsorted(ordinals, highest[:, 0], "right")
            groups: list[int] = np.flatnonzero(held).tolist()
            return groups

        for table, start in self._row_groups(part, holding, list(stored_fields(self.schema).names)):
            mask = _mask_of_chunks(table, ordinals)
            mask[dead[slice(*np.searchsorted(dead, (start, start + table.num_rows)))] - start] = False
            if mask.any():
                yield table if mask.all() else table.filter(pa.array(mask))

    def masked_batches(
        self, part: Part, box: Box | None, columns: Sequence[str]
    ) -> Iterator[tuple[pa.Table, npt.NDArray[np.bool_] | None]]:
        """Row groups that may hold cells in ``box``, several together, as stored, and which rows are live cells of it;
        None: all are.

        Coordinates are read where they are asked for, and of parts that lie across a border of the box.
        """
        dead = self.dead_rows(part)
        whole = box is None or part.box in box
        groups = None if whole or box is None else functools.partial(self._groups_touching, box, None)
        needed = list(columns if whole else dict.fromkeys([*columns, *self.schema.dimension_names]))
        for table, start in self._row_groups(part, groups, needed or [CHUNK_COLUMN], MASKED_CELLS):
            mask = None if whole else _mask_of_box(table, self.schema, box)
            gone = dead[slice(*np.searchsorted(dead, (start, start + table.num_rows)))] if len(dead) else dead
            if len(gone):
                mask = np.ones(table.num_rows, bool) if mask is None else mask
                mask[gone - start] = False
            yield table if whole or not columns else table.select(list(columns)), mask

    def take(self, part: Part, rows: Int64Array, columns: Iterable[str] | None = None) -> pa.Table:
        """Some rows of a part by their numbers, ascending, as stored, whether they are dead or alive."""
        names = list(stored_fields(self.schema).names if columns is None else columns)
        tables = [stored_fields(self.schema).empty_table().select(names)]
        for table, start in self._row_groups(part, functools.partial(_groups_holding, rows), names):
            here = rows[slice(*np.searchsorted(rows, (start, start + table.num_rows)))]
            tables.append(table if len(here) == table.num_rows else table.take(pa.array(here - start)))
        return pa.concat_tables(tables)

    def offsets(self, part: Part, rows: Int64Array) -> Int64Array:
        """Where rows of a part, by their numbers, ascending, lie inside their chunks; only their groups are decoded."""
        pieces = [np.empty(0, np.int64)]
        names = list(self.schema.dimension_names)
        for table, start in self._row_groups(part, functools.partial(_groups_holding, rows), names):
            here = rows[slice(*np.searchsorted(rows, (start, start + table.num_rows)))] - start
            pieces.append(self.schema.grid.offsets([column.take(here) for column in coordinates(table, self.schema)]))
        return np.concatenate(pieces)

    def live_rows(self, part: Part, start: int = 0, stop: int | None = None) -> Int64Array:
        """The numbers of the rows that are cells, in all of a part or from ``start`` up to ``stop``."""
        end = part.cells if stop is None else stop
        dead = self.dead_rows(part)
        alive = np.ones(end - start, bool)
        alive[dead[slice(*np.searchsorted(dead, (start, end)))] - start] = False
        return np.flatnonzero(alive) + start

    def _groups_touching(self, box: Box, chunks: Int64Array | None, footer: Footer) -> Sequence[int]:
        return footer.groups_touching(box, self._chunks_touching(box) if chunks is None else chunks)

    def _row_groups(
        self, part: Part, choose: Callable[[Footer], Sequence[int]] | None, names: list[str], cells: int = 1
    ) -> Iterator[tuple[pa.Table, int]]:
        """The chosen row groups of a part, each with the number of its first row.

        Those that follow one another come together, until they have so many cells.
        """
        import pyarrow.parquet as pq

        group = -1
        try:
            footer = self._footer(part)
            chosen = range(footer.metadata.num_row_groups) if choose is None else choose(footer)
            if not chosen:
                return
            path = os.path.join(self.directory, part.path)
            # A part never changes, so that its pages are checked once; a footer is forgotten when its file changes.
            known = {(group, name) for group in chosen for name in names} <= footer.checked
            options = {"metadata": footer.metadata, "page_checksum_verification": not known}
            # What is mapped into memory is there already: fetching it before it is needed would copy it.
            with pq.ParquetFile(path, memory_map=True, pre_buffer=False, **options) as file:
                for together in _gather_groups(chosen, footer, cells):
                    try:
                        table = file.read_row_groups(together, columns=names, use_threads=False)
                    except (OSError, pa.ArrowException):
                        for group in together:  # the one that is damaged fails by itself, too
                            file.read_row_group(group, columns=names, use_threads=False)
                        raise
                    yield table, int(footer.starts[together[0]])
                    if not known:
                        footer.checked.update((group, name) for group in together for name in names)
        except (OSError, pa.ArrowException) as error:
            raise self._damage(part, group, error) from error

    def dead_rows(self, part: Part) -> Int64Array:
        """The numbers of the rows that are no cells any more, ascending."""
        with vector_failures(self.title, part.path, part.vector):
            return read_rows(self.directory, part.vector).astype(np.int64)

    def read(
        self,
        part: Part,
        box: Box | None = None,
        columns: Iterable[str] | None = None,
        chunks: Int64Array | None = None,
    ) -> pa.Table:
        """The live cells of a part that lie in ``box``, and in some chunks if these are told, in windrow's types."""
        names = [*self.schema.dimension_names, *self.schema.attribute_names] if columns is None else list(columns)
        tables = list(self.batches(part, box, names, chunks))
        if not tables:
            fields = stored_fields(self.schema)
            tables = [pa.schema([fields.field(name) for name in names]).empty_table()]
        return from_stored(pa.concat_tables(tables), self.schema)

    def check(self, part: Part) -> None:
        """Refuse a part that is not whole, or has no whole vector, by reading all of it."""
        for _ in self.batches(part):
            pass

    def check_footer(self, part: Part) -> None:
        """Refuse a part whose footer is damaged: Arrow could crash on it."""
        try:
            self._footer(part)
        except OSError as error:
            raise self._damage(part, -1, error) from error

    def _footer(self, part: Part) -> Footer:
        return read_footer(os.path.join(self.directory, part.path), part.checksum, self.schema.ndim)

    def _chunks_touching(self, box: Box) -> Int64Array | None:
        """The chunks a box touches, if they are few: a row group's bounds are those of a run of chunks, so that a
        group may seem to reach into a box that none of its chunks touches."""
        grid = self.schema.grid
        few = not grid.clip(box).is_empty and grid.key_box(box).size <= _FEW_CHUNKS
        return grid.ordinals_touching(box) if few else None

    def _damage(self, part: Part, group: int, error: Exception) -> CorruptionError:
        grid = self.schema.grid
        try:
            first, last = map(grid.key, self._footer(part).chunks(max(group, 0)))
        except Exception:  # the part's footer is damaged too: its box is all that is known
            first, last = grid.key_of(part.box.lo), grid.key_of(part.box.hi)
            chunks = f"chunks {first} to {last}"
        else:
            chunks = f"chunk {first}" if first == last else f"chunks {first} to {last}"
        return CorruptionError(
            f"array {self.title}: {chunks}, cells within {part.box}, damaged in {part.path}",
            got=(str(error).splitlines() or [type(error).__name__])[0][:200],
            hint="Read an older version, or restore the warehouse from a copy",
        )


def _gather_groups(chosen: Sequence[int], footer: Footer, cells: int) -> Iterator[list[int]]:
    """Row groups that follow one another, together until they have so many cells."""
    ends = np.append(footer.starts[1:], footer.metadata.num_rows)
    together: list[int] = []
    for group in chosen:
        if together and (group != together[-1] + 1 or ends[together[-1]] - footer.starts[together[0]] >= cells):
            yield together
            together = []
        together.append(group)
    if together:
        yield together


def _groups_holding(rows: Int64Array, footer: Footer) -> Sequence[int]:
    counts = np.diff(np.searchsorted(rows, np.append(footer.starts, footer.metadata.num_rows)))
    groups: list[int] = np.flatnonzero(counts).tolist()
    return groups


def _mask_of_chunks(table: pa.Table, chunks: Int64Array) -> npt.NDArray[np.bool_]:
    """Which rows, in the order of their chunks, are in one of some chunks (ascending)."""
    if not len(chunks):
        return np.zeros(table.num_rows, bool)
    ordinals = table.column(CHUNK_COLUMN).to_numpy()
    starts = np.flatnonzero(np.diff(ordinals, prepend=ordinals[:1] - 1))
    own = ordinals[starts]
    known = chunks[np.minimum(np.searchsorted(chunks, own), len(chunks) - 1)] == own
    return np.repeat(known, np.diff(starts, append=len(ordinals)))


def _mask_of_box(table: pa.Table, schema: Schema, box: Box | None) -> npt.NDArray[np.bool_]:
    mask = np.ones(table.num_rows, bool)
    if box is not None:
        for column, lo, hi in zip(coordinates(table, schema), box.lo, box.hi, strict=True):
            mask &= (column >= lo) & (column <= hi)
    return mask
