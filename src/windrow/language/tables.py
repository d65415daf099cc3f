"""The parser that the two grammar files make, kept between runs because making it takes longer than reading it."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark

_LOG = logging.getLogger(__name__)
_OPTIONS: dict[str, Any] = {
    "parser": "lalr",
    "lexer": "contextual",
    "propagate_positions": True,
    "maybe_placeholders": True,
    "start": ["start", "statement"],
    # Else "wİndow" would be a keyword in another case, and "ſ" a letter of a name.
    "g_regex_flags": re.ASCII,
}


def grammar_text() -> str:
    """Both grammar files, expressions first."""
    folder = files("windrow.language")
    return "\n".join(folder.joinpath(f"{name}.lark").read_text(encoding="utf-8") for name in ("expression", "grammar"))


@cache
def parser() -> Lark:
    """The parser of expressions (``start``) and statements (``statement``)."""
    from lark import Lark

    grammar = grammar_text()
    kept = kept_tables(grammar)
    with suppress(Exception):  # whatever is wrong with what was kept, the grammar itself is always there
        if kept is not None and kept.stat().st_uid == os.getuid():
            with kept.open("rb") as file:
                return Lark.load(file)
    made = Lark(grammar, **_OPTIONS)
    if kept is not None:
        _keep(made, kept)
    return made


def kept_tables(grammar: str) -> Path | None:
    """Where the tables of a grammar are kept: a file of the user's own, named after all that they depend on."""
    from lark import __version__

    stated = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(stated) if stated and Path(stated).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    depends = repr((grammar, _OPTIONS, __version__, sys.version_info[:2]))
    return folder / "windrow" / f"grammar-{hashlib.sha256(depends.encode()).hexdigest()[:32]}.pickle"


def _keep(made: Lark, path: Path) -> None:
    """Written beside and moved into place, so that no other process reads half of it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                made.save(file)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        _LOG.debug("the parser's tables are not kept: %s", error)
