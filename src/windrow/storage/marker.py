"""The marker of a warehouse: its format, and whether its catalog is kept elsewhere.

Whoever can read the folder can read the marker, and whoever made the folder may have written anything into it. So it
holds no secret, and no address in it is ever opened.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from windrow.errors import StoreError
from windrow.storage.places import check_no_link

_ELSEWHERE = "elsewhere"
"""No address, so that a windrow that still opens what a marker names fails at it with a clear error."""


@dataclass(frozen=True)
class Marker:
    """What a marker says; ``catalog`` describes a catalog that is elsewhere, without user, password and options."""

    format: Any
    catalog: str | None = None
    is_old: bool = False
    """Whether it holds an address, as markers once did, which may have a password in it."""


def write_marker(marker: Path, format: Any, catalog_url: str | None) -> None:
    content: dict[str, object] = {"format": format}
    if catalog_url is not None:
        content |= {"catalog": _ELSEWHERE, "description": describe_address(catalog_url)}
    temporary = marker.with_name(marker.name + ".new")
    temporary.unlink(missing_ok=True)
    temporary.write_text(json.dumps(content) + "\n")
    temporary.replace(marker)


def read_marker(marker: Path) -> Marker:
    try:
        check_no_link(str(marker))
        content = json.loads(marker.read_text())
        stated = content["format"]
        catalog = content.get("catalog")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError("the warehouse's marker cannot be read", got=f"{marker}: {error}") from None
    if catalog is None:
        return Marker(stated)
    if catalog != _ELSEWHERE:
        return Marker(stated, describe_address(catalog), is_old=True)
    return Marker(stated, describe_address(content.get("description")))


def describe_address(url: object) -> str:
    """An address without user, password and options, fit to be shown and kept."""
    try:
        stated = sa.make_url(url)  # type: ignore[arg-type]
        # A SQLite file may carry its options in its name.
        database = (stated.database or "").partition("?")[0] or None
        shown = str(sa.URL.create(stated.drivername, host=stated.host, port=stated.port, database=database))
    except (sa.exc.ArgumentError, ValueError, TypeError, AttributeError):
        return "an address that cannot be read"
    return shown[:200] if shown.isprintable() else "an address that cannot be shown"
