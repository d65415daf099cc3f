"""Expressions with some of their parts changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from windrow.expressions.nodes import Column, Node


def rebuild(node: Node, changed: Callable[[Node], Node | None]) -> Node:
    """The expression with some of its parts changed, from the top down."""
    found = changed(node)
    if found is not None:
        return found

    def change(part: Any) -> Any:
        if isinstance(part, Node):
            return rebuild(part, changed)
        return tuple(map(change, part)) if isinstance(part, tuple) else part

    return replace(node, **{part.name: change(getattr(node, part.name)) for part in fields(node) if part.init})


def as_said(node: Node) -> Node:
    """The expression as the query says it, for errors: of a join's sides by the names that these have there."""

    def changed(part: Node) -> Node | None:
        said = isinstance(part, Column) and part.said is not None
        return replace(part, qualifier=part.said) if isinstance(part, Column) and said else None

    return rebuild(node, changed)
