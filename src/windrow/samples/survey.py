"""A made-up survey in the shape of paper 004's PTF catalogue: nights of pointings, the same stars again and again.

The array has the paper's dimensions, 153,064 time steps and 100,000 × 50,000 places, of 10 arcseconds or so; 112 steps
are taken as a day, since the paper's "200 days" fit no other reading. A telescope in the northern hemisphere points at
fields; each is followed for some months, several times a night, and its stars are seen at almost the same place every
time. So cells are skewed in declination, crowded where a field has many stars, and have about as many neighbours
within 200 days at any size of the survey.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import DataError

STEPS, RIGHT_ASCENSIONS, DECLINATIONS = 153_064, 100_000, 50_000
STEPS_A_DAY = 112
NIGHTS = STEPS // STEPS_A_DAY
SURVEY_SCHEMA = f"<mag: float32> [time=1:{STEPS}:{STEPS_A_DAY}, ra=1:{RIGHT_ASCENSIONS}:100, dec=1:{DECLINATIONS}:50]"
"""The schema of a sparse array that takes these detections, with the paper's chunks."""

SEEN = 460
"""How often a star is detected in all, on average: this gives about 120 neighbours within 200 days."""
STARS_A_FIELD = 40
CROWDED = 12
"""By how much one field has more stars than the others."""
SPURIOUS = 0.06
"""The share of detections that belong to no star: asteroids, satellites, flaws."""
BLUR = 0.65
"""The standard deviation of a measured place, in cells."""
WIDTH, HEIGHT = 970, 640
DARK = (40, 100)
"""The steps of a day between which it is night."""
VISITS = 12
SITE = 33.4
"""The telescope's latitude, around which its fields lie in declination."""

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Fields:
    """Where each field lies, which nights it is followed, and its stars, field after field."""

    ra: Int64Array
    dec: Int64Array
    first: Int64Array
    last: Int64Array
    starts: Int64Array
    """Where the stars of each field begin; one more than there are fields."""
    star_ra: Float64Array
    star_dec: Float64Array
    star_mag: Float64Array

    @property
    def stars(self) -> Int64Array:
        return np.diff(self.starts)


