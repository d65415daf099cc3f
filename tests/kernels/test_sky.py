"""Pairs on the sky against the angle between every two places, from high-precision arithmetic where it matters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.sparse.sky import sky_pairs

Place = tuple[float, float]


def angle(one: Place, other: Place) -> float:
    """By haversines for what is near, and by those of the opposite place for what is far."""
    (a, b), (c, d) = ([math.radians(x) for x in place] for place in (one, other))
    near = math.sin((d - b) / 2) ** 2 + math.cos(b) * math.cos(d) * math.sin((c - a) / 2) ** 2
    far = math.sin((d + b) / 2) ** 2 + math.cos(b) * math.cos(d) * math.cos((c - a) / 2) ** 2
    return math.degrees(2 * math.atan2(math.sqrt(near), math.sqrt(far)))


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Place], list[Place], float]:
    """Places around some that are hard, as far apart as the radius or anywhere."""
    radius = draw(st.sampled_from([0.0, 1e-9, 1e-5, 10 / 3600, 0.5, 3.0, 20.0, 89.0, 90.0, 135.0, 179.9999, 180.0]))
    corner = st.tuples(
        st.sampled_from([0.0, 1e-7, 10.0, 180.0, 359.9999999, 360.0, -0.001]),
        st.sampled_from([-90.0, -89.9999, -45.0, 0.0, 11.25, 60.0, 89.999, 90.0]),
    )
    anywhere = st.tuples(st.floats(-10, 400), st.floats(-90, 90))

    def beside(place: Place, away: float, turned: float) -> Place:
        north = max(-90.0, min(90.0, place[1] + away * math.cos(turned)))
        return place[0] + away * math.sin(turned) / max(1e-3, math.cos(math.radians(place[1]))), north

    moved = st.builds(
        beside, corner, st.sampled_from([0.0, 0.3, 0.999, 1.001, 1.5]).map(lambda k: k * radius), st.floats(0, 7)
    )
    places = st.lists(st.one_of(corner, moved, anywhere), max_size=12)
    return draw(places), draw(places), radius


def columns(places: list[Place]) -> tuple[Any, Any]:
    table = np.array(places, np.float64).reshape(len(places), 2)
    return table[:, 0], table[:, 1]


@given(problems())
def test_pairs_are_those_within_the_radius(problem: tuple[list[Place], list[Place], float]) -> None:
    check_pairs(*problem)


@pytest.mark.parametrize("radius", [1e-5, 10 / 3600, 0.5, 3.0, 11.0, 40.0])
def test_across_0_degrees_and_at_the_poles(radius: float) -> None:
    """Places on both sides of 0 degrees, at all distances from the poles, each with each."""
    near = [0.0, 0.6 * radius, 0.98 * radius]
    norths = [sign * (90.0 - away) for away in (0.0, 0.4 * radius, 1.3 * radius, 30.0, 89.0) for sign in (1, -1)]
    places = []
    for north in norths:
        stretched = max(1e-3, math.cos(math.radians(north)))
        places += [(side * (away / stretched % 180.0), north) for away in near for side in (1, -1)]
        places += [(180.0, north), (359.9999999, north)]
    check_pairs(places, places, radius)


def check_pairs(left: list[Place], right: list[Place], radius: float) -> None:
    pairs = sky_pairs(*columns(left), *columns(right), radius)
    found = {(n, k): d for n, k, d in zip(*(part.tolist() for part in pairs), strict=True)}
    assert len(found) == len(pairs.left)  # each of them once
    assert list(found) == sorted(found)
    for n, one in enumerate(left):
        for k, other in enumerate(right):
            wanted = angle(one, other)
            doubt = 1e-13 + 1e-12 * radius  # degrees that rounding of the coordinates makes
            if wanted <= radius - doubt:
                assert (n, k) in found
            if wanted > radius + doubt:
                assert (n, k) not in found
            if (n, k) in found:
                assert found[n, k] == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_places_that_are_unknown_are_near_to_nothing() -> None:
    nan = math.nan
    pairs = sky_pairs(*columns([(nan, 0.0), (1.0, nan), (1.0, 2.0)]), *columns([(1.0, 2.0), (nan, nan)]), 180.0)
    assert (pairs.left.tolist(), pairs.right.tolist(), pairs.degrees.tolist()) == ([2], [0], [0.0])


@pytest.mark.parametrize("radius", [0.02, 1.0, 30.0])
def test_as_a_tree_of_unit_vectors_finds_them(radius: float) -> None:
    tree = pytest.importorskip("scipy.spatial").cKDTree
    random = np.random.default_rng(7)
    ra, dec = random.uniform(0, 360, 3_000), np.degrees(np.arcsin(random.uniform(-1, 1, 3_000)))
    other_ra, other_dec = ra + random.normal(0, 0.01, 3_000), np.clip(dec + random.normal(0, 0.01, 3_000), -90, 90)

    def vectors(east: Any, north: Any) -> Any:
        east, north = np.radians(east), np.radians(north)
        return np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], 1)

    chord = 2 * math.sin(math.radians(radius) / 2)
    found = tree(vectors(ra, dec)).query_ball_tree(tree(vectors(other_ra, other_dec)), chord)
    wanted = [(n, k) for n, some in enumerate(found) for k in sorted(some)]
    pairs = sky_pairs(ra, dec, other_ra, other_dec, radius)
    assert list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)) == wanted
