"""Places that a warehouse's own files name: each is checked to lie inside before it is read or removed.

Somebody else may have made the warehouse. A catalog, a marker or a log that names ``../mine``, ``/home`` or a link that
leads there must not make windrow read, change or delete anything outside.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from windrow.errors import CorruptionError

_HINT = "Do not trust this warehouse: it was damaged, or made to reach other folders. Nothing was changed"


def check_name_inside(name: str, what: str) -> str:
    """``name`` if it is the name of one file or folder and of nothing else: no way out, no characters that hide one."""
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\\" in name or not name.isprintable():
        raise CorruptionError(f"{what} is no plain name", got=repr(name)[:200], hint=_HINT)
    return name


def check_directory(stated: str) -> str:
    """``stated`` if it is written as the folder of an array's store is: ``arrays/<name>``."""
    folder, _, name = stated.partition("/") if isinstance(stated, str) else ("", "", "")
    if folder != "arrays":
        raise CorruptionError("the catalog names a folder outside the warehouse", got=repr(stated)[:200], hint=_HINT)
    check_name_inside(name, "a folder named by the catalog")
    return stated


def place_inside(root: str | os.PathLike[str], relative: str) -> str:
    """The path of ``relative`` in a folder, if nothing on the way is a link; the folder itself may be one."""
    path = os.fspath(root)
    for name in relative.split("/"):
        path = f"{path}/{name}"
        if os.path.islink(path):
            raise _link(path)
    return path


def check_no_link(path: str) -> os.stat_result:
    """The status of a file that is no link; an OSError if there is none."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        raise _link(path)
    return status


def check_no_links(folder: str) -> None:
    """Refuse a store with a link in it, however deep, before anything in it is removed by name."""
    for current, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(current, name)
            if os.path.islink(path):
                raise _link(path)


def _link(path: str) -> CorruptionError:
    hint = "A warehouse holds no links; to keep it on another disk, link the warehouse's own folder"
    return CorruptionError("a link leads out of the warehouse", got=f"{path} -> {os.path.realpath(path)}", hint=hint)


def directory_bytes(path: str | Path) -> int:
    """What the files of a folder take up, without following links."""
    size = 0
    for current, _, files in os.walk(path):
        for name in files:
            with suppress(FileNotFoundError):  # renamed or removed since it was listed
                size += os.lstat(os.path.join(current, name)).st_size
    return size
