"""Every failure a user can meet, as one family.

A message says what is wrong, what was got, and what would be right, so that the reader can act without opening
the source. ``exit_code`` is what the command line ends with: 1 for a wrong query or wrong data, 3 for a machine or
store that cannot do the work.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class Error(Exception):
    """The base of all windrow errors: ``what`` went wrong, what was ``got``, and a ``hint`` towards what is right."""

    exit_code = 1

    def __init__(self, what: str, *, got: object = None, hint: str | None = None) -> None:
        self.what = what
        self.got = None if got is None else str(got)
        self.hint = hint
        super().__init__(what)

    @property
    def excerpt(self) -> str | None:
        """The line of a text that the mistake is in, with a caret below its place; None if it is in no text."""
        return None

    def __str__(self) -> str:
        text = self.what if self.got is None else f"{self.what}, got {self.got}"
        return text if self.hint is None else f"{text}. {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors travel from Spark's workers to the driver by pickle, which would drop the keyword arguments.
        return _rebuild, (type(self), self.what, self.got, self.hint)


def _rebuild(kind: type[Error], what: str, got: str | None, hint: str | None) -> Error:
    return kind(what, got=got, hint=hint)


class SchemaError(Error):
    """A schema, dimension, attribute, box, window or shape that cannot be."""


class UnknownNameError(Error):
    """An array, dimension, attribute, version or label that is not there."""


class DataError(Error):
    """Values that do not fit the array: out of range, of the wrong shape or type."""


class DuplicateError(DataError):
    """Several cells for one coordinate within one insert."""


class ExpressionError(Error):
    """A condition or value expression that cannot be understood or computed."""


class LanguageError(Error):
    """A statement that cannot be read."""


class FileFormatError(Error):
    """A file that cannot be read or written in the format asked for."""


class CancelledError(Error):
    """The work was stopped by its user; nothing of it is visible."""


class StoreError(Error):
    """The warehouse cannot do what was asked: wrong place, newer format, no space, no permission."""

    exit_code = 3


class ConflictError(StoreError):
    """Another writer held the array for longer than ``lock_timeout``."""


class CorruptionError(StoreError):
    """What was read is not what was written; the message names array, version and chunk."""


class MachineError(Error):
    """This machine lacks something the work needs: Java, Spark, a package."""

    exit_code = 3


class MemoryLimitError(MachineError):
    """The work would need more memory than it may use."""


def _likeness(name: str, known: str) -> float:
    """How alike two names are; people seldom mistake the first letter, and leave out others: average is avg."""
    alike = difflib.SequenceMatcher(None, known.lower(), name.lower()).ratio()
    return alike + 0.1 * (name[:1].lower() == known[:1].lower())


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint naming the known name closest to ``name``, or all of them when none is close; never ``name`` itself."""
    name = str(name)
    names = sorted(candidate for candidate in known if candidate != name)
    close = difflib.get_close_matches(name, names, n=5, cutoff=0.5)
    if not close:
        folded = {candidate.lower(): candidate for candidate in names}
        close = [folded[m] for m in difflib.get_close_matches(name.lower(), list(folded), n=5, cutoff=0.5)]
    if close:
        return f"Did you mean {max(close, key=lambda known: _likeness(name, known))!r}?"
    if not names:
        return "There are none yet."
    return "Known: " + ", ".join(names[:10]) + (", …" if len(names) > 10 else "")


class StaleViewWarning(UserWarning):
    """A view was read that does not hold for the present state of the arrays it reads."""
