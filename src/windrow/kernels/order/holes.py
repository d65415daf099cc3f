"""Networks that take tiles as they are, with cells missing here and there, and give results instead of ranks.

All missing cells become infinities of one sign, the one that moves the wanted rank least. The network finds the few
ranks that windows with few missing cells may want, and each lane picks its own by the number of its missing cells.
"""

from __future__ import annotations

import functools
import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod, sqrt

from windrow.kernels.compiler.machine_code import addresses, is_ready, name_of, sources_of
from windrow.kernels.compiler.vectors import vector_bytes
from windrow.kernels.order import network_code as emit
from windrow.kernels.order.lanes import Tables
from windrow.kernels.order.network_code import KINDS, Steps, declarations, network_sources
from windrow.kernels.order.tiles import Tile, TileNetwork

# Larger windows lack so many cells at a time that their networks would have to give too many ranks.
MOST_CELLS = 130
MOST_CELLS_ALONE = 64  # along one axis, where missing cells can be shared out to both sides more evenly


@dataclass(frozen=True)
class Choice:
    """Which ranks of a window answer, its missing cells counted in, and how far it is from the first to the second."""

    lower: int
    upper: int
    weight: float


@dataclass(frozen=True)
class HolesCode:
    """Code for tiles laid out as for ``NetworkCode``; ``choices`` are for windows with 0, 1, … missing cells.

    It is a C function of two pointers that tells whether a window needs more care: because more cells are missing, or
    because it lies between infinities. If not, results are in slots behind the second pointer.
    """

    tile: Tile
    above: bool  # whether missing cells become +inf, else -inf
    choices: tuple[Choice, ...]
    interpolates: bool
    pitch: int
    stride: int
    lanes: int
    itemsize: int

    def ready(self) -> bool:
        return is_ready(_name(self))

    def address(self) -> int:
        return addresses(_name(self), ["network"], self._lines)[0]

    def _lines(self) -> Iterator[str]:
        first = min(choice.lower for choice in self.choices)
        last = max(choice.upper for choice in self.choices) + 1
        network = TileNetwork(self.tile, first, last)
        count = min(self.lanes, vector_bytes() // self.itemsize)
        item = KINDS[self.itemsize][0]
        result = "double" if self.interpolates else item
        yield from declarations(count, self.itemsize)
        yield "define i64 @network(ptr noalias %inputs, ptr noalias %outputs) {"
        yield "entry:\n br label %body\nbody:"
        yield " %lane = phi i64 [0, %entry], [%next, %body]\n %worry = phi i1 [0, %entry], [%worried, %body]"
        yield f" %in = getelementptr {item}, ptr %inputs, i64 %lane"
        yield f" %out = getelementptr {result}, ptr %outputs, i64 %lane"
        steps = _PickingSteps(self, network, first, count)
        yield from steps.lines()
        yield from _any("worried", ["%worry", *steps.worries])
        yield f" %next = add i64 %lane, {count}\n %more = icmp ult i64 %next, {self.lanes}"
        yield " br i1 %more, label %body, label %done\ndone:"
        yield " %answer = zext i1 %worried to i64\n ret i64 %answer\n}"


def holes_code(tile: Tile, tables: Tables, pitch: int, stride: int, lanes: int, itemsize: int) -> HolesCode | None:
    """The code for tiles of which about a tenth of the cells is missing; None for windows that are too large."""
    cells = prod(tile.width)
    alone = sum(width > 1 for width in tile.width) < 2
    if cells > MOST_CELLS or (alone and cells > MOST_CELLS_ALONE and not tables.interpolates):
        return None
    most = min(cells - 1, ceil(0.1 * cells + 4.6 * sqrt(0.09 * cells)))
    above = tables.slope < 0.5
    choices = []
    for missing in range(most + 1):
        present, moved = cells - missing, 0 if above else missing
        lower, upper = int(tables.lower[present]) + moved, int(tables.upper[present]) + moved
        choices.append(Choice(lower, upper if tables.interpolates else lower, float(tables.weight[present])))
    return HolesCode(tile, above, _with_few_weights(choices), tables.interpolates, pitch, stride, lanes, itemsize)


def _with_few_weights(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """The same, with the weight of a neighbour where both ranks are one and the weight does not matter."""
    weights = [choice.weight for choice in choices if choice.lower < choice.upper]
    weight = weights[0] if weights else 0.0
    kept = []
    for choice in choices:
        weight = choice.weight if choice.lower < choice.upper else weight
        kept.append(replace(choice, weight=weight))
    return tuple(kept)


@functools.lru_cache(maxsize=1024)
def _name(code: HolesCode) -> str:
    return name_of("holes", repr(code), network_sources(), _source())


@functools.cache
def _source() -> str:
    return sources_of(emit, sys.modules[__name__])


def _any(name: str, flags: Sequence[str]) -> Iterator[str]:
    every = flags[0]
    for number, flag in enumerate(flags[1:]):
        yield f" %{name}.{number} = or i1 {every}, {flag}"
        every = f"%{name}.{number}"
    yield f" %{name} = or i1 {every}, {every}"


class _PickingSteps(Steps):
    """Steps whose inputs may be NaN; each output is picked as soon as the last of its ranks is there."""

    def __init__(self, code: HolesCode, network: TileNetwork, first: int, count: int) -> None:
        length = code.tile.cells[-1]
        places = [k // length * code.pitch + k % length * code.stride for k in range(network.network.inputs)]
        super().__init__(network.network, network.outputs(), places, code.lanes, count, code.itemsize)
        self.code, self.first, self.count = code, first, count
        self.ranks = network.results
        self.bits = f"<{count} x i{8 * code.itemsize}>"
        self.worries: list[str] = []
        self.waiting = [set(nodes) for nodes in network.results]
        self.wanted_by: dict[int, list[int]] = {}
        for output, nodes in enumerate(network.results):
            for node in set(nodes):
                self.wanted_by.setdefault(node, []).append(output)

    def lines(self) -> Iterator[str]:
        yield from self._counts()
        yield from super().lines()

    def _load(self, node: int) -> Iterator[str]:
        if node < self.network.inputs and node not in self.loaded:
            self.loaded.add(node)
            limit = f"0x{'7' if self.code.above else 'F'}FF0000000000000"
            limits = f"<{', '.join([f'{self.item} {limit}'] * self.count)}>"
            extreme = "minnum" if self.code.above else "maxnum"
            yield f" %p{node} = getelementptr {self.item}, ptr %in, i64 {self.places[node]}"
            yield f" %x{node} = load {self.vector}, ptr %p{node}, align {self.itemsize}"
            # The smaller of NaN and a number is the number.
            arguments = f"({self.vector} %x{node}, {self.vector} {limits})"
            yield f" %n{node} = call {self.vector} @llvm.{extreme}.{self.suffix}{arguments}"

    def _store(self, node: int) -> Iterator[str]:
        for output in self.wanted_by.get(node, ()):
            self.waiting[output].discard(node)
            if not self.waiting[output]:
                yield from self._pick(output)

    def _whole(self, number: int) -> str:
        item = f"i{8 * self.itemsize}"
        return f"<{', '.join([f'{item} {number}'] * self.count)}>"

    def _counts(self) -> Iterator[str]:
        """``%c<output>``: how many cells are missing from each window, negative, axis by axis."""
        *cells, length = self.code.tile.cells
        names = []
        for row in range(prod(cells)):
            total = "zeroinitializer"
            for k in range(row * length, (row + 1) * length):
                yield f" %q{k} = getelementptr {self.item}, ptr %in, i64 {self.places[k]}"
                yield f" %y{k} = load {self.vector}, ptr %q{k}, align {self.itemsize}"
                yield f" %u{k} = fcmp uno {self.vector} %y{k}, zeroinitializer"
                yield f" %g{k} = sext <{self.count} x i1> %u{k} to {self.bits}"
                yield f" %t{k} = add {self.bits} {total}, %g{k}"
                total = f"%t{k}"
            names.append(total)
        for axis in range(len(cells) - 1, -1, -1):
            before, after = prod(cells[:axis]), prod(self.code.tile.outputs[axis + 1 : len(cells)])
            gathered = []
            for outer in range(before):
                lines = [names[(outer * cells[axis] + cell) * after :][:after] for cell in range(cells[axis])]
                columns = []
                for inner in range(after):
                    tag = f"a{axis}.{outer}.{inner}"
                    yield from self._windows([line[inner] for line in lines], axis, tag)
                    columns.append([f"%{tag}.w{output}" for output in range(self.code.tile.outputs[axis])])
                gathered += [column[output] for output in range(self.code.tile.outputs[axis]) for column in columns]
            names = gathered
        self.missing = names

    def _windows(self, cells: list[str], axis: int, tag: str) -> Iterator[str]:
        """``%<tag>.w<output>``: sums over the windows along one axis, from sums over all cells before each."""
        sums = ["zeroinitializer"]
        for number, cell in enumerate(cells):
            yield f" %{tag}.s{number} = add {self.bits} {sums[-1]}, {cell}"
            sums.append(f"%{tag}.s{number}")
        for output in range(self.code.tile.outputs[axis]):
            begin = output * self.code.tile.step[axis]
            end = begin + self.code.tile.width[axis]
            yield f" %{tag}.w{output} = sub {self.bits} {sums[end]}, {sums[begin]}"

    def _pick(self, output: int) -> Iterator[str]:
        """Choose by the number of missing cells, from few to many."""
        choices, name, missing = self.code.choices, f"k{output}", self.missing[output]
        nodes = self.ranks[output]
        lower, upper = (f"%n{nodes[rank - self.first]}" for rank in (choices[0].lower, choices[0].upper))
        weight = self._doubles(choices[0].weight)
        flag = f"<{self.count} x i1>"
        for number, (choice, before) in enumerate(zip(choices[1:], choices, strict=False), 1):
            if choice == before:
                continue
            more = f"%{name}.q{number}"
            yield f" {more} = icmp slt {self.bits} {missing}, {self._whole(1 - number)}"
            if choice.lower != before.lower:
                other = f"{self.vector} %n{nodes[choice.lower - self.first]}"
                yield f" %{name}.l{number} = select {flag} {more}, {other}, {self.vector} {lower}"
                lower = f"%{name}.l{number}"
            if self.code.interpolates and choice.upper != before.upper:
                other = f"{self.vector} %n{nodes[choice.upper - self.first]}"
                yield f" %{name}.u{number} = select {flag} {more}, {other}, {self.vector} {upper}"
                upper = f"%{name}.u{number}"
            if self.code.interpolates and choice.weight != before.weight:
                wide = f"<{self.count} x double>"
                other = f"{wide} {self._doubles(choice.weight)}"
                yield f" %{name}.w{number} = select {flag} {more}, {other}, {wide} {weight}"
                weight = f"%{name}.w{number}"
        yield f" %{name}.over = icmp slt {self.bits} {missing}, {self._whole(1 - len(choices))}"
        yield from self._worry(f"{name}.over")
        yield from self._deliver(output, lower, upper, weight)

    def _doubles(self, number: float) -> str:
        return f"<{', '.join([f'double {_exact(number)}'] * self.count)}>"

    def _worry(self, flags: str) -> Iterator[str]:
        yield f" %{flags}.b = bitcast <{self.count} x i1> %{flags} to i{self.count}"
        yield f" %{flags}.a = icmp ne i{self.count} %{flags}.b, 0"
        self.worries.append(f"%{flags}.a")

    def _deliver(self, output: int, lower: str, upper: str, weight: str) -> Iterator[str]:
        """The result, with one kind of zero; in between two values, if these are no infinite distance apart."""
        name, vector, value = f"k{output}", self.vector, lower
        if self.code.interpolates:
            vector = f"<{self.count} x double>"
            ends = []
            for tag, end in (("from", lower), ("to", upper)):
                change = "fpext" if self.itemsize == 4 else "bitcast"
                yield f" %{name}.{tag} = {change} {self.vector} {end} to {vector}"
                ends.append(f"%{name}.{tag}")
            one, other = ends
            yield f" %{name}.apart = fsub {vector} {other}, {one}"
            yield f" %{name}.part = fmul {vector} %{name}.apart, {weight}"
            yield f" %{name}.moved = fadd {vector} {one}, %{name}.part"
            yield f" %{name}.same = fcmp oeq {vector} {one}, {other}"
            yield f" %{name}.point = select <{self.count} x i1> %{name}.same, {vector} {one}, {vector} %{name}.moved"
            value = f"%{name}.point"
            # Zero times an infinity is NaN.
            yield f" %{name}.none = fmul {vector} %{name}.apart, zeroinitializer"
            yield f" %{name}.endless = fcmp uno {vector} %{name}.none, zeroinitializer"
            yield from self._worry(f"{name}.endless")
        result, size = ("double", 8) if self.code.interpolates else (self.item, self.itemsize)
        yield f" %{name}.zero = fadd {vector} {value}, zeroinitializer"
        yield f" %{name}.at = getelementptr {result}, ptr %out, i64 {output * self.lanes}"
        yield f" store {vector} %{name}.zero, ptr %{name}.at, align {size}"


def _exact(number: float) -> str:
    """A double as LLVM reads it without rounding: its bits."""
    return f"0x{struct.unpack('>Q', struct.pack('>d', number))[0]:016X}"
