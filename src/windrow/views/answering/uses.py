"""Whether queries are answered from views."""

from __future__ import annotations

from windrow.errors import DataError

USES = ("auto", "always", "stale", "off")
"""Whether views serve: where that is cheaper, wherever they can, the same also if they are behind, or never."""


def checked_use(use: str) -> str:
    if use not in USES:
        raise DataError("views serve in one of these ways: " + ", ".join(USES), got=repr(use))
    return use
