"""Files on disk: finding those that a path, pattern or list means, and writing so that nothing is half there."""

from __future__ import annotations

import glob
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windrow.errors import FileFormatError, StoreError, nearest
from windrow.formats.registry import Paths


def expand(path: Paths) -> list[str]:
    """The existing files or directories that ``path`` means: itself, a pattern's matches by name, or the list's."""
    if not isinstance(path, (str, os.PathLike)):
        found = [one for item in path for one in expand(item)]
        if not found:
            raise FileFormatError("no files were given", got="an empty list")
        return found
    text = os.fspath(path)
    if os.path.exists(text):
        return [text]
    if glob.has_magic(text):
        matches = sorted(glob.glob(text, recursive=True))
        if matches:
            return matches
        raise FileFormatError("no file matches the pattern", got=text)
    directory = Path(text).parent
    if not directory.is_dir():
        raise FileFormatError("no such file", got=text, hint=f"There is no directory {directory} either")
    siblings = sorted(entry.name for entry in directory.iterdir() if not entry.name.startswith("."))
    raise FileFormatError("no such file", got=text, hint=nearest(Path(text).name, siblings))


@contextmanager
def replacing(path: str | os.PathLike[str], overwrite: bool) -> Iterator[Path]:
    """A temporary sibling to write to, a file or a directory, that takes the place of ``path`` if all goes well."""
    target = Path(path)
    _refuse_existing(target, overwrite)
    if not target.parent.is_dir():
        raise FileFormatError("no such directory to write to", got=target.parent)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.tmp")
    try:
        yield temporary
        _refuse_existing(target, overwrite)
        _move(temporary, target)
    except OSError as error:
        raise StoreError(f"cannot write {target}", got=error.strerror or error) from error
    finally:
        _remove(temporary)


def _refuse_existing(target: Path, overwrite: bool) -> None:
    if os.path.lexists(target) and not overwrite:
        raise FileFormatError("the file is already there", got=target, hint="Ask to overwrite it, or name another")


def _move(temporary: Path, target: Path) -> None:
    if not target.is_dir():
        if temporary.is_dir() and os.path.lexists(target):
            target.unlink()
        os.replace(temporary, target)
        return
    # A directory cannot be replaced in one step: the old one steps aside and comes back if the new one cannot move in.
    aside = target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}.old")
    os.replace(target, aside)
    try:
        os.replace(temporary, target)
    except OSError:
        os.replace(aside, target)
        raise
    _remove(aside)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
