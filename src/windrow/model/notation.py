"""Schema strings, in the notations of the papers and of SciDB: text to schema, and back to one canonical form.

``A <a: float64> [i=1:10:5]``, ``create A [i=1:3, j=1:3] <double a, double b>`` (paper 002) and
``A<r:int,s:int>[i=1,6,2;j=1,8,2]`` (paper 004) are all read; ``str`` of a schema is as in the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from windrow.errors import SchemaError
from windrow.model.schema import NUMBERING_MARK, WRAP_MARK, Attribute, Dimension, Schema, check_name
from windrow.model.types import ALIASES, TYPES, data_type

_Made = TypeVar("_Made")

_HEADING = ("create", "sparse", "array")
_EXAMPLE = "As in A <a: float64> [i=1:10, j=1:10]"
_TOKEN = re.compile(
    r"\s*+(?:(?P<word>[A-Za-z_][A-Za-z0-9_]*+)|(?P<number>(?:-\s*+)?[0-9]++)|(?P<symbol>[<>\[\]:=,;*])|(?P<other>\S))"
)
_MOST_DIGITS = 20
_SHOWN = 100


class NotationError(SchemaError):
    """A mistake in a schema's text, at ``position``."""

    position = 0


class _Token(NamedTuple):
    kind: str
    text: str
    at: int

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end of the text"
        return repr(self.text if len(self.text) <= 40 else self.text[:39] + "…")


