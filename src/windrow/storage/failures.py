"""Turns what stores and the operating system throw into windrow's errors."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from windrow.errors import CorruptionError, Error, SchemaError, StoreError
from windrow.storage.records import Vector

_NO_SPACE = ("no space left", "database or disk is full", "disk quota", "os error 28", "enospc")
_NO_PERMISSION = ("permission denied", "readonly database", "read-only file system", "unable to open database file")
_DAMAGED = (
    "file is not a database",
    "database disk image is malformed",
    "malformed database schema",
    "no such table",
    "no such column",
    "foreign key constraint failed",
    "datatype mismatch",
    "could not decode to utf-8",
)

_STORES = {"DeltaError", "IcechunkError", "PanicException", "NodeNotFoundError", "MetadataValidationError"}
"""What the stores' packages raise, by name, because importing them here would make every connection slower."""


def describe(error: BaseException, place: str) -> StoreError | None:
    """The windrow error that says what an exception from a store means, if it is a known kind."""
    text = f"{error} {error.__cause__ or ''}".lower()
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT) or any(sign in text for sign in _NO_SPACE):
        return StoreError(f"the disk is full while writing {place}", hint="Free some space; nothing was changed")
    if number in (errno.EACCES, errno.EPERM, errno.EROFS) or any(sign in text for sign in _NO_PERMISSION):
        return StoreError(f"no permission for {place}", got=_first_line(error), hint="Check the warehouse's owner")
    if isinstance(error, UnicodeDecodeError) or any(sign in text for sign in _DAMAGED):
        return CorruptionError(f"{place} is damaged", got=_first_line(error), hint="Restore the warehouse from a copy")
    if "database is locked" in text:
        return StoreError(f"{place} stayed locked by another process", hint="Try again")
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & _STORES:
        return CorruptionError(
            f"{place} cannot be used, a file of it may be damaged or gone",
            got=_first_line(error),
            hint="Run: windrow doctor; or restore the warehouse from a copy",
        )
    if "DBAPIError" in kinds and "IntegrityError" not in kinds:
        return StoreError(f"{place} cannot be used", got=_first_line(error), hint="Run: windrow doctor")
    return None


@contextmanager
def damaged_rows(what: str) -> Iterator[None]:
    """Make values of rows; rows that make none were spoilt, or written by somebody who meant harm."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, SchemaError) as error:
        raise CorruptionError(
            f"the catalog is damaged: {what} cannot be read",
            got=_first_line(error),
            hint="Restore the warehouse from a copy",
        ) from error


@contextmanager
def store_failures(place: str) -> Iterator[None]:
    """Run a piece of store work; a full disk, a refused permission or damage becomes a StoreError that says so."""
    try:
        yield
    except (Error, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        known = describe(error, place)
        if known is None:
            raise
        raise known from error


@contextmanager
def vector_failures(title: str, part: str, vector: Vector | None) -> Iterator[None]:
    """Read a vector; one that is damaged or gone is an error that names the array, its version and the file."""
    try:
        yield
    except OSError as error:
        file = vector.file if vector is not None else ""
        raise CorruptionError(
            f"array {title}: the dead cells of chunks in {part} cannot be told, because {file} is damaged or gone",
            got=_first_line(error),
            hint="Read an older version, or restore the warehouse from a copy",
        ) from error


def _first_line(error: BaseException) -> str:
    # SQLAlchemy repeats the statement below the first line, Icechunk draws lines around what it says.
    lines = [line.strip(" x|") for line in str(error).splitlines() if line.strip(" x|")]
    return (lines or [type(error).__name__])[0][:200]
