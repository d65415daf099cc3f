"""What has been typed so far: which statement the cursor is in, and which quote."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PARTS = re.compile(r"""'[^']*'?|"[^"]*"?|(?:--|\#)[^\n]*|;|[^'"\#;-]+|-""")


@dataclass(frozen=True)
class Typed:
    """The statement that a text ends in, and the quote that is open there, if any."""

    statement: str
    quote: str | None = None


def read_typed(text: str) -> Typed:
    """The last statement of a text that is still being typed.

    >>> read_typed("select A; import 'data/te")
    Typed(statement=" import 'data/te", quote='data/te')
    """
    begin = 0
    for part in _PARTS.finditer(text):
        found = part[0]
        if found == ";":
            begin = part.end()
        elif found[0] == "'" and part.end() == len(text) and (len(found) == 1 or found[-1] != "'"):
            return Typed(text[begin:], found[1:])
    return Typed(text[begin:])
