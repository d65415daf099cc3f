"""How long it takes to find which chunks of a night meet which of a catalogue, from their bounds alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from windrow.bench.joins.memory import STEPS
from windrow.bench.joins.race import OURS
from windrow.bench.joins.scale import JoinsBench
from windrow.bench.race import Contender, race
from windrow.bench.report import Measurement
from windrow.bench.tables import Line, Table
from windrow.errors import DataError
from windrow.kernels.sparse.chunk_pairs import ChunkIndex, Chunks, Grid
from windrow.samples.survey import DECLINATIONS, RIGHT_ASCENSIONS, STEPS_A_DAY
from windrow.samples.survey import STEPS as TIMES

LENGTHS = (STEPS_A_DAY, 100, 50)
MOST_SECONDS = 0.010
AFRESH = "windrow, keys made anew"
_CHECKED = 50

Int64Array = npt.NDArray[np.int64]


def measure_chunk_pairs(bench: JoinsBench) -> Iterator[Table | Measurement]:
    """The chunks of two weeks of new nights among those of all nights before, under PTF-5."""
    old = made_chunks(bench.scale.old_chunks, 1, first=0, last=1_340)
    new = made_chunks(bench.scale.new_chunks, 2, first=1_341, last=1_355)
    before, after = (STEPS, 1, 1), (0, 1, 1)
    lo = [side - reach for side, reach in zip(new.lo, before, strict=True)]
    hi = [side + reach for side, reach in zip(new.hi, after, strict=True)]
    grid = Grid((1, 1, 1), LENGTHS)

    index = ChunkIndex(old, grid)

    def run() -> tuple[Int64Array, Int64Array]:
        return index.meet(lo, hi)

    def run_afresh() -> tuple[Int64Array, Int64Array]:
        return ChunkIndex(old, grid).meet(lo, hi)

    boxes, chunks = run()
    _check(lo, hi, old, boxes, chunks)
    line = Line("PTF-5", len(lo[0]), race([Contender(OURS, run), Contender(AFRESH, run_afresh)], bench.scale.pace))
    took = line.result.seconds[OURS]
    title = f"Pairs of {len(lo[0]):,} new chunks with {len(old.lo[0]):,} old ones"
    about = (
        f"{len(boxes):,} pairs by the chunks' own bounds. Processor time of one thread; {OURS} keeps the keys of old "
        f"chunks from batch to batch, as a process that writes does, {AFRESH} makes them first."
    )
    yield Table("chunk-pairs", title, about, (line,), ())
    what = f"pairs of {len(lo[0]):,} chunks among {len(old.lo[0]):,}"
    yield Measurement("chunk-pairs", what, 1000 * took, "ms", 1000 * MOST_SECONDS, "at most", f"{len(boxes):,} pairs")


def made_chunks(count: int, seed: int, first: int, last: int) -> Chunks:
    """Synthetic chunks of nights: fields of neighbouring chunks, each with bounds of its own inside its box."""
    random, pointing = np.random.default_rng(seed), np.random.default_rng(0)
    extents = (TIMES // LENGTHS[0], RIGHT_ASCENSIONS // LENGTHS[1], DECLINATIONS // LENGTHS[2])
    # All nights have the same fields.
    fields = np.stack(
        [pointing.integers(0, extents[1] - 10, 400), pointing.integers(300, extents[2] - 13, 400)], axis=1
    )
    field = random.integers(0, len(fields), 2 * count)
    drawn = np.stack(
        [
            random.integers(first, last + 1, 2 * count),
            fields[field, 0] + random.integers(0, 10, 2 * count),
            fields[field, 1] + random.integers(0, 13, 2 * count),
        ],
        axis=1,
    )
    key = np.unique((drawn[:, 0] * extents[1] + drawn[:, 1]) * extents[2] + drawn[:, 2])
    key = np.sort(random.choice(key, min(count, len(key)), replace=False))
    rest, dec = np.divmod(key, extents[2])
    time, ra = np.divmod(rest, extents[1])
    numbers = [time, ra, dec]
    lows, highs = [], []
    for number, length in zip(numbers, LENGTHS, strict=True):
        ends = np.sort(random.integers(0, length, (len(key), 2)), axis=1)
        lows.append(1 + number * length + ends[:, 0])
        highs.append(1 + number * length + ends[:, 1])
    return Chunks(numbers, lows, highs)


def _check(lo: list[Int64Array], hi: list[Int64Array], old: Chunks, boxes: Int64Array, chunks: Int64Array) -> None:
    """Some boxes against every chunk, one by one."""
    for box in itertools.islice(range(0, len(lo[0]), max(1, len(lo[0]) // _CHECKED)), _CHECKED):
        meets = np.ones(len(old.lo[0]), bool)
        for axis in range(len(lo)):
            meets &= (old.lo[axis] <= hi[axis][box]) & (old.hi[axis] >= lo[axis][box])
        if not np.array_equal(np.sort(chunks[boxes == box]), np.flatnonzero(meets)):
            raise DataError("chunk pairs differ from those found one by one", got=f"box {box}")
