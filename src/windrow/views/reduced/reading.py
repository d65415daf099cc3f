"""A view that is stored by position, as queries see it: at every cell that lies there."""

from __future__ import annotations

from windrow.errors import UnknownNameError
from windrow.operations.query.stored import stored_scan
from windrow.plan.bound import BoundJoined, BoundNamed, BoundScan
from windrow.plan.grouping.positions import BoundRepeated
from windrow.storage.records import ArrayRecord
from windrow.storage.warehouse import Warehouse
from windrow.views.definition import Moment
from windrow.views.known import KnownView, known_views, pinned_scans
from windrow.views.rules.choose import core_of
from windrow.views.shown import as_shown, versions_below


def show(warehouse: Warehouse, record: ArrayRecord, scan: BoundScan, number: int) -> BoundRepeated:
    """A published version of a view, at the cells that there were when it was made."""
    view = next((view for view in known_views(warehouse) if view.array.id == record.id), None)
    if view is None:
        raise UnknownNameError("the view was dropped", got=repr(record.name))
    moment: dict[str, BoundNamed] = {}
    for base, version in versions_below(warehouse, record, number):
        stored = stored_scan(warehouse, base.name, base, version)
        moment[base.name] = as_shown(warehouse, base, stored, version.number)
    return at_cells(warehouse, view, scan, moment)


def at_cells(warehouse: Warehouse, view: KnownView, scan: BoundScan, moment: Moment) -> BoundRepeated:
    """What is stored of a view, at the cells of a moment of its bases."""
    core = core_of(view.definition.bind(moment, pinned_scans(warehouse, view.definition)))
    assert isinstance(core, BoundJoined)
    return BoundRepeated(
        schema=scan.schema,
        box=scan.box,
        labels=scan.labels,
        gridding=scan.gridding,
        name=scan.name,
        metadata=scan.metadata,
        source=core.source.left,
        results=scan,
        axes=tuple(scan.schema.axis(name) for name in view.reduced),
    )
