"""Importing the modules that run statements, quickly: it is most of what a short script waits for."""

from __future__ import annotations

import gc
import sys
import threading


def load_statements() -> None:
    """Import the language and what runs it.

    What is imported stays until the end, so the garbage collector is told not to look at it again.
    """
    if "windrow.api.session.statements" in sys.modules:
        return
    collecting = gc.isenabled()
    gc.disable()
    try:
        import windrow.api.database
        import windrow.api.session.statements
        import windrow.console.session.viewing  # noqa: F401
        from windrow.api.session.script import load_language

        load_language()
        gc.freeze()
    finally:
        if collecting:
            gc.enable()


class Loading:
    """Loads in a thread of its own while the user reads and types: the prompt need not wait."""

    def __init__(self) -> None:
        self._loaded = threading.Event()

    @property
    def done(self) -> bool:
        return self._loaded.is_set()

    def start(self) -> None:
        threading.Thread(target=self._load, name="windrow-loading", daemon=True).start()

    def wait(self) -> None:
        """Wait for the end: two threads that import the same modules at once could see half of them."""
        self._loaded.wait()

    def _load(self) -> None:
        try:
            load_statements()
        finally:
            self._loaded.set()  # what failed fails again, and is explained, when it is needed
