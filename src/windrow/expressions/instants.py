"""Dates and times written as text."""

from __future__ import annotations

from datetime import datetime, timedelta

from windrow.errors import Error, ExpressionError
from windrow.model.units import period

_EPOCH = datetime(1970, 1, 1)


def timestamp(text: str) -> datetime:
    """The instant in UTC that an ISO text stands for; of a day or month, its beginning."""
    try:
        return _EPOCH + timedelta(microseconds=period(text).first)
    except (Error, OverflowError) as error:
        shown = repr(text if len(text) <= 40 else text[:39] + "…")
        raise ExpressionError("not a date or time", got=shown, hint="As in '2012-01-31 18:00'") from error
