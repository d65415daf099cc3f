"""Machine code from LLVM text, kept on disk so that other processes and later runs need not compile again.

Straight loops over vectors need no analysis: Numba would take seconds where LLVM's code generator takes hundredths of
one.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType

import llvmlite  # type: ignore[import-untyped]
import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numba

_DIGEST = 32  # bytes before the code in a file
_lock = threading.Lock()
_loaded: dict[str, tuple[int, ...]] = {}
_engines: list[llvm.ExecutionEngine] = []


def is_ready(name: str) -> bool:
    """Whether the code of that name need not be compiled any more."""
    file = _file(name)
    return name in _loaded or (file is not None and file.exists())


def addresses(name: str, functions: Sequence[str], lines: Callable[[], Iterable[str]]) -> tuple[int, ...]:
    """Where the functions of a piece of code are, compiled now from ``lines`` or found on disk."""
    with _lock:
        if name not in _loaded:
            _loaded[name] = _load(_object_code(name, lines), functions)
        return _loaded[name]


def name_of(kind: str, *content: str) -> str:
    """A name for code that depends on this content, the machine and the compiler, and on nothing else."""
    digest = hashlib.sha256("\n".join((*content, *_environment())).encode()).hexdigest()
    return f"{kind}-{digest}"


def sources_of(*modules: ModuleType) -> str:
    """The text of the modules that make up code."""
    return "\n".join(inspect.getsource(module) for module in modules)


@functools.cache
def _environment() -> tuple[str, ...]:
    return (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), llvmlite.__version__)


def _object_code(name: str, lines: Callable[[], Iterable[str]]) -> bytes:
    file = _file(name)
    code = _kept(file) if file else None
    if code is None:
        code = _compiled("\n".join(lines()))
        if file:
            _keep(file, code)
    return code


def _compiled(text: str) -> bytes:
    module = llvm.parse_assembly(text)
    module.verify()
    return bytes(_machine().emit_object(module))


def _machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )


def _load(code: bytes, functions: Sequence[str]) -> tuple[int, ...]:
    # An engine of its own for each piece: functions of different pieces may have the same name.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)  # code lives as long as its engine
    return tuple(int(engine.get_function_address(function)) for function in functions)


def _kept(file: Path) -> bytes | None:
    """The code in a file; None if there is none or it is damaged, since damaged code must not be run."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    code = content[_DIGEST:]
    return code if hashlib.sha256(code).digest() == content[:_DIGEST] else None


def _keep(file: Path, code: bytes) -> None:
    """Write under another name first, so that no process ever reads half a file."""
    temporary = file.with_name(f"{file.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        temporary.write_bytes(hashlib.sha256(code).digest() + code)
        os.replace(temporary, file)
    except OSError:  # a full or read-only disk costs time, not the answer
        temporary.unlink(missing_ok=True)


@functools.cache
def _cache_directory() -> Path | None:
    """NUMBA_CACHE_DIR, else beside this file, else with the user's caches, else nowhere."""
    asked = str(getattr(numba.config, "CACHE_DIR", ""))
    own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "windrow"
    for chosen in [Path(asked)] if asked else [Path(__file__).parent / "__pycache__", own]:
        try:
            chosen.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(chosen, os.W_OK):
            return chosen
    return None


def _file(name: str) -> Path | None:
    directory = _cache_directory()
    return directory / f"{name}.o" if directory else None
