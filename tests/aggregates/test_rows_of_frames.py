"""The value of a frame's n-th row, missing or not: as if each frame were written out."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.frames import Coded, Column, Frames, evaluate_frames
from windrow.model.frame import EXCLUDES


def rows_of(lo: int, hi: int, current: int, peers: tuple[int, int], exclude: str, keep: list[bool]) -> list[int]:
    """The slow twin: the rows of one frame, one by one."""
    left_out = {
        "no others": set(),
        "current row": {current},
        "group": set(range(*peers)),
        "ties": set(range(*peers)) - {current},
    }[exclude]
    return [row for row in range(max(lo, 0), min(hi, len(keep))) if row not in left_out and keep[row]]


@settings(deadline=None)
@given(st.data(), st.integers(0, 9), st.sampled_from(EXCLUDES), st.sampled_from([1, 2, 5, -1, -2]), st.booleans())
def test_the_row_that_is_named(data: st.DataObject, count: int, exclude: str, number: int, coded: bool) -> None:
    some = st.lists(st.integers(-3, count + 3), min_size=count, max_size=count)
    flags = st.lists(st.booleans(), min_size=count, max_size=count)
    lo, hi, values = data.draw(some), data.draw(some), data.draw(some)
    present, keep = data.draw(flags), data.draw(flags)
    peers = [(max(0, row - 1), min(count, row + 2)) for row in range(count)]
    frames = Frames(
        np.array(lo, np.int64), np.array(hi, np.int64), exclude,
        (np.array([p[0] for p in peers], np.int64), np.array([p[1] for p in peers], np.int64)),
    )  # fmt: skip
    mask = np.array(present, bool)
    words = np.array([f"{k:02}" for k in range(-3, count + 4)])
    column: Column | Coded = Column(np.array(values, np.int64), mask)
    if coded:
        column = Coded(np.array(values, np.int64) + 3, words, mask)
    aggregate = Aggregate("row_value", "x", number)
    found = evaluate_frames({"x": column}, frames, aggregate, keep=np.array(keep, bool))
    for row in range(count):
        rows = rows_of(lo[row], hi[row], row, peers[row], exclude, keep)
        place = number - 1 if number > 0 else len(rows) + number
        wanted = rows[place] if 0 <= place < len(rows) else None
        missing = wanted is None or not present[wanted]
        assert (found.present is not None and not found.present[row]) == missing
        if wanted is not None and not missing:
            assert found.values[row] == (words[values[wanted] + 3] if coded else values[wanted])
