"""A query's steps below its totals as one: stored values, a box, conditions, and what is aggregated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from windrow.expressions.nodes import Column, Node
from windrow.expressions.tiles import condition_obstacle, tile_obstacle, tile_type
from windrow.model.box import Box
from windrow.model.types import DataType
from windrow.operations.query.cellwise import CellColumns, GridCells, GridColumns, number_types, plain_types
from windrow.operations.query.scans import StoredCells, StoredGrid
from windrow.plan.substitution import replaced_columns


@dataclass(frozen=True)
class Pipeline:
    """What is read of a stored array, and what becomes of each cell. It pickles."""

    stored: StoredGrid | StoredCells
    box: Box
    outputs: dict[str, Node]
    """The attributes of the result, as expressions over those that are stored."""
    conditions: tuple[Node, ...] = ()

    def needed(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The stored attributes that these outputs and the conditions read."""
        nodes = [*(self.outputs[name] for name in names), *self.conditions]
        keys = {column.key for node in nodes for column in node.columns()}
        return tuple(name for name in self.stored.schema.attribute_names if name in keys)


def pipeline_of(source: Any) -> Pipeline | str:
    """A source as a pipeline, or why it is none."""
    if isinstance(source, (StoredGrid, StoredCells)):
        outputs: dict[str, Node] = {name: Column(name) for name in source.schema.attribute_names}
        box = source.snapshot.box
        return Pipeline(source, box, outputs)
    if not isinstance(source, (GridColumns, GridCells, CellColumns)):
        return "its cells are computed by other steps first"
    below = pipeline_of(source.source)
    if isinstance(below, str):
        return below
    if isinstance(source, GridCells):
        outputs = dict(below.outputs)
    else:
        outputs = {name: replaced_columns(node, below.outputs) for name, node in source.outputs}
    conditions = below.conditions
    if not isinstance(source, GridColumns) and source.condition is not None:
        conditions = (*conditions, replaced_columns(source.condition, below.outputs))
    return replace(below, box=below.box & source.box, outputs=outputs, conditions=conditions)


def pipeline_obstacle(pipeline: Pipeline, names: tuple[str, ...]) -> str | None:
    """Why expressions and conditions cannot be computed on tiles; a stored column can always be passed on."""
    types = plain_types(pipeline.stored.schema)
    for name in names:
        node = pipeline.outputs[name]
        if not isinstance(node, Column):
            found = tile_obstacle(node, types)
            if found:
                return found
        elif node.key not in pipeline.stored.schema.attribute_names:
            return f"{node} is the number of a cell"
    types = number_types(pipeline.stored.schema)
    return next(filter(None, (condition_obstacle(node, types) for node in pipeline.conditions)), None)


def output_type(pipeline: Pipeline, name: str) -> DataType:
    node = pipeline.outputs[name]
    if isinstance(node, Column):
        return pipeline.stored.schema.attribute(node.key).type
    return tile_type(node, plain_types(pipeline.stored.schema))
