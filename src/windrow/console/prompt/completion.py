"""What Tab offers: the words that can stand here, arrays, their attributes, functions, and files inside quotes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from windrow.console.prompt.entry import read_typed
from windrow.console.prompt.words import COMMANDS

if TYPE_CHECKING:
    from windrow.api.database import Database

_WORD = re.compile(r"[A-Za-z_\\][A-Za-z0-9_]*\Z")


class StatementCompleter(Completer):
    """Completes the word before the cursor."""

    def __init__(self, database: Callable[[], Database | None]) -> None:
        self._database = database

    def get_completions(self, document: Document, _event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        here = read_typed(before)
        if here.quote is not None:
            yield from _files(here.quote)
            return
        found = _WORD.search(here.statement)
        word = found[0] if found else ""
        for name, kind in self._offers(here.statement[: len(here.statement) - len(word)], document.text):
            if name.lower().startswith(word.lower()) and name != word:
                yield Completion(name, start_position=-len(word), display_meta=kind)

    def _offers(self, before: str, whole: str) -> Iterable[tuple[str, str]]:
        from windrow.api.session.completion import next_words

        offers = dict.fromkeys(COMMANDS, "console") if not before.strip() else {}
        return sorted((offers | next_words(self._database(), before, whole)).items())


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
