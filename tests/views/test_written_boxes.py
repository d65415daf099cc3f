"""What a batch did to a dense array, found from the boxes that it wrote, against all of the array compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import windrow as wr
from windrow.operations.query.stored import stored_scan, working_scan
from windrow.views.changes import GridChange, net_grid


@pytest.mark.parametrize("seed", range(6))
def test_boxes_that_were_written_hold_all_that_changed(local: wr.Database, seed: int) -> None:
    """Several writes of a batch that overlap, within chunks and across them, some of them appended, some the same."""
    random = np.random.default_rng(seed)
    array = local.create("A", "<v: int32> [i=1:9:4, time=1:*:3]")
    array.write({"v": random.integers(0, 3, (9, 7), np.int32)})
    record, version = local.catalog.current("A")
    before = stored_scan(local.warehouse, "A", record, version)
    with local.batch() as batch:
        for number in range(4):
            if number == 2:
                batch.append("A", {"v": random.integers(0, 3, (9, int(random.integers(1, 5))), np.int32)})
            at = random.integers(1, 5), random.integers(1, 5)
            batch.write("A", {"v": random.integers(0, 3, random.integers(1, 4, 2), np.int32)}, at=tuple(map(int, at)))
        transaction: Any = batch.opened()[0]
        working = transaction.known("A")
        after = working_scan(transaction.catalog, working)
        found = net_grid(before, after, working.written_boxes)
        whole = net_grid(before, after, None)
        assert found.cells == whole.cells > 0
        assert _covers(found, whole)
        assert {name for name in found.by_attribute if name} == {name for name in whole.by_attribute if name}
        asked = sum(box.size for box in working.written_boxes)
        assert asked < after.box.size  # or nothing was shown


def _covers(found: GridChange, whole: GridChange) -> bool:
    """Whether what was found lies within what differs at most, and is no larger."""
    return all(any(box in other for other in whole.boxes) for box in found.boxes)
