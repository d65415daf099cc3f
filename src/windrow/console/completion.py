"""What Tab offers: the words that can stand here, arrays, their attributes, functions, and files inside quotes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from windrow.console.commands import COMMANDS
from windrow.console.entry import typed
from windrow.errors import Error

if TYPE_CHECKING:
    from windrow.api.database import Database

_WORD = re.compile(r"[A-Za-z_\\][A-Za-z0-9_]*\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VALUES = frozenset({"INTEGER", "TEXT", "_CASE"})
"""What the grammar accepts where an expression may begin."""


class StatementCompleter(Completer):
    """Completes the word before the cursor."""

    def __init__(self, database: Callable[[], Database | None]) -> None:
        self._database = database

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        here = typed(before)
        if here.quote is not None:
            yield from _files(here.quote)
            return
        found = _WORD.search(here.statement)
        word = found[0] if found else ""
        for name, kind in self._offers(here.statement[: len(here.statement) - len(word)], document.text):
            if name.lower().startswith(word.lower()) and name != word:
                yield Completion(name, start_position=-len(word), display_meta=kind)

    def _offers(self, before: str, whole: str) -> Iterable[tuple[str, str]]:
        from windrow.language.mistakes import words_of

        accepted = accepted_terminals(before)
        offers: dict[str, str] = {}
        if not before.strip():
            offers |= dict.fromkeys(COMMANDS, "console")
        if accepted is None or "NAME" in accepted:
            offers |= self._names(whole, accepted is None or accepted >= _VALUES)
        for terminal in accepted or ():
            offers |= {word: "" for word in words_of(terminal) if word not in offers}
        return sorted(offers.items())

    def _names(self, statement: str, functions: bool) -> dict[str, str]:
        """Arrays, the columns of those that the statement names, and functions where an expression may stand."""
        from windrow.plan.names import name_text

        names: dict[str, str] = {}
        database = self._database()
        if database is not None:
            arrays = database.catalog.array_names()
            names |= {name_text(name): "array" for name in arrays}
            for array in set(_NAME.findall(statement)) & set(arrays):
                names |= _columns(database, array)
        if functions:
            from windrow.expressions.functions import FUNCTIONS
            from windrow.plan.specs import PARAMETERS

            names |= {f"{name}(": "function" for name in FUNCTIONS} | {f"{name}(": "aggregate" for name in PARAMETERS}
        return names


def _columns(database: Database, array: str) -> dict[str, str]:
    from windrow.plan.names import name_text

    try:
        schema = database.array(array).schema
    except Error:
        return {}
    attributes = {name_text(a.name): f"{a.type.name} of {array}" for a in schema.attributes}
    return attributes | {name_text(name): f"dimension of {array}" for name in schema.dimension_names}


def accepted_terminals(text: str) -> set[str] | None:
    """The grammar's words that may follow a text; None if it is not the beginning of a statement."""
    from lark.exceptions import LarkError

    from windrow.language.tables import parser

    try:
        state = parser().parse_interactive(text, start="statement")
        state.exhaust_lexer()
        return set(state.accepts())  # type: ignore[no-untyped-call]
    except LarkError:
        return None


def _files(begun: str) -> Iterator[Completion]:
    """Files and folders whose path begins with what stands between the quotes."""
    folder, _, part = begun.rpartition("/")
    place = Path(os.path.expanduser(folder + "/" if folder or begun.startswith("/") else "."))
    try:
        entries = sorted(place.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(part) and (part.startswith(".") or not entry.name.startswith(".")):
            name = entry.name + ("/" if entry.is_dir() else "")
            yield Completion(name.replace("'", "''"), start_position=-len(part), display=name)
