"""Groups asked for on xarray objects: by dimensions, and by parts of their times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import xarray as xr

from windrow.api.accessor.requests import Aggregates, argument_names, fill_missing, hold_variable, labels_of
from windrow.api.grouped import group_keys
from windrow.model.coordinates import coordinates_of
from windrow.operations.query.held import laid_on_grid
from windrow.operations.query.totals import TotalBlock, total_block
from windrow.plan.bound import BoundHeld
from windrow.plan.grouping.label_parts import BoundParted, GroupKey, along_axes
from windrow.plan.grouping.totals import bind_totals
from windrow.plan.scopes import CellScope


@dataclass(frozen=True)
class GroupRequest:
    """Groups by names of dimensions and of parts, which each variable binds for itself."""

    keys: tuple[GroupKey, ...]

    def compute(
        self, data: xr.DataArray, aggregates: Aggregates, other: xr.DataArray | None = None
    ) -> dict[str, xr.DataArray]:
        """The aggregates of one variable, or of one and another, in one pass over it."""
        source, labels = hold_variable(data, other), labels_of(data)
        schema, box = source.schema, source.box
        named = replace(
            schema, attributes=(), sparse=True
        )  # a variable is called by a name of ours, which nobody means
        scope = CellScope(named, box, coordinates_of(schema, dict(labels)), schema.dimension_names)
        items = tuple((name, aggregate.of(*argument_names(data))) for name, aggregate in aggregates.items())
        held = BoundHeld(schema=schema, box=box, labels=labels, table=None)
        found = bind_totals(self.keys, held, items, scope)
        parts = along_axes(found.parts) if isinstance(found, BoundParted) else ()
        table = total_block(TotalBlock(source, box, found.axes, items, found.schema, box, parts))
        blocks = laid_on_grid(found.schema, found.box, found.labels, table).blocks
        names, coords = found.schema.dimension_names, _coordinates(data, found.schema.dimension_names)
        coords |= {part.name: (part.name, _plain(part.labels.values)) for part in parts if part is not None}
        return {
            one.name: xr.DataArray(fill_missing(blocks, one), coords, names, one.name, data.attrs)
            for one in found.schema.attributes
        }


def _coordinates(data: xr.DataArray, kept: tuple[str, ...]) -> dict[str, Any]:
    """The coordinates that belong to the dimensions that stay."""
    return {str(name): one for name, one in data.coords.items() if set(map(str, one.dims)) <= set(kept)}


def _plain(values: Any) -> Any:
    return values.astype(object) if values.dtype.kind == "T" else values


def group_request(keys: tuple[str, ...]) -> GroupRequest:
    return GroupRequest(group_keys(keys))
