"""Keys of cells, and their order, against coordinates compared one by one."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.sparse import sorting
from windrow.kernels.sparse.keys import key_space, unique_keys
from windrow.kernels.sparse.sorting import is_sorted, sort_keys


@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(-5, 5), st.sampled_from([-(2**62), 2**62])), st.integers(0, 2), st.integers(-3, 3),
            st.integers(0, 3),
        ),
        min_size=1, max_size=3,
    )
)  # fmt: skip
def test_a_difference_of_keys_is_an_offset_of_cells(axes: list[tuple[int, int, int, int]]) -> None:
    """All cells in a box, all in the guard bands and some beyond, all offsets."""
    lo, hi = [axis[0] for axis in axes], [axis[0] + axis[1] for axis in axes]
    start, stop = [axis[2] for axis in axes], [axis[2] + axis[3] for axis in axes]
    space = key_space(lo, hi, [-offset for offset in start], stop)
    assert space is not None
    inside = list(product(*(range(a, b + 1) for a, b in zip(lo, hi, strict=True))))
    around = list(product(*(sorted({a - s - 2, a - s, a, b, b - t, b - t + 2, -(2**63), 2**63 - 1})
                            for a, b, t, s in zip(lo, hi, start, stop, strict=True))))  # fmt: skip
    offsets = list(product(*(range(a, b + 1) for a, b in zip(start, stop, strict=True))))
    keys = {cell: int(space.keys([np.array([x]) for x in cell])[0]) for cell in {*inside, *around}}
    leading, last = np.array([o[:-1] for o in offsets], np.int64), np.array([o[-1] for o in offsets], np.int64)
    first, final = space.differences(leading, last, last)
    assert first.tolist() == final.tolist()
    for cell in around:
        for offset, difference in zip(offsets, first.tolist(), strict=True):
            target = tuple(x + o for x, o in zip(cell, offset, strict=True))
            assert [c for c in inside if keys[c] == keys[cell] + difference] == [c for c in inside if c == target]
    assert all(0 <= key < 2**space.bits for key in keys.values())


def test_keys_that_leave_int64_are_none() -> None:
    assert key_space([0, 0], [2**40, 2**40], [1, 1], [1, 1]) is None
    assert key_space([-(2**63)], [0], [0], [0]) is None
    assert key_space([0], [2**63 - 1], [1], [0]) is None
    narrow = key_space([0] * 3, [2**20 + 5] * 3, [1] * 3, [1] * 3)  # as powers of two these would take 63 bits
    assert narrow is not None
    assert narrow.bits == 61


def test_no_axes_give_one_key() -> None:
    space = key_space([], [], [], [])
    assert space is not None
    assert space.keys([], 3).tolist() == [0, 0, 0]
    first, last = space.differences(np.zeros((1, 0), np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64))
    assert (first.tolist(), last.tolist()) == ([0], [0])


@pytest.mark.parametrize("few", [sorting._FEW, 0])
@given(data=st.data())
def test_sorting_is_stable(few: int, data: st.DataObject) -> None:
    bits = data.draw(st.sampled_from([1, 3, 16, 20, 34, 35, 51, 62]))
    pool = st.one_of(st.integers(0, 2**bits - 1), st.integers(0, min(3, 2**bits - 1)))
    common = data.draw(st.sampled_from([0, 2 ** (bits - 1)]))  # a bit that all have is not sorted by either
    keys = [key | common for key in data.draw(st.lists(pool, max_size=300))]
    low = data.draw(st.sampled_from([0, 0, 1, 2, 15, bits]))
    keys.sort(key=lambda key: key % 2**low)  # lower bits that are in order are not sorted by
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "_FEW", few)
        patch.setattr(sorting, "_DIGIT", 5)
        ordered, order = sort_keys(np.array(keys, np.int64), bits)
    assert order.dtype == np.int64
    assert order.tolist() == sorted(range(len(keys)), key=lambda place: keys[place])
    assert ordered.tolist() == sorted(keys)
    assert is_sorted(np.array(keys, np.int64)) == (keys == sorted(keys))


@pytest.mark.parametrize("bits", [10, 17, 18, 34, 40, 52, 62])
def test_sorting_many_keys(bits: int) -> None:
    keys = np.random.default_rng(bits).integers(0, 2**bits, 100_000)
    ordered, order = sort_keys(keys, bits)
    assert (order == np.argsort(keys, kind="stable")).all()
    assert (ordered == keys[order]).all()


@given(st.lists(st.integers(-4, 4), max_size=30))
def test_equal_keys_are_found(keys: list[int]) -> None:
    ordered = sorted(keys)
    unique, starts = unique_keys(np.array(ordered, np.int64))
    assert unique.tolist() == sorted(set(keys))
    assert [ordered[a:b] for a, b in pairwise(starts)] == [[key] * keys.count(key) for key in sorted(set(keys))]
    assert starts[-1] == len(keys)
