"""Made-up batches in the shape of paper 004's: a survey's nights, and places on earth, as chunks without cells.

A survey night points the telescope at some fields, rectangles of chunks on the sky, to which it returns; a batch is
two weeks of nights. The sizes are chosen such that a batch has 600 to 2,000 chunks and each some four pairs under PTF-5
at first, as in the paper's sections 4.2 and 6.1. Places come from ``windrow.samples``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windrow.errors import DataError, UnknownNameError, nearest
from windrow.placement.problem import Float64Array, Int64Array
from windrow.placement.simulator.chunks import ChunkSet, concatenate, draw_bounds
from windrow.samples import places
from windrow.samples.earth_places import LATITUDES
from windrow.samples.survey import DECLINATIONS, RIGHT_ASCENSIONS, STEPS_A_DAY

SURVEY_LENGTHS = (STEPS_A_DAY, 100, 50)
PLACE_LENGTHS = (100, 50)
PERIODIC = (0, 1, 2, 2, 1, 0, 0, 1, 2, 2)
"""Which of three batches comes when, as in the paper."""

NIGHTS_BEFORE = 90
NIGHTS_A_BATCH = 14
FIELDS = 60
VISITS = (0.25, 0.4, 0.25, 0.1)
"""How likely it is that a night has no field, in bad weather, or one, two or three."""
FIELD = (8, 10)
GAPS = (0.0, 3.0, 1.5)
CHUNK_BYTES = 2.5e6
PLACES = 600_000
PLACE_BYTES = 30.0
DENSER = 50
"""So many places of the paper's stand for one of ours."""


@dataclass(frozen=True, eq=False)
class Workload:
    """What is stored before, and the batches that come, in order."""

    name: str
    base: ChunkSet
    batches: tuple[ChunkSet, ...]


