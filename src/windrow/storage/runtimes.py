"""The stores' packages after a fork.

Icechunk and Delta run threads of their own, which a forked child does not have: whatever it asks them waits for ever.
They cannot be started anew in the child, so it is told at once what to do instead.
"""

from __future__ import annotations

import os

from windrow.errors import MachineError

_first_users: dict[str, int] = {}
"""The process that used a package first; a child that was forked later inherits the note, but not the threads."""


def use_runtime(package: str) -> None:
    """Note that this process is about to use a package; refuse if it was forked from one that had used it."""
    process = os.getpid()
    first = _first_users.setdefault(package, process)
    if first != process:
        raise MachineError(
            f"{package} does not work in a process that was forked after its first use",
            got=f"process {process}, forked from {first}",
            hint='Start processes by multiprocessing.get_context("spawn") or "forkserver", '
            "or fork before the first read or write",
        )
