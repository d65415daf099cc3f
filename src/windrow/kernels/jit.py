"""Compiled functions, whose code is kept on disk and shared by all processes.

Numba's own cache numbers the files of a function in an index of its own, so that two processes which compile for
different types at the same time may write to the same file, and one later runs the other's code; and it notices only
changes to the function's own file. Here a file is named after everything its content depends on, and there is no index.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import numba
from numba.core import caching, serialize

PACKAGE = __name__.rpartition(".")[0]
# Numba's own building blocks, which are typed for what its users do, or not at all.
native: Any = numba
pickled: Any = serialize.dumps
NumbaCache: Any = caching.FunctionCache


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled function that Python calls; its code, and that of all it calls, is kept on disk."""
    dispatcher: Any = native.njit(nogil=True)(function)
    with contextlib.suppress(RuntimeError):  # where no directory can be written to, every process compiles for itself
        dispatcher._cache = _SharedCache(function)
    result: Callable[..., Any] = dispatcher
    return result


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that only other compiled functions call."""
    options = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    result: Callable[..., Any] = native.njit(**options)(function)
    return result


class _SharedCache(NumbaCache):  # type: ignore[misc]
    """Numba's cache of a function with other files."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _Files(Path(self._cache_path), self._impl.filename_base, function.__module__)


class _Files:
    """A file for each version of a function."""

    def __init__(self, directory: Path, name: str, module: str) -> None:
        self._directory, self._name, self._module = directory, name, module

    def load(self, key: Any) -> Any:
        try:
            content = self._file(key).read_bytes()
        except OSError:
            return None
        return pickle.loads(content)

    def save(self, key: Any, data: Any) -> None:
        """Write under another name first, so that no process ever reads half a file."""
        file = self._file(key)
        temporary = file.with_name(f"{file.name}.{uuid4().hex}")
        try:
            temporary.write_bytes(pickled(data))
            os.replace(temporary, file)
        except OSError:  # a full or read-only disk costs time, not the answer
            temporary.unlink(missing_ok=True)

    def flush(self) -> None:
        for file in self._directory.glob(f"{self._name}.*.nbc"):
            file.unlink(missing_ok=True)

    def _file(self, key: Any) -> Path:
        content = repr((key, numba.__version__, _sources(self._module)))
        return self._directory / f"{self._name}.{hashlib.sha256(content.encode()).hexdigest()[:32]}.nbc"


@functools.cache
def _sources(module: str) -> str:
    """A digest of a module's text and of all the kernels' modules that it uses."""
    digest = hashlib.sha256()
    for name in sorted(_used(module, set())):
        digest.update(inspect.getsource(sys.modules[name]).encode())
    return digest.hexdigest()


def _used(module: str, seen: set[str]) -> set[str]:
    seen.add(module)
    for value in vars(sys.modules[module]).values():
        owner = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(owner, str) and owner.startswith(PACKAGE + ".") and owner not in seen:
            _used(owner, seen)
    return seen
