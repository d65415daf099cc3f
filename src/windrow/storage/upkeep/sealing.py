"""Sealing: a batch's changes to a sparse array become one run of parts, one vectors file and one log entry."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from windrow.storage.delta.log import Entry
from windrow.storage.delta.vectors import write_vectors
from windrow.storage.failures import store_failures
from windrow.storage.part_writing import PART_BYTES
from windrow.storage.records import Part
from windrow.storage.sparse import SparseStore
from windrow.storage.upkeep.moving import Bench, are_known, keep_changes, move_rows
from windrow.storage.upkeep.tidying import MOST_CELLS, base_parts, tidy
from windrow.storage.upkeep.working_parts import marked_chunks, told_of

if TYPE_CHECKING:
    from windrow.storage.working import WorkingArray


def seal(working: WorkingArray) -> None:
    """Net the changes, tidy up, and commit to the store: a new pointer, which nobody sees before it is published."""
    if working.parts == working.base_parts:
        return
    bench = Bench(working)
    try:
        # Before tidying, for what dies of that has not changed.
        known = [part for path, part in working.parts.items() if path in working.base_parts]
        working.marked = {part.path: marked_chunks(working, part) for part in known}
        _net_runs(bench)
        tidy(bench)
        _drop_dead_parts(bench)
        _found_base(bench)
        keep_changes(bench)
        _note_changes(bench)
        _write_vectors(bench)
        working.pointer = SparseStore(working.path).commit(working.schema, working.pointer, _entry(working))
    except BaseException:
        _discard(working, bench.written)
        raise
    _discard(working, bench.gone)


def _discard(working: WorkingArray, files: list[str]) -> None:
    for file in files:
        with suppress(OSError):  # a collection will take it
            Path(working.path, file).unlink(missing_ok=True)


def _net_runs(bench: Bench) -> None:
    """Make one run of what the batch wrote, without the cells that it replaced or deleted itself."""
    own = bench.new_parts
    size = sum(part.bytes for part in own)
    several = len({part.run for part in own}) > 1 or len(own) > 2 * (1 + size // PART_BYTES)
    if not several and not any(part.vector for part in own):
        return
    live = [part for part in own if part.live]
    if live and sum(part.live for part in live) <= MOST_CELLS:
        move_rows(bench, [(part, bench.working.reader.live_rows(part)) for part in live], run=own[-1].run)
        bench.forgotten.clear()  # a cell that came and went within the batch is no change
    for part in own:
        if not part.live:
            bench.working.parts.pop(part.path)
            bench.gone.append(part.path)


def _drop_dead_parts(bench: Bench) -> None:
    """Leave parts out that have no live cell; without a new part, only if nothing that they know is needed."""
    working = bench.working
    dead = [part for part in working.parts.values() if not part.live]
    told = dict(zip((part.path for part in dead), told_of(working, dead), strict=True))
    for part in dead:
        del working.parts[part.path]
    for part in dead:
        if bench.new_parts or are_known(bench, told[part.path]):
            working.parts[part.path] = part
            bench.drop(part, told[part.path])
        else:
            working.parts[part.path] = part


def _found_base(bench: Bench) -> None:
    """Let new parts be base parts that lie between those that are, if they are large, or if there are none."""
    working = bench.working
    base = base_parts(list(working.parts.values()))
    least = PART_BYTES // 2 if base else 0
    for part in sorted(bench.new_parts, key=lambda part: (part.first, part.last)):
        lies_between = all(part.last <= other.first or part.first >= other.last for other in base)
        if part.run and part.bytes >= least and lies_between:
            working.parts[part.path] = replace(part, run=0)
            base.append(part)


def _note_changes(bench: Bench) -> None:
    """Let the chunks of cells that are new say in which version they came."""
    new = bench.new_parts
    for part, told in zip(new, told_of(bench.working, new), strict=True):
        bench.working.parts[part.path] = replace(part, chunks=told)


def _write_vectors(bench: Bench) -> None:
    working = bench.working
    marked = [part for part in working.parts.values() if part.vector is not None and not part.vector.file]
    if marked:
        with store_failures("a vectors file"):
            written = write_vectors(working.path, [part.vector for part in marked if part.vector is not None])
        bench.written.append(written[0].file)
        for part, vector in zip(marked, written, strict=True):
            working.parts[part.path] = replace(part, vector=vector, spent=part.spent + vector.length)


def _entry(working: WorkingArray) -> Entry:
    def is_same(part: Part | None, other: Part) -> bool:
        return part is not None and part.vector == other.vector

    added = [part for path, part in working.parts.items() if not is_same(working.base_parts.get(path), part)]
    removed = [part for path, part in working.base_parts.items() if not is_same(working.parts.get(path), part)]
    first = not any(part.vector for part in working.base_parts.values())
    raises_protocol = first and any(part.vector for part in added)
    reshapes = working.schema.dimension_names != working.base.schema.dimension_names
    return Entry(added, removed, working.operation or "change", raises_protocol, reshapes)
