"""Loops over rows of totals, written in LLVM's language for each way to merge and each type; see ``loops``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from windrow.kernels.compiler.vectors import vector_bytes

LINE = 64  # bytes that a loop takes at a time: a cache line on x86 and most ARM cores
_JOINED = ("to", "row", "stride", "extra")


class Vector:
    """A vector of numbers as LLVM spells it."""

    def __init__(self, dtype: np.dtype[Any], lanes: int) -> None:
        size = 8 * dtype.itemsize
        self.floating = dtype.kind == "f"
        self.signed = dtype.kind == "i"
        self.bytes = dtype.itemsize
        self.lanes = lanes
        self.item = {32: "float", 64: "double"}[size] if self.floating else f"i{size}"
        self.text = f"<{lanes} x {self.item}>"
        self.bits = f"<{lanes} x i{size}>"
        self.suffix = f"v{lanes}{'f' if self.floating else 'i'}{size}"

    def all(self, number: str) -> str:
        return f"<{', '.join([f'{self.item} {number}'] * self.lanes)}>"


class LoopText:
    """The text of all loops of one merge. A line is several registers, each of which is treated on its own."""

    positive_zeros = True  # whether cells brought in are never minus zero

    def __init__(self, rule: str, cell: np.dtype[Any], total: np.dtype[Any]) -> None:
        register = min(vector_bytes(), LINE)
        self.rule = rule
        self.total = Vector(total, register // total.itemsize)
        self.cell = Vector(cell, self.total.lanes)
        self.parts = LINE // register
        self.register = register
        self.checked = self.cell.floating and rule != "carried"
        self.top = ""
        self.identity = self.total.all(_identity(rule, total))

    def kit(self) -> Iterator[str]:
        yield from self._loop("fill", ["row", "length"], ["row"], self._fill)
        yield from self._bring()
        yield from self._pick()

    def _declaration(self) -> Iterator[str]:
        vector = self.total.text
        if self.rule in ("min", "max"):
            yield f"declare {vector} @{self._extreme}({vector}, {vector})"
        yield "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"

    @property
    def _extreme(self) -> str:
        kind = "" if self.total.floating else "s" if self.total.signed else "u"
        return f"llvm.{kind}{self.rule}{'num' if self.total.floating else ''}.{self.total.suffix}"

    def _loop(
        self, name: str, arguments: Sequence[str], pointers: Sequence[str], body: Callable[[], Iterator[str]],
        before: Sequence[str] = (),
    ) -> Iterator[str]:  # fmt: skip
        """A loop over the lines of ``%length`` bytes; ``pointers`` become pointers that the body adds ``%i`` to."""
        yield f"define void @{name}({', '.join(f'i64 %{argument}' for argument in arguments)}) {{\nentry:"
        yield from before
        yield from (f" %{pointer}.p = inttoptr i64 %{pointer} to ptr" for pointer in pointers)
        yield " %any = icmp slt i64 0, %length"
        yield " br i1 %any, label %body, label %done\nbody:\n %i = phi i64 [0, %entry], [%next, %body]"
        yield from body()
        yield f" %next = add i64 %i, {LINE}\n %more = icmp slt i64 %next, %length"
        yield " br i1 %more, label %body, label %done\ndone:\n ret void\n}"

    def _place(self, pointer: str, part: int) -> Iterator[str]:
        yield f" %{pointer}.i{part} = getelementptr i8, ptr %{pointer}.p, i64 %i"
        yield f" %{pointer}.a{part} = getelementptr i8, ptr %{pointer}.i{part}, i64 {part * self.register}"

    def _load(self, pointer: str, part: int) -> Iterator[str]:
        """``%pointer.v<part>`` is a register of the row."""
        yield from self._place(pointer, part)
        yield f" %{pointer}.v{part} = load {self.total.text}, ptr %{pointer}.a{part}, align {self.total.bytes}"

    def _store(self, value: str, pointer: str, part: int) -> Iterator[str]:
        yield from self._place(pointer, part)
        yield f" store {self.total.text} {value}, ptr %{pointer}.a{part}, align {self.total.bytes}"

    def merged(self, result: str, one: str, other: str) -> str:
        vector = self.total.text
        if self.rule not in ("min", "max"):
            return f" {result} = {'fadd' if self.total.floating else 'add'} {vector} {one}, {other}"
        # Contributions are neither NaN nor minus zero: one instruction will do.
        flags = "nnan nsz " if self.total.floating else ""
        return f" {result} = call {flags}{vector} @{self._extreme}({vector} {one}, {vector} {other})"

    def _fill(self) -> Iterator[str]:
        for part in range(self.parts):
            yield from self._store(self.identity, "row", part)

    def _tree(self, names: Sequence[str], part: int, tag: str, first: str | None = None) -> Iterator[str]:
        """Rows merged into ``%tag<part>``, as a balanced tree: the error of a sum hardly grows with their number."""
        level = [first] if first else []
        for name in names:
            yield from self._load(name, part)
            level.append(f"%{name}.v{part}")
        while len(level) > 1:
            pairs = list(zip(level[::2], level[1::2], strict=False))
            merged = [f"%{tag}{part}.{len(level)}.{k}" for k in range(len(pairs))]
            for result, (one, other) in zip(merged, pairs, strict=True):
                yield self.merged(result, one, other)
            level = merged + level[2 * len(pairs) :]
        self.top = level[0]

    def _rows(self, rows: int, extra: bool) -> tuple[list[str], list[str]]:
        """The names of rows a stride apart and of an extra one, and where they begin."""
        places = [f" %s{k} = mul i64 %stride, {k}\n %r{k} = add i64 %row, %s{k}" for k in range(rows)]
        return [f"r{k}" for k in range(rows)] + ["extra"] * extra, places

    def join(self, rows: int, extra: bool) -> Iterator[str]:
        names, places = self._rows(rows, extra)

        def body() -> Iterator[str]:
            for part in range(self.parts):
                yield from self._tree(names, part, "m")
                yield from self._store(self.top, "to", part)

        yield from self._declaration()
        yield from self._loop("loop", [*_JOINED, "length"], ["to", *names], body, places)

    def advance(self, rows: int, extra: bool) -> Iterator[str]:
        names, places = self._rows(rows, extra)

        def body() -> Iterator[str]:
            for part in range(self.parts):
                yield from self._tree(names, part, "m")
                yield from self._store(self.top, "slot", part)
                yield from self._load("before", part)
                yield self.merged(f"%total{part}", f"%before.v{part}", self.top)
                yield from self._store(f"%total{part}", "prefix", part)
                yield from self._load("suffix", part)
                yield self.merged(f"%whole{part}", f"%suffix.v{part}", f"%total{part}")
                yield from self._store(f"%whole{part}", "to", part)
            yield from self._ask()

        yield from self._declaration()
        others = ["slot", "before", "prefix", "suffix", "ahead"]
        yield from self._loop("loop", [*_JOINED, *others, "length"], ["to", *others, *names], body, places)

    def _ask(self) -> Iterator[str]:
        """Ask for the cells of the next row that come to lie here: rows are too short for the hardware to see it."""
        yield f" %bytes = mul i64 %i, {self.cell.bytes}\n %asked = sdiv exact i64 %bytes, {self.total.bytes}"
        yield " %ahead.a = getelementptr i8, ptr %ahead.p, i64 %asked"
        yield " call void @llvm.prefetch.p0(ptr %ahead.a, i32 0, i32 3, i32 1)"

    def _pick(self) -> Iterator[str]:
        item, size = self.total.item, self.total.bytes
        yield "define void @pick(i64 %row, i64 %step, i64 %length, i64 %to) {\nentry:"
        yield " %row.p = inttoptr i64 %row to ptr\n %to.p = inttoptr i64 %to to ptr\n br label %body\nbody:"
        yield " %i = phi i64 [0, %entry], [%next, %body]\n %at = mul i64 %i, %step"
        yield " %from = getelementptr i8, ptr %row.p, i64 %at\n %place = getelementptr i8, ptr %to.p, i64 %i"
        yield f" %value = load {item}, ptr %from, align {size}\n store {item} %value, ptr %place, align {size}"
        yield f" %next = add i64 %i, {size}\n %more = icmp slt i64 %next, %length"
        yield " br i1 %more, label %body, label %done\ndone:\n ret void\n}"

    def _bring(self) -> Iterator[str]:
        """Two loops: from the first NaN on, the second one replaces them.

        The last line is taken once more over some of the cells before, instead of one by one over those left.
        """
        yield "define i64 @bring(i64 %cells, i64 %row, i64 %length) {\nentry:"
        yield " %cells.p = inttoptr i64 %cells to ptr\n %row.p = inttoptr i64 %row to ptr"
        yield f" %last = sub i64 %length, {LINE}\n br label %blind\nblind:\n %i = phi i64 [0, %entry], [%next, %kept]"
        yield from self._contributions("%i", "b", careful=False)
        yield " br i1 %goneb, label %wary, label %kept\nkept:"
        yield from self._deliver("%i", "b")
        yield f" %next = add i64 %i, {LINE}\n %more = icmp slt i64 %next, %last"
        yield " br i1 %more, label %blind, label %final\nwary:"
        yield " %j = phi i64 [%i, %blind], [%after, %wary]"
        yield from self._contributions("%j", "w", careful=True)
        yield from self._deliver("%j", "w")
        yield f" %after = add i64 %j, {LINE}\n %again = icmp slt i64 %after, %last"
        yield " br i1 %again, label %wary, label %final\nfinal:\n %found = phi i64 [0, %kept], [1, %wary]"
        yield from self._contributions("%last", "z", careful=True)
        yield from self._deliver("%last", "z")
        yield " %lost = zext i1 %gonez to i64\n %result = or i64 %found, %lost\n ret i64 %result\n}"

    def _contributions(self, at: str, tag: str, careful: bool) -> Iterator[str]:
        """What a line of cells brings into a merge, ``%value<part><tag>``, and whether one is NaN, ``%gone<tag>``."""
        cell, parts = self.cell, range(self.parts)
        if cell.bytes == self.total.bytes:
            yield f" %from{tag} = getelementptr i8, ptr %cells.p, i64 {at}"
        else:
            yield f" %bytes{tag} = mul i64 {at}, {cell.bytes}"
            yield f" %at{tag} = sdiv exact i64 %bytes{tag}, {self.total.bytes}"
            yield f" %from{tag} = getelementptr i8, ptr %cells.p, i64 %at{tag}"
        for part in parts:
            yield from self._contribution(f"{part}{tag}", f"%from{tag}", part, careful)
        if not self.checked:
            yield f" %gone{tag} = icmp ne i64 0, 0"
            return
        # A comparison tells whether either of two is NaN.
        every = ""
        for part in parts[::2]:
            ends = f"%cell{part}{tag}, %cell{min(part + 1, self.parts - 1)}{tag}"
            yield f" %nans{part}{tag} = fcmp uno {cell.text} {ends}"
            if every:
                yield f" %every{part}{tag} = or <{cell.lanes} x i1> {every}, %nans{part}{tag}"
            every = f"%every{part}{tag}" if every else f"%nans{part}{tag}"
        yield f" %flags{tag} = bitcast <{cell.lanes} x i1> {every} to i{cell.lanes}"
        yield f" %gone{tag} = icmp ne i{cell.lanes} %flags{tag}, 0"

    def _contribution(self, name: str, line: str, part: int, careful: bool) -> Iterator[str]:
        """Cells of one register of totals: converted or squared; where careful, NaN becomes the identity."""
        cell, total = self.cell, self.total
        yield f" %place{name} = getelementptr i8, ptr {line}, i64 {part * cell.bytes * cell.lanes}"
        yield f" %cell{name} = load {cell.text}, ptr %place{name}, align {cell.bytes}"
        value = f"%cell{name}"
        if cell.bytes != total.bytes:
            change = "fpext" if cell.floating else "sext" if cell.signed else "zext"
            if total.floating and not cell.floating:
                change = "sitofp" if cell.signed else "uitofp"
            yield f" %wide{name} = {change} {cell.text} {value} to {total.text}"
            value = f"%wide{name}"
        if self.rule == "squares":
            yield f" %square{name} = fmul {total.text} {value}, {value}"
            value = f"%square{name}"
        if self.checked and careful:
            lanes = f"<{cell.lanes} x i1>"
            yield f" %nan{name} = fcmp uno {cell.text} %cell{name}, zeroinitializer"
            yield f" %known{name} = select {lanes} %nan{name}, {total.text} {self.identity}, {total.text} {value}"
            value = f"%known{name}"
        if total.floating and self.positive_zeros and (careful or self.rule in ("min", "max")):
            # Minus zero becomes zero, or the sign of an extreme would depend on the order of merging. For sums this
            # only keeps LLVM from a masked store, which is slow on some machines.
            yield f" %value{name} = fadd {total.text} {value}, zeroinitializer"
        else:
            yield f" %value{name} = bitcast {total.text} {value} to {total.text}"

    def _deliver(self, at: str, tag: str) -> Iterator[str]:
        yield f" %to{tag} = getelementptr i8, ptr %row.p, i64 {at}"
        for part in range(self.parts):
            yield f" %goal{part}{tag} = getelementptr i8, ptr %to{tag}, i64 {part * self.register}"
            total = self.total
            yield f" store {total.text} %value{part}{tag}, ptr %goal{part}{tag}, align {total.bytes}"


def _identity(rule: str, total: np.dtype[Any]) -> str:
    """What merges with anything without changing it."""
    if rule not in ("min", "max"):
        return "0.0" if total.kind == "f" else "0"
    if total.kind == "f":
        return "0x7FF0000000000000" if rule == "min" else "0xFFF0000000000000"
    limits = np.iinfo(total)
    return str(limits.max if rule == "min" else limits.min)
