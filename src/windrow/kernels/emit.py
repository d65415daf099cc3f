"""Networks as machine code, kept on disk so that other processes and later runs need not compile again.

A network is straight-line code over vectors. Numba would spend seconds on analysing what needs no analysis; LLVM's
code generator alone takes 0.03 seconds for a window of 30 and about one second for 15,000 steps.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import llvmlite  # type: ignore[import-untyped]
import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numba

from windrow.kernels import networks, tiles
from windrow.kernels.networks import Network
from windrow.kernels.tiles import Tile, TileNetwork
from windrow.kernels.vectors import vector_bytes

_KINDS = {4: ("float", "f32"), 8: ("double", "f64")}
_DIGEST = 32  # bytes before the code in a file
_lock = threading.Lock()
_loaded: dict[str, int] = {}
_engines: list[llvm.ExecutionEngine] = []


@dataclass(frozen=True)
class NetworkCode:
    """What a piece of code computes: ranks ``first`` to ``last`` (excluded) in the windows of a tile.

    It is a C function of two pointers. The cells of a tile's row along the last axis are ``stride`` items apart behind
    the first pointer, rows ``pitch`` items apart. The r-th rank of output k goes to slot ``k * (last - first) + r``
    behind the second.
    """

    tile: Tile
    first: int
    last: int
    pitch: int
    stride: int
    lanes: int
    itemsize: int

    def ready(self) -> bool:
        """Whether the code need not be compiled any more."""
        file = _file(self._name)
        return self._name in _loaded or (file is not None and file.exists())

    def address(self) -> int:
        """Where the code is, compiled now or found on disk."""
        with _lock:
            if self._name not in _loaded:
                _loaded[self._name] = _load(self._object_code())
            return _loaded[self._name]

    @property
    def _name(self) -> str:
        return _name(self)

    def _object_code(self) -> bytes:
        file = _file(self._name)
        code = _kept(file) if file else None
        if code is None:
            code = _compiled("\n".join(self._lines()))
            if file:
                _keep(file, code)
        return code

    def _lines(self) -> Iterator[str]:
        """The code in LLVM's language: one loop over the lanes, as many at a time as a register holds."""
        network = TileNetwork(self.tile, self.first, self.last)
        length = self.tile.cells[-1]
        places = [k // length * self.pitch + k % length * self.stride for k in range(network.network.inputs)]
        item, _ = _KINDS[self.itemsize]
        count = min(self.lanes, vector_bytes() // self.itemsize)
        yield from _declarations(count, self.itemsize)
        yield "define void @network(ptr noalias %inputs, ptr noalias %outputs) {"
        yield "entry:\n br label %body\nbody:"
        yield " %lane = phi i64 [0, %entry], [%next, %body]"
        yield f" %in = getelementptr {item}, ptr %inputs, i64 %lane"
        yield f" %out = getelementptr {item}, ptr %outputs, i64 %lane"
        yield from _Steps(network.network, network.outputs(), places, self.lanes, count, self.itemsize).lines()
        yield f" %next = add i64 %lane, {count}"
        yield f" %more = icmp ult i64 %next, {self.lanes}"
        yield " br i1 %more, label %body, label %done\ndone:\n ret void\n}"


def _declarations(count: int, itemsize: int) -> Iterator[str]:
    item, short = _KINDS[itemsize]
    vector = f"<{count} x {item}>"
    for name in ("minnum", "maxnum"):
        yield f"declare {vector} @llvm.{name}.v{count}{short}({vector}, {vector})"


class _Steps:
    """Inputs are loaded where they are first needed and results stored at once, to leave registers to the rest."""

    def __init__(
        self, network: Network, outputs: Sequence[int], places: Sequence[int], lanes: int, count: int, itemsize: int
    ) -> None:
        self.network, self.places, self.lanes, self.itemsize = network, places, lanes, itemsize
        self.item, short = _KINDS[itemsize]
        self.vector, self.suffix = f"<{count} x {self.item}>", f"v{count}{short}"
        self.live = network.live(outputs)
        self.loaded: set[int] = set()
        self.targets: dict[int, list[int]] = {}
        for place, node in enumerate(outputs):
            self.targets.setdefault(node, []).append(place)

    def lines(self) -> Iterator[str]:
        for node in sorted(node for node in self.targets if node < self.network.inputs):
            yield from self._load(node)
            yield from self._store(node)
        for number, (one, other) in enumerate(self.network.pairs):
            for node, name in enumerate(("minnum", "maxnum"), self.network.inputs + 2 * number):
                if self.live[node]:
                    yield from self._load(one)
                    yield from self._load(other)
                    # No NaN reaches a network, and which of two equal zeros comes out does not matter.
                    arguments = f"({self.vector} %n{one}, {self.vector} %n{other})"
                    yield f" %n{node} = call nnan nsz {self.vector} @llvm.{name}.{self.suffix}{arguments}"
                    yield from self._store(node)

    def _load(self, node: int) -> Iterator[str]:
        if node < self.network.inputs and node not in self.loaded:
            self.loaded.add(node)
            yield f" %p{node} = getelementptr {self.item}, ptr %in, i64 {self.places[node]}"
            yield f" %n{node} = load {self.vector}, ptr %p{node}, align {self.itemsize}"

    def _store(self, node: int) -> Iterator[str]:
        for place in self.targets.get(node, ()):
            yield f" %o{place} = getelementptr {self.item}, ptr %out, i64 {place * self.lanes}"
            yield f" store {self.vector} %n{node}, ptr %o{place}, align {self.itemsize}"


@functools.lru_cache(maxsize=1024)
def _name(code: NetworkCode) -> str:
    return hashlib.sha256("\n".join((repr(code), *_environment())).encode()).hexdigest()


@functools.cache
def _environment() -> tuple[str, ...]:
    """Everything else that code depends on: the machine, the compiler, and how networks are made."""
    sources = (inspect.getsource(module) for module in (networks, tiles, sys.modules[__name__]))
    features = llvm.get_host_cpu_features().flatten()
    return (llvm.get_host_cpu_name(), features, llvmlite.__version__, *sources)


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


def _load(code: bytes) -> int:
    # An engine of its own for each network: all of them call their function by the same name.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)  # code lives as long as its engine
    return int(engine.get_function_address("network"))


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
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        temporary.write_bytes(hashlib.sha256(code).digest() + code)
        os.replace(temporary, file)
    except OSError:  # a full or read-only disk costs time, not the answer
        temporary.unlink(missing_ok=True)


@functools.cache
def _cache_directory() -> Path | None:
    """Where Numba would keep its own code: NUMBA_CACHE_DIR, else beside this file, else nowhere."""
    asked = getattr(numba.config, "CACHE_DIR", "")
    chosen = Path(asked) if asked else Path(__file__).parent / "__pycache__"
    try:
        chosen.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return chosen if os.access(chosen, os.W_OK) else None


def _file(name: str) -> Path | None:
    directory = _cache_directory()
    return directory / f"network-{name}.o" if directory else None
