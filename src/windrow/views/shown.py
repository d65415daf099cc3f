"""How a stored view looks to those who read it. Every query asks: nothing that parses or patches is imported here."""

from __future__ import annotations

from dataclasses import replace

from windrow.plan.bound import BoundScan
from windrow.storage.records import ArrayRecord
from windrow.storage.warehouse import Warehouse


def as_shown(warehouse: Warehouse, record: ArrayRecord, scan: BoundScan) -> BoundScan:
    """An array as queries see it: a view that is one result over all cells lies nowhere, as its query's result does."""
    if scan.box.size != 1 or scan.schema.ndim != 1:
        return scan
    facts = (view.facts for view in warehouse.catalog.views() if view.array_id == record.id)
    return replace(scan, scalar=True) if any(known.get("scalar") for known in facts) else scan