def parse_schema(text: str, sparse: bool | None = None) -> tuple[str | None, Schema]:
    """The name, if there is one, and the schema that ``text`` states.

    ``sparse=None`` leaves it to the text, where an array is dense unless called sparse.

    >>> name, schema = parse_schema("create array A<r:int,s:int>[i=1,6,2;j=1,8,2]")
    >>> print(name, schema)
    A <r: int64, s: int64> [i=1:6:2, j=1:8:2]
    """
    if not isinstance(text, str):
        raise SchemaError("a schema must be text", got=type(text).__name__, hint=_EXAMPLE)
    return _Parser(text).schema(sparse)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._next = 0
        self._names: set[str] = set()
        self._token = self._read()

    def schema(self, sparse: bool | None) -> tuple[str | None, Schema]:
        start = self._token
        stated_sparse, name = self._heading()
        if stated_sparse and sparse is False:
            raise self._error("the text says sparse, but a dense array was asked for", start)
        attributes: list[Attribute] | None = None
        dimensions: list[Dimension] | None = None
        while attributes is None or dimensions is None:
            if attributes is None and self._accept("<"):
                attributes = self._attributes()
            elif dimensions is None and self._accept("["):
                dimensions = self._dimensions()
            elif attributes is None and dimensions is not None and self._token.kind == "end":
                break
            else:
                wanted = [w for w, part in (("<attributes>", attributes), ("[dimensions]", dimensions)) if part is None]
                raise self._mistake(" or ".join(wanted), _EXAMPLE)
        end = self._token
        if end.kind != "end":
            raise self._mistake("the end of the schema")
        is_sparse = stated_sparse or bool(sparse)
        parts = tuple(dimensions), tuple(attributes or ())
        return name, self._make(end, lambda: Schema(*parts, is_sparse))

    def _heading(self) -> tuple[bool, str | None]:
        self._accept_word("create")
        sparse = self._accept_word("sparse")
        self._accept_word("array")
        if self._token.kind != "word":
            return sparse, None
        token = self._take()
        return sparse, self._make(token, lambda: check_name(token.text, "an array"))

    def _attributes(self) -> list[Attribute]:
        attributes: list[Attribute] = []
        if self._accept(">"):
            return attributes
        while True:
            attributes.append(self._attribute())
            if self._accept(">"):
                return attributes
            if not self._accept(","):
                raise self._mistake("',' or '>'")

    def _attribute(self) -> Attribute:
        first = self._word("an attribute", "As in a: float64")
        if self._accept(":"):
            kind = self._word("a type", "Known: " + ", ".join(TYPES))
            nullable = self._accept_word("null")
            if not nullable and self._accept_word("not") and not self._accept_word("null"):
                raise self._mistake("'null' after 'not'")
            return self._make_attribute(first, kind, nullable)
        words = [first]
        while self._token.kind == "word":
            words.append(self._take())
        marks = [word.text.lower() for word in words[1:]]
        nullable = marks[-1:] == ["null"] and marks[-2:] != ["not", "null"]
        del words[len(words) - (1 if nullable else 2 if marks[-2:] == ["not", "null"] else 0) :]
        if len(words) == 1:
            if _is_type(first.text):
                raise self._error("an attribute needs a name", first, got=str(first), advice=f"As in a: {first.text}")
            return self._make_attribute(first, None, nullable)
        if len(words) > 2:
            raise self._error("expected ',' or '>'", words[2], got=str(words[2]))
        if _is_type(words[1].text) and not _is_type(first.text):
            advice = f"Write {first.text}: {words[1].text}"
            raise self._error("expected a type before the name", first, got=str(first), advice=advice)
        return self._make_attribute(words[1], first, nullable)

    def _make_attribute(self, name: _Token, kind: _Token | None, nullable: bool) -> Attribute:
        self._claim(name)
        made = TYPES["float64"] if kind is None else self._make(kind, lambda: data_type(kind.text))
        return self._make(name, lambda: Attribute(name.text, made, nullable))

    def _dimensions(self) -> list[Dimension]:
        dimensions: list[Dimension] = []
        if self._accept("]"):
            return dimensions
        while True:
            dimensions.append(self._dimension())
            if self._accept("]"):
                return dimensions
            # Paper 002's console lists dimensions with blanks between them, hence the optional separator.
            if not self._accept(",") and not self._accept(";") and self._token.kind != "word":
                raise self._mistake("',', ';' or ']'")

    def _dimension(self) -> Dimension:
        name = self._word("a dimension", "As in i=1:10 or, with chunks of 5, i=1:10:5")
        self._claim(name)
        if not self._accept("="):
            return self._make(name, lambda: Dimension(name.text, 1, None))
        lo = self._integer("the first cell")
        separator = self._token.text
        if not self._accept(":") and not self._accept(","):
            raise self._mistake("':' or ','", "As in i=1:10")
        hi = None if self._accept("*") else self._integer("the last cell, or *,")
        chunk = None
        if self._token.text == separator and (separator == ":" or self._number_follows()):
            self._take()
            chunk = self._integer("the chunk size")
        numbering, wrap = self._mark(NUMBERING_MARK), self._mark(WRAP_MARK)
        return self._make(name, lambda: Dimension(name.text, lo, hi, chunk, numbering, wrap))

    def _mark(self, word: str) -> bool:
        return self._token.text.lower() == word and not self._equals_follows() and bool(self._take())

    def _integer(self, what: str) -> int:
        if self._token.kind != "number":
            raise self._mistake(f"{what} as an integer")
        token = self._take()
        digits = "".join(token.text.split())
        if len(digits) > _MOST_DIGITS:
            raise self._error("the number is too large", token, got=str(token))
        return int(digits)

    def _claim(self, token: _Token) -> None:
        if token.text in self._names:
            raise self._error("a name is used twice in one schema", token, got=str(token))
        self._names.add(token.text)

    def _read(self) -> _Token:
        match = _TOKEN.match(self._text, self._next)
        if match is None or match.lastgroup is None:
            return _Token("end", "", len(self._text))
        self._next = match.end()
        return _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))

    def _take(self) -> _Token:
        token = self._token
        self._token = self._read()
        return token

    def _number_follows(self) -> bool:
        match = _TOKEN.match(self._text, self._next)
        return match is not None and match.lastgroup == "number"

    def _equals_follows(self) -> bool:
        """Whether the word that stands here is the name of a dimension, as in i=1:3 numbering=1:2."""
        match = _TOKEN.match(self._text, self._next)
        return match is not None and match["symbol"] == "="

    def _accept(self, symbol: str) -> bool:
        return self._token.kind == "symbol" and self._token.text == symbol and bool(self._take())

    def _accept_word(self, word: str) -> bool:
        return self._token.kind == "word" and self._token.text.lower() == word and bool(self._take())

    def _word(self, what: str, advice: str) -> _Token:
        if self._token.kind != "word":
            raise self._mistake(what, advice)
        return self._take()

    def _make(self, token: _Token, make: Callable[[], _Made]) -> _Made:
        try:
            return make()
        except SchemaError as error:
            raise self._error(error.what, token, got=error.got, advice=error.hint or "Here:") from None

    def _mistake(self, what: str, advice: str = "Here:") -> NotationError:
        return self._error(f"expected {what}", self._token, got=str(self._token), advice=advice)

    def _error(self, what: str, token: _Token, *, got: str | None = None, advice: str = "Here:") -> NotationError:
        shown = got if got is None or len(got) <= _SHOWN else got[: _SHOWN - 1] + "…"
        error = NotationError(what, got=shown, hint=f"{advice}\n{_pointer(self._text, token)}")
        error.position = token.at
        return error


def _is_type(word: str) -> bool:
    return word.lower() in TYPES or word.lower() in ALIASES


def _pointer(text: str, token: _Token) -> str:
    """The line the token stands in, with carets under the token; long lines are cut around it."""
    start = text.rfind("\n", 0, token.at) + 1
    end = text.find("\n", token.at)
    left = max(start, token.at - _SHOWN // 2)
    right = min(len(text) if end < 0 else end, left + _SHOWN)
    line = "".join(c if c.isprintable() else " " for c in text[left:right])
    before = "…" if left > start else ""
    after = "…" if right < (len(text) if end < 0 else end) else ""
    width = max(1, min(len(token.text), right - token.at))
    caret = " " * (len(before) + token.at - left) + "^" * width
    return f"    {before}{line}{after}\n    {caret}"
