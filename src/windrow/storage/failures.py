"""Turns what stores and the operating system throw into windrow's errors."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from windrow.errors import CorruptionError, Error, StoreError

_NO_SPACE = ("no space left", "database or disk is full", "disk quota", "os error 28", "enospc")
_NO_PERMISSION = ("permission denied", "readonly database", "read-only file system", "unable to open database file")
_DAMAGED = ("file is not a database", "database disk image is malformed", "no such table", "no such column")


def describe(error: BaseException, place: str) -> StoreError | None:
    """The windrow error that says what an exception from a store means, if it is a known kind."""
    text = f"{error} {error.__cause__ or ''}".lower()
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT) or any(sign in text for sign in _NO_SPACE):
        return StoreError(f"the disk is full while writing {place}", hint="Free some space; nothing was changed")
    if number in (errno.EACCES, errno.EPERM, errno.EROFS) or any(sign in text for sign in _NO_PERMISSION):
        return StoreError(f"no permission for {place}", got=_first_line(error), hint="Check the warehouse's owner")
    if any(sign in text for sign in _DAMAGED):
        return CorruptionError(f"{place} is damaged", got=_first_line(error), hint="Restore the warehouse from a copy")
    if "database is locked" in text:
        return StoreError(f"{place} stayed locked by another process", hint="Try again")
    return None


@contextmanager
def store_failures(place: str) -> Iterator[None]:
    """Run a piece of store work; a full disk or a refused permission becomes a StoreError that says so."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        known = describe(error, place)
        if known is None:
            raise
        raise known from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
