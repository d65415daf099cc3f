"""A dense array's Icechunk repository: opened, its branch made anew where it was lost, and committed to.

A branch is one small file that names the newest snapshot. Icechunk opens nothing without it, and does not flush it to
the disk. All that it says the catalog knows better, so whoever opens an array whose branch was lost writes it again.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from datetime import UTC, datetime

import icechunk

from windrow.errors import StoreError
from windrow.storage.places import check_name_inside, place_inside
from windrow.storage.runtimes import use_runtime

PACKAGE = "icechunk"
BRANCH = "main"
_FOLDERS = ("chunks", "manifests", "refs", "snapshots", "transactions")
"""What a repository consists of."""
_FILE = f"refs/branch.{BRANCH}/ref.json"
_LENGTH = 20
"""Of a snapshot's name."""

WAIT_SECONDS = 5.0
"""A clock that is behind by no more than this, as when it is adjusted in passing, is waited for."""
_CLOCK = ("invalid snapshot timestamp ordering", "snapshot timestamp is invalid")

icechunk.set_logs_filter("off")  # what goes wrong is raised as well; it warns of what the catalog's locks exclude


def open_repository(path: str, pointer: str | None = None) -> icechunk.Repository:
    """The repository in a folder; ``pointer`` is a snapshot at which its branch begins anew if it was lost."""
    use_runtime(PACKAGE)
    for folder in _FOLDERS:
        if os.path.islink(os.path.join(path, folder)):
            place_inside(path, folder)
    storage = icechunk.local_filesystem_storage(path)
    try:
        return icechunk.Repository.open(storage)
    except icechunk.IcechunkError:
        if pointer is None or branch_damage(path) is None or not make_branch(path, pointer):
            raise
        return icechunk.Repository.open(storage)


def branch_damage(path: str) -> str | None:
    """What is wrong with the file of a repository's branch; None if it names a snapshot."""
    try:
        with open(place_inside(path, _FILE), encoding="utf-8") as file:
            named = json.load(file)["snapshot"]
    except OSError:
        return "gone"
    except (ValueError, LookupError, TypeError):
        return "damaged"
    return None if isinstance(named, str) and len(named) == _LENGTH else "damaged"


def has_snapshot(path: str, pointer: str) -> bool:
    return os.path.isfile(place_inside(path, f"snapshots/{check_name_inside(pointer, 'a snapshot')}"))


def make_branch(path: str, pointer: str) -> bool:
    """Let the branch lead to a snapshot; False if that is gone as well, or nothing may be written here.

    Whoever reads does this without a lock. A branch that is gone is only made if it still is; the next writer moves it
    to the version it builds on, as after a crash.
    """
    if not has_snapshot(path, pointer):
        return False
    target = place_inside(path, _FILE)
    staged = f"{target}#{time.time_ns()}"  # files that are called so are none to Icechunk
    folder = os.path.dirname(target)
    try:
        for missing in (os.path.dirname(folder), folder):  # not the array's own folder: if that goes, it was dropped
            with suppress(FileExistsError):
                os.mkdir(missing)
        try:
            with open(staged, "x", encoding="utf-8") as file:
                json.dump({"snapshot": pointer}, file)
                file.flush()
                os.fsync(file.fileno())
            if branch_damage(path) == "damaged":
                os.replace(staged, target)
            else:
                with suppress(FileExistsError):
                    os.link(staged, target)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(staged)
    except OSError:
        return False
    return True


def commit(repository: icechunk.Repository, session: icechunk.Session, message: str) -> str:
    """Commit what was written in a session; returns the snapshot, that before if nothing was.

    Icechunk refuses a snapshot that would be older than the one before it.
    """
    if not session.has_uncommitted_changes:
        return repository.lookup_branch(BRANCH)
    try:
        return session.commit(message)
    except icechunk.IcechunkError as error:
        if not any(sign in str(error) for sign in _CLOCK):
            raise
        before = next(iter(repository.ancestry(snapshot_id=session.snapshot_id))).written_at
        behind = (before - datetime.now(UTC)).total_seconds()
        if not 0 <= behind <= WAIT_SECONDS:
            raise _wrong_clock(before, behind) from error
    time.sleep(behind + 0.01)
    return session.commit(message)


def _wrong_clock(before: datetime, behind: float) -> StoreError:
    if behind < 0:  # the file system's clock and this machine's differ
        return StoreError(
            "the clocks of this machine and of the disk differ by more than ten minutes",
            hint="Set the clocks right and write again; nothing was changed",
        )
    return StoreError(
        "the clock of this machine is behind the array's newest version",
        got=f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}, and a version of {before:%Y-%m-%d %H:%M:%S} UTC",
        hint="Set the clock right and write again; or, if it was ahead before, store the array anew under another name",
    )
