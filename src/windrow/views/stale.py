"""Saying that a view which is read is behind the arrays that it reads."""

from __future__ import annotations

import warnings

from windrow.errors import StaleViewWarning


def say_stale(name: str, reason: str, stacklevel: int = 5) -> None:
    """Warn whoever reads a view, so many calls above."""
    warnings.warn(f"view {name} is stale: {reason}", StaleViewWarning, stacklevel=stacklevel)