def draw_survey(nights: int, first: int, seed: int) -> list[ChunkSet]:
    """The chunks of each night from the ``first`` on."""
    pointing = np.random.default_rng([seed, 1])
    extents = (RIGHT_ASCENSIONS // SURVEY_LENGTHS[1], DECLINATIONS // SURVEY_LENGTHS[2])
    declination = np.clip(pointing.normal(0.68, 0.1, FIELDS) * extents[1], 1, extents[1] - FIELD[1] - 1)
    corners = np.column_stack([pointing.integers(1, extents[0] - FIELD[0] - 1, FIELDS), declination.astype(np.int64)])
    richness = pointing.lognormal(0.0, 0.4, FIELDS)
    found = []
    for night in range(first, first + nights):
        random = np.random.default_rng([seed, 2, night])
        fields = random.choice(FIELDS, random.choice(len(VISITS), p=VISITS), replace=False)
        found.append(_draw_night(random, night, corners[fields], richness[fields]))
    return found


def _draw_night(random: np.random.Generator, night: int, corners: Int64Array, richness: Float64Array) -> ChunkSet:
    """The chunks of some fields; the telescope does not point at exactly the same place again."""
    spots, sizes = [np.zeros((0, 2), np.int64)], [np.zeros(0)]
    inside = np.stack(np.meshgrid(np.arange(FIELD[0]), np.arange(FIELD[1]), indexing="ij"), axis=-1).reshape(-1, 2)
    for corner, stars in zip(corners, richness, strict=True):
        spots.append(corner + random.integers(0, 2, 2) + inside)
        sizes.append(CHUNK_BYTES * stars * random.lognormal(0.0, 0.3, len(inside)))
    spot, kept = np.unique(np.concatenate(spots), axis=0, return_index=True)
    numbers = np.column_stack([np.full(len(spot), night), spot])
    return ChunkSet(numbers, *draw_bounds(random, numbers, SURVEY_LENGTHS, GAPS), np.concatenate(sizes)[kept])


def survey_stream(nights: int, seed: int) -> tuple[ChunkSet, list[ChunkSet]]:
    """What was seen before, and the nights that follow."""
    base = concatenate(draw_survey(NIGHTS_BEFORE, 0, seed))
    return base, draw_survey(nights, NIGHTS_BEFORE, seed)


def survey_workload(pattern: str, batches: int, seed: int) -> Workload:
    """Batches of two weeks: ``real`` ones follow one another, ``correlated`` repeat the first, ``periodic`` three."""
    count = {"real": batches, "correlated": 1, "periodic": 3}
    base, nights = survey_stream(NIGHTS_A_BATCH * _look_up(count, pattern), seed)
    weeks = [concatenate(nights[i : i + NIGHTS_A_BATCH]) for i in range(0, len(nights), NIGHTS_A_BATCH)]
    return Workload(pattern, base, _repeat(weeks, pattern, batches, SURVEY_LENGTHS, GAPS, seed))


def place_workload(pattern: str, batches: int, seed: int) -> Workload:
    """Batches of a hundredth of all chunks each: ``random`` ones, one ``correlated``, or three ``periodic``."""
    count = {"random": batches, "correlated": 1, "periodic": 3}
    drawn = _look_up(count, pattern)
    random = np.random.default_rng([seed, 3])
    table = places(PLACES, seed)
    along, across = (
        (table[name].to_numpy() - 1) // length for name, length in zip(("long", "lat"), PLACE_LENGTHS, strict=True)
    )
    keys, counts = np.unique(along * LATITUDES + across, return_counts=True)
    numbers = np.column_stack(np.divmod(keys, LATITUDES)).astype(np.int64)
    gaps = np.asarray(PLACE_LENGTHS) / (1 + DENSER * counts[:, None])
    everything = ChunkSet(
        numbers, *draw_bounds(random, numbers, PLACE_LENGTHS, gaps), PLACE_BYTES * DENSER * counts.astype(float)
    )
    order = random.permutation(len(everything))
    share = len(everything) // 100
    parts = [everything.take(np.sort(order[i * share : (i + 1) * share])) for i in range(drawn)]
    base = everything.take(np.sort(order[drawn * share :]))
    return Workload(pattern, base, _repeat(parts, pattern, batches, PLACE_LENGTHS, (1.0, 0.5), seed))


def cut_stream(nights: Sequence[ChunkSet], sizes: Sequence[int]) -> tuple[ChunkSet, ...]:
    """Batches of so many chunks each, in the order of the nights."""
    everything = concatenate(nights)
    ends = np.cumsum(sizes)
    if ends[-1] > len(everything):
        raise DataError("the nights have too few chunks", got=f"{len(everything)} of {ends[-1]}")
    return tuple(everything.take(slice(int(end - size), int(end))) for size, end in zip(sizes, ends, strict=True))


def spread_workload(spread: int, chunks: int, batches: int, seed: int) -> Workload:
    """Chunks drawn from a square of ``spread`` chunks on the sky, in which everything was seen before: Fig. 10c."""
    random = np.random.default_rng([seed, 4, spread])
    corner = np.array([400, 600]) - spread // 2
    days = max(2, -(-3 * chunks // spread**2))

    def draw(first: int, wanted: int) -> ChunkSet:
        place = random.choice(days * spread**2, wanted, replace=False)
        day, spot = np.divmod(place, spread**2)
        numbers = np.column_stack([first + day, corner[0] + spot // spread, corner[1] + spot % spread])
        sizes = CHUNK_BYTES * random.lognormal(0.0, 0.3, wanted)
        return ChunkSet(numbers, *draw_bounds(random, numbers, SURVEY_LENGTHS, GAPS), sizes)

    base = draw(0, min(days * spread**2, 4 * chunks))
    return Workload(f"spread {spread}", base, tuple(draw(days * (i + 1), chunks) for i in range(batches)))


def _look_up(count: dict[str, int], pattern: str) -> int:
    if pattern not in count:
        raise UnknownNameError("no such pattern of updates here", got=pattern, hint=nearest(pattern, count))
    return count[pattern]


def _repeat(
    drawn: Sequence[ChunkSet], pattern: str, batches: int, lengths: Sequence[int], gaps: Sequence[float], seed: int
) -> tuple[ChunkSet, ...]:
    """Batches as the pattern orders them: the same chunks again, each time with new cells."""
    if pattern in ("real", "random"):
        return tuple(drawn)
    turns = [0] * batches if pattern == "correlated" else [PERIODIC[i % len(PERIODIC)] for i in range(batches)]
    found: list[ChunkSet] = []
    for number, turn in enumerate(turns):
        part = drawn[turn]
        if turn in turns[:number]:
            random = np.random.default_rng([seed, 5, number])
            bounds = draw_bounds(random, part.numbers, lengths, gaps)
            part = ChunkSet(part.numbers, *bounds, part.bytes * random.lognormal(0.0, 0.1, len(part)))
        found.append(part)
    return tuple(found)
