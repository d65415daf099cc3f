"""Expressions with other expressions in the place of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from windrow.expressions.nodes import Column, Node


def replaced_columns(node: Node, known: Mapping[str, Node]) -> Node:
    """``node``, with each column that is ``known`` replaced."""
    if isinstance(node, Column):
        return known.get(node.key, node)

    def change(part: Any) -> Any:
        if isinstance(part, Node):
            return replaced_columns(part, known)
        return tuple(map(change, part)) if isinstance(part, tuple) else part

    return replace(node, **{part.name: change(getattr(node, part.name)) for part in fields(node) if part.init})
