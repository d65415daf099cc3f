"""Fingerprints of users' aggregates: the same in every process while the functions do the same, other when they change.

A view that keeps results of a user's aggregate compares them, so that a changed function body is noticed. What counts
is what a function does: its bytecode, constants and names, the values that it takes from around it, and the functions
that it calls; not where it stands, nor what its lines are called. Another Python version may compile other bytecode,
and then the fingerprint is another one, too.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from windrow.aggregates.user import UserAggregate

_FUNCTIONS = ("empty", "add", "result", "remove", "merge")


def fingerprint(aggregate: UserAggregate) -> str:
    """A digest of what an aggregate computes."""
    digest = hashlib.sha256()
    seen: dict[int, int] = {}
    for part in (aggregate.name.lower(), str(aggregate.result), aggregate.exact_remove):
        _feed(digest, part, seen)
    for name in _FUNCTIONS:
        _feed(digest, getattr(aggregate.functions, name), seen)
    return digest.hexdigest()


def fingerprint_function(function: object) -> str:
    """A digest of what a function does."""
    digest = hashlib.sha256()
    _feed(digest, function, {})
    return digest.hexdigest()


def _feed(digest: Any, value: object, seen: dict[int, int]) -> None:
    """Tell the digest of a value, each piece with its kind and length, so that no two values look alike."""
    for piece in _pieces(value, seen):
        if isinstance(piece, bytes):
            digest.update(len(piece).to_bytes(8, "big") + piece)
        else:
            _feed(digest, piece[0], seen)


def _pieces(value: object, seen: dict[int, int]) -> Iterator[bytes | tuple[object]]:
    """What a value is: bytes, and further values in brackets."""
    value = getattr(value, "py_func", value)  # what a compiled function was made of
    yield type(value).__name__.encode()
    if isinstance(value, types.FunctionType | types.CodeType | list | dict):
        # Functions may call themselves, or one another.
        if id(value) in seen:
            yield seen[id(value)].to_bytes(8, "big")
            return
        seen[id(value)] = len(seen)
    if isinstance(value, types.FunctionType):
        yield from ((part,) for part in _of_function(value))
    elif isinstance(value, types.CodeType):
        yield value.co_code
        for part in (value.co_consts, value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars):
            yield (part,)
        yield (value.co_argcount,)
    elif isinstance(value, types.ModuleType):
        yield value.__name__.encode()
    elif isinstance(value, np.ndarray):
        yield str((value.dtype, value.shape)).encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, tuple | list):
        yield from ((part,) for part in value)
        yield len(value).to_bytes(8, "big")
    elif isinstance(value, Mapping):
        yield from (((key, part),) for key, part in sorted(value.items(), key=lambda item: repr(item[0])))
    elif isinstance(value, set | frozenset):
        # Their order is another one in every process.
        yield from ((part,) for part in sorted(value, key=repr))
    elif isinstance(value, type | types.BuiltinFunctionType | np.ufunc):
        yield f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value)}".encode()
    else:
        yield _text(value)


def _of_function(function: types.FunctionType) -> Iterator[object]:
    yield function.__code__
    yield function.__defaults__
    yield function.__kwdefaults__
    yield tuple(cell.cell_contents for cell in function.__closure__ or ())
    names = sorted(_names_used(function.__code__))
    yield tuple((name, function.__globals__[name]) for name in names if name in function.__globals__)


def _names_used(code: types.CodeType) -> set[str]:
    """Names of globals and attributes, of functions inside too; an attribute called as a global counts as that."""
    inside = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names_used, inside))


def _text(value: object) -> bytes:
    """A plain value as text; of anything else only its type, since how it is shown may hold an address."""
    plain = isinstance(value, bool | int | float | complex | str | bytes | np.generic | None | types.EllipsisType)
    return repr(value).encode() if plain else f"{type(value).__module__}.{type(value).__qualname__}".encode()
