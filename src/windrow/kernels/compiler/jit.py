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
from numba import extending
from numba.core import caching, errors, serialize

PACKAGE = __name__.rsplit(".", 2)[0]  # of all kernels, wherever they are
# Numba's own building blocks, which are typed for what its users do, or not at all.
native: Any = numba
native_extending: Any = extending
pickled: Any = serialize.dumps
NumbaCache: Any = caching.FunctionCache
CompilationError: type[Exception] = errors.NumbaError


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled function that Python calls; its code, and that of all it calls, is kept on disk."""
    return _kept(native.njit(nogil=True)(function), function.__module__)


def inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that only other compiled functions call."""
    options = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    result: Callable[..., Any] = native.njit(**options)(function)
    return result


def reordering(function: Callable[..., Any]) -> Callable[..., Any]:
    """As ``inner``, for additions whose order may be what suits the machine: always the same one on one machine."""
    options = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "fastmath": {"reassoc"}}
    result: Callable[..., Any] = native.njit(**options)(function)
    return result


def overload(function: Callable[..., Any], **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives a plain function a version for each kind of argument in compiled code."""
    result: Callable[[Callable[..., Any]], Callable[..., Any]] = native_extending.overload(function, **options)
    return result


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A few lines that become a part of every compiled function that calls them, before it is looked at as a whole."""
    result: Callable[..., Any] = native.njit(nogil=True, inline="always")(function)
    return result


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is compiled anew in every process, as loops around users' functions are."""
    result: Callable[..., Any] = native.njit(nogil=True)(function)
    return result


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """As ``compiled``, for users' own functions: an index beyond an array is an error, not somebody else's memory."""
    result: Callable[..., Any] = native.njit(nogil=True, boundscheck=True)(getattr(function, "py_func", function))
    return result


# Passing an array on counts a reference to it, which takes longer than most steps of a sliding window. Bare functions
# do not count, and may therefore work only on memory that they were given.
BARE = {"nogil": True, "_nrt": False}


def bare_kernel(function: Callable[..., Any], module: str) -> Callable[..., Any]:
    """As ``kernel``, of bare functions; ``module`` asks for it and knows everything that goes into it."""
    return _kept(native.njit(**BARE)(function), module)


def bare(function: Callable[..., Any]) -> Callable[..., Any]:
    """A step of bare kernels, which becomes a part of whatever calls it."""
    options = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    result: Callable[..., Any] = native.njit(**BARE, **options)(function)
    return result


def rare(function: Callable[..., Any]) -> Callable[..., Any]:
    """A step that bare kernels call so seldom that it stays out of the way of the others."""
    result: Callable[..., Any] = native.njit(**BARE, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return result


def _kept(dispatcher: Any, module: str) -> Callable[..., Any]:
    with contextlib.suppress(RuntimeError):  # where no directory can be written to, every process compiles for itself
        dispatcher._cache = _SharedCache(dispatcher.py_func, module)
    result: Callable[..., Any] = dispatcher
    return result


class _SharedCache(NumbaCache):  # type: ignore[misc]
    """Numba's cache of a function with other files."""

    def __init__(self, function: Callable[..., Any], module: str) -> None:
        super().__init__(function)
        self._cache_file = _Files(Path(self._cache_path), self._impl.filename_base, module)


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
