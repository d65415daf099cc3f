"""Frames that are windows: recognised as such, and many of them computed side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.contract.outcomes import NO_VALUES
from windrow.kernels.contract.ranks import DISC, cont_ranks
from windrow.kernels.frames import spans as frame_spans
from windrow.kernels.frames import tiny as frame_tiny
from windrow.kernels.frames.family import family_of
from windrow.kernels.frames.methods import choose_frames, frame_outcome
from windrow.kernels.frames.spans import Spans, Windows, spans_of, survey
from windrow.kernels.papers.frame_counts import count_frames


@st.composite
def bounds(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int]:
    """Bounds that may lie anywhere: of windows, of one length, of any; and how many rows there are."""
    rows, count = draw(st.integers(0, 50)), draw(st.integers(1, 60))
    offset, width = draw(st.integers(-70, 70)), draw(st.integers(-2, 70))
    place = np.arange(count) + offset
    kind = draw(st.sampled_from(["windows", "one length", "any", "far"]))
    if kind == "windows":
        return place, place + width, rows
    lo = np.array(draw(st.lists(st.integers(-80, 80), min_size=count, max_size=count)), np.int64)
    if kind == "one length":
        return lo, lo + width, rows
    hi = np.array(draw(st.lists(st.integers(-80, 80), min_size=count, max_size=count)), np.int64)
    if kind == "far":
        lo[0], hi[-1] = -(2**63), 2**63 - 1
    return lo, hi, rows


@given(bounds())
def test_many_frames_are_the_same_frames(given_bounds: tuple[Any, Any, int]) -> None:
    lo, hi, rows = given_bounds
    cut = np.clip(lo, 0, rows)
    plain = Spans((cut[None], np.clip(hi, cut, rows)[None]), rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame_spans, "COMPILED", 0)
        many = spans_of(lo, hi, rows)
        np.testing.assert_array_equal(many.sizes, plain.sizes)
        filled = plain.sizes > 0
        np.testing.assert_array_equal(many.begin[:, filled], plain.begin[:, filled])
        np.testing.assert_array_equal(many.end[:, filled], plain.end[:, filled])
        assert (many.most, many.fewest, many.ranges, many.count) == (plain.most, plain.fewest, 1, plain.count)
        if isinstance(many, Windows):
            assert many.survey == survey(many.begin, many.end)
        else:
            assert many.survey == survey(plain.begin, plain.end)
        family = family_of(many)
        if family is not None:
            np.testing.assert_array_equal(family.results(family.windows.begin[0])[filled], plain.begin[0, filled])
            np.testing.assert_array_equal(family.results(family.windows.end[0])[filled], plain.end[0, filled])
            assert not len(family.results(NO_VALUES))


@settings(max_examples=25)
@given(st.data())
def test_windows_of_few_values_side_by_side(data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    width = data.draw(st.sampled_from([1, 2, 9, 100, 254, 255, 256, 257, 600]))
    rows = 1100 + width + data.draw(st.integers(0, 1500))
    span, low = (
        data.draw(st.sampled_from([1, 2, 10, 11, 100, 120])),
        data.draw(st.sampled_from([0, -7, 2**51, -(2**62)])),
    )
    values = random.integers(0, span, rows) + low
    lo = np.arange(rows) - data.draw(st.integers(-5, width))
    spans = spans_of(lo, lo + width, rows)
    filled = spans.sizes > 0
    modes = frame_outcome("mode", values, spans, strategy="lanes").exact
    np.testing.assert_array_equal(modes[filled], count_frames("mode", values, spans, 0.25, reuses=False).exact[filled])
    share = data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    for ranks in (cont_ranks(share, spans.most), DISC.table(share, spans.most)):
        strategy = "lanes" if abs(low) < 2**52 else "windows"
        outcomes = [frame_outcome("select", values, spans, ranks, strategy=name) for name in (strategy, "counters")]
        found, expected = (one.reals if ranks.interpolates else one.exact for one in outcomes)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found[filled], expected[filled])


@pytest.mark.parametrize("width", [60, 90, 300, 2**39])
def test_windows_that_are_wider_than_the_table(width: int) -> None:
    values = np.arange(50) * 7 % 11
    lo = np.arange(3_000) - width // 2
    spans = spans_of(lo, lo + width, 50)
    filled = spans.sizes > 0
    ranks = cont_ranks(0.5, spans.most)
    plain = frame_tiny.tiny_frames("mode", values, spans)
    np.testing.assert_array_equal(frame_outcome("mode", values, spans).exact[filled], plain.exact[filled])
    np.testing.assert_array_equal(frame_outcome("distinct", values, spans).reals[filled], plain.reals[filled])
    medians = frame_tiny.tiny_frames("select", values, spans, ranks).reals
    np.testing.assert_array_equal(frame_outcome("select", values, spans, ranks).reals[filled], medians[filled])


def test_few_values_are_counted_side_by_side_in_windows_that_are_neither_too_few_nor_too_long() -> None:
    values = np.arange(90_000) * 7 % 100
    lo = np.arange(90_000)

    def chosen(operation: str, width: int) -> str:
        spans = spans_of(lo, lo + width, len(values))
        return choose_frames(operation, values, spans, cont_ranks(0.5, width) if operation == "select" else None).name

    assert [chosen("mode", width) for width in (2, 40, 1024, 5000)] == ["short", "lanes", "lanes", "counters"]
    assert [chosen("select", width) for width in (40, 200, 5000)] == ["lanes", "lanes", "counters"]


@given(st.data())
def test_modes_of_short_windows(data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows, width = data.draw(st.sampled_from([1, 5, 40, 700])), data.draw(st.integers(1, 33))
    values = random.integers(0, data.draw(st.sampled_from([1, 3, 1000])), rows) - 5
    lo = np.arange(rows) - data.draw(st.integers(-width, width))
    spans = spans_of(lo, lo + width, rows)
    expected = frame_tiny.tiny_frames("mode", values, spans).exact
    filled = spans.sizes > 0
    if width <= 31 and spans.offsets is not None:
        modes = frame_outcome("mode", values, spans, strategy="short").exact
        np.testing.assert_array_equal(modes[filled], expected[filled])