@dataclass(frozen=True)
class SurveyNights:
    """So many detections, night by night: iterating makes one table at a time, in the order of time."""

    detections: int
    seed: int = 2012

    def __post_init__(self) -> None:
        if not isinstance(self.detections, int) or not 1 <= self.detections <= 10**9:
            raise DataError("the number of detections must be from 1 to 10^9", got=repr(self.detections))

    def __iter__(self) -> Iterator[pa.Table]:
        for night, count in enumerate(self.counts.tolist()):
            if count:
                yield self.night(night)

    def table(self) -> pa.Table:
        """All nights in one table."""
        return pa.concat_tables(self).combine_chunks()

    @cached_property
    def counts(self) -> Int64Array:
        """How many detections each night has: none in bad weather, more where many stars are followed."""
        random = np.random.default_rng([self.seed, 2])
        weather = np.where(random.random(NIGHTS) < 0.25, 0.0, random.gamma(4.0, 0.25, NIGHTS))
        followed = np.zeros(NIGHTS)
        for first, last, stars in zip(self._fields.first, self._fields.last, self._fields.stars, strict=True):
            followed[first : last + 1] += stars
        expected = followed * weather
        if not expected.any():
            expected = followed
        return _apportioned(expected, self.detections)

    def night(self, number: int) -> pa.Table:
        """The detections of one night, counted from 0, in the order of their coordinates."""
        count = int(self.counts[number])
        random = np.random.default_rng([self.seed, 3, number])
        found, mags = np.zeros(0, np.int64), np.zeros(0)
        while len(found) < count:
            # Two detections in one cell are one: as many as that loses are drawn again.
            more, more_mags = self._drawn(random, number, count - len(found))
            found, kept = np.unique(np.concatenate([found, more]), return_index=True)
            mags = np.concatenate([mags, more_mags])[kept]
        place, dec = np.divmod(found, DECLINATIONS + 1)
        time, ra = np.divmod(place, RIGHT_ASCENSIONS + 1)
        return pa.table({"time": time, "ra": ra, "dec": dec, "mag": np.round(mags, 3).astype(np.float32)})

    def _drawn(self, random: np.random.Generator, night: int, count: int) -> tuple[Int64Array, Float64Array]:
        """Cells, each as one number that sorts as its coordinates do, and magnitudes."""
        fields = self._fields
        followed = np.flatnonzero((fields.first <= night) & (night <= fields.last))
        shares = fields.stars[followed] / fields.stars[followed].sum()
        field = random.choice(followed, count, p=shares)
        star = fields.starts[field] + (random.random(count) ** 1.3 * fields.stars[field]).astype(np.int64)
        # Each field has its own visits of the night: all its stars are seen at the same few steps.
        visit = random.integers(0, VISITS, count)
        spread = (field * 31 + visit * 17 + night * 7) % (DARK[1] - DARK[0])
        time = night * STEPS_A_DAY + DARK[0] + spread + 1
        ra = np.rint(fields.star_ra[star] + random.normal(0, BLUR, count))
        dec = np.rint(fields.star_dec[star] + random.normal(0, BLUR, count))
        mag = fields.star_mag[star] + random.normal(0, 0.05, count)
        spurious = random.random(count) < SPURIOUS
        lone = int(spurious.sum())
        ra[spurious] = fields.ra[field[spurious]] + random.integers(0, WIDTH, lone)
        dec[spurious] = fields.dec[field[spurious]] + random.integers(0, HEIGHT, lone)
        mag[spurious] = random.uniform(18, 21, lone)
        place = time * (RIGHT_ASCENSIONS + 1) + _clipped(ra, RIGHT_ASCENSIONS)
        return place * (DECLINATIONS + 1) + _clipped(dec, DECLINATIONS), mag

    @cached_property
    def _fields(self) -> _Fields:
        random = np.random.default_rng([self.seed, 1])
        stars = max(1, round(self.detections / SEEN))
        count = max(1, round(stars / STARS_A_FIELD))
        richness = random.lognormal(0.0, 0.8, count)
        richness[0] *= CROWDED if count > CROWDED else 1.0
        stars_of = _apportioned(richness, stars)
        # A field without stars would have no night of its own.
        stars_of = np.maximum(stars_of, 1)
        latitude = np.clip(random.normal(SITE, 18.0, count), -30.0, 85.0)
        dec = np.rint((latitude + 90.0) / 180.0 * DECLINATIONS).astype(np.int64)
        ra = random.integers(1, RIGHT_ASCENSIONS - WIDTH, count)
        length = random.integers(60, 200, count)
        first = (random.random(count) * np.maximum(1, NIGHTS - length)).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(stars_of)]).astype(np.int64)
        of_star = np.repeat(np.arange(count), stars_of)
        return _Fields(
            ra=ra,
            dec=dec,
            first=first,
            last=first + length - 1,
            starts=starts,
            star_ra=ra[of_star] + random.random(len(of_star)) * WIDTH,
            star_dec=dec[of_star] + random.random(len(of_star)) * HEIGHT,
            # Ever more stars towards the faint end.
            star_mag=21.0 - random.exponential(1.6, len(of_star)).clip(0, 7),
        )


def survey_nights(detections: int = 10_000, seed: int = 2012) -> SurveyNights:
    """A synthetic survey of 10^4 to 10^8 detections in the shape of PTF, made night by night.

    >>> nights = survey_nights(10_000)
    >>> sum(night.num_rows for night in nights), nights.table().column_names
    (10000, ['time', 'ra', 'dec', 'mag'])
    """
    return SurveyNights(detections, seed)


def _clipped(places: Float64Array, last: int) -> Int64Array:
    return np.clip(places, 1, last).astype(np.int64)


def _apportioned(weights: Float64Array, total: int) -> Int64Array:
    """Whole numbers in proportion to weights, that add up."""
    exact = weights / weights.sum() * total
    found: Int64Array = np.floor(exact).astype(np.int64)
    largest = np.argsort(found - exact, kind="stable")[: total - int(found.sum())]
    found[largest] += 1
    return found
