"""Networks as machine code.

A network is straight-line code over vectors: LLVM's code generator takes 0.03 seconds for a window of 30 and about one
second for 15,000 steps.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from windrow.kernels.compiler.machine_code import addresses, is_ready, name_of, sources_of
from windrow.kernels.compiler.vectors import vector_bytes
from windrow.kernels.order import networks, tiles
from windrow.kernels.order.networks import Network
from windrow.kernels.order.tiles import Tile, TileNetwork

KINDS = {4: ("float", "f32"), 8: ("double", "f64")}


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
    settled: bool = False  # whether -0.0 becomes 0.0, since which of them is found depends on the tile

    def ready(self) -> bool:
        """Whether the code need not be compiled any more."""
        return is_ready(_name(self))

    def address(self) -> int:
        """Where the code is, compiled now or found on disk."""
        return addresses(_name(self), ["network"], self._lines)[0]

    def _lines(self) -> Iterator[str]:
        """The code in LLVM's language: one loop over the lanes, as many at a time as a register holds."""
        network = TileNetwork(self.tile, self.first, self.last)
        length = self.tile.cells[-1]
        places = [k // length * self.pitch + k % length * self.stride for k in range(network.network.inputs)]
        item, _ = KINDS[self.itemsize]
        count = min(self.lanes, vector_bytes() // self.itemsize)
        yield from declarations(count, self.itemsize)
        yield "define void @network(ptr noalias %inputs, ptr noalias %outputs) {"
        yield "entry:\n br label %body\nbody:"
        yield " %lane = phi i64 [0, %entry], [%next, %body]"
        yield f" %in = getelementptr {item}, ptr %inputs, i64 %lane"
        yield f" %out = getelementptr {item}, ptr %outputs, i64 %lane"
        yield from Steps(
            network.network, network.outputs(), places, self.lanes, count, self.itemsize, self.settled
        ).lines()
        yield f" %next = add i64 %lane, {count}"
        yield f" %more = icmp ult i64 %next, {self.lanes}"
        yield " br i1 %more, label %body, label %done\ndone:\n ret void\n}"


def declarations(count: int, itemsize: int) -> Iterator[str]:
    item, short = KINDS[itemsize]
    vector = f"<{count} x {item}>"
    for name in ("minnum", "maxnum"):
        yield f"declare {vector} @llvm.{name}.v{count}{short}({vector}, {vector})"


class Steps:
    """Inputs are loaded where they are first needed and results stored at once, to leave registers to the rest."""

    def __init__(
        self,
        network: Network,
        outputs: Sequence[int],
        places: Sequence[int],
        lanes: int,
        count: int,
        itemsize: int,
        settled: bool = False,
    ) -> None:
        self.network, self.places, self.lanes, self.itemsize = network, places, lanes, itemsize
        self.item, short = KINDS[itemsize]
        self.vector, self.suffix = f"<{count} x {self.item}>", f"v{count}{short}"
        self.settled = settled
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
            value = f"%n{node}"
            if self.settled:
                yield f" %z{place} = fadd {self.vector} {value}, zeroinitializer"
                value = f"%z{place}"
            yield f" store {self.vector} {value}, ptr %o{place}, align {self.itemsize}"


@functools.lru_cache(maxsize=1024)
def _name(code: NetworkCode) -> str:
    return name_of("network", repr(code), network_sources())


@functools.cache
def network_sources() -> str:
    return sources_of(networks, tiles, sys.modules[__name__])
