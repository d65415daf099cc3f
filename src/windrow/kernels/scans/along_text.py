"""Loops that widen a row to windows along itself and write results, as LLVM text; ``loops`` says what each does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from windrow.kernels.scans.text import LINE, LoopText, Vector

ENDS = ("skew", "last")
CELLS = "cells"  # the divisor of averages in which no cell is missing; else it is a type of counts, or nothing


class AlongText(LoopText):
    """``finish`` and ``stretch`` write rows of results.

    Each step takes a line of totals. Where a loop has a ``skew``, its first step may overlap the second, so that stores
    are aligned from then on, and the last one may overlap the one before, so that no cells are left over: no such loop
    reads what it has written.
    """

    partial = ""

    def finish(self, rows: int, extra: bool, divisor: str) -> Iterator[str]:
        """As ``join``, into a row of results; what averages are divided by: see ``Merge.finish``."""
        names, places = self._rows(rows, extra)
        divisors, factors = _divisors(divisor)

        def body() -> Iterator[str]:
            for part in range(self.parts):
                yield from self._tree(names, part, "m")
                yield from self._divide(part, divisor)
                yield from self._store(self.top, "to", part)
            yield from self._ask_place()

        yield from self._declaration()
        yield from self._average_declarations()
        arguments = ["to", "row", "stride", "extra", *divisors, *factors, "ahead", *ENDS]
        yield f"define void @loop({', '.join(f'i64 %{argument}' for argument in arguments)}) {{\nentry:"
        yield from places
        for factor in factors:
            yield from self._spread(factor)
        yield from (f" %{name}.p = inttoptr i64 %{name} to ptr" for name in ["to", *names, *divisors])
        yield from self._steps(body)
        yield "done:\n ret void\n}"

    def bare(self) -> Iterator[str]:
        """Whether a row holds what a merge of nothing would give."""
        vector, lanes = self.total.text, f"<{self.total.lanes} x i1>"
        compare = "fcmp oeq" if self.total.floating else "icmp eq"

        def body() -> Iterator[str]:
            flags = "%seen"
            for part in range(self.parts):
                yield from self._load("row", part)
                yield f" %same{part} = {compare} {vector} %row.v{part}, {self.identity}"
                yield f" %bits{part} = sext {lanes} %same{part} to {self.total.bits}"
                yield f" %flags{part} = or {self.total.bits} {flags}, %bits{part}"
                flags = f"%flags{part}"
            yield f" %found = or {self.total.bits} {flags}, zeroinitializer"

        yield "define i64 @loop(i64 %row, i64 %last) {\nentry:\n %row.p = inttoptr i64 %row to ptr"
        yield f" %skew = add i64 0, {LINE}"
        yield from self._steps(body, f"\n %seen = phi {self.total.bits} [zeroinitializer, %entry], [%found, %body]")
        yield from self._answer(self.total)

    def stretch(self, width: int, divisor: str) -> Iterator[str]:
        """Widen a row that is read once: first to windows as wide as a register has lanes, then to several registers.

        What registers hold side by side is merged in pairs, pairs of pairs and so on, all of which stay in registers.
        """
        whole, rest = divmod(width, self.total.lanes)
        history = History(self, whole)
        yield from self._declaration()
        yield from self._average_declarations()
        divisors, factors = _divisors(divisor)
        arguments = ["to", "first", "final", "row", *divisors, *factors, "ahead", "last"]
        yield f"define void @loop({', '.join(f'i64 %{argument}' for argument in arguments)}) {{\nentry:"
        for factor in factors:
            yield from self._spread(factor)
        yield from (f" %{name}.p = inttoptr i64 %{name} to ptr" for name in ["to", "first", "final", "row", *divisors])
        for number in range(whole):
            yield from self._lanes(f"%e{number}.", "%row.p", number * self.register, 0)
            yield from history.take(self.top, f"%e{number}")
        carried = history.carried()
        yield " br label %body\nbody:\n %i = phi i64 [0, %entry], [%next, %body]"
        names = [f"%h{k}" for k in range(len(carried))]
        text: list[str] = []
        history.restart(names)
        for part in range(self.parts):
            text += self._lanes(f"%b{part}.", "%row.i", whole * self.register + part * self.register, rest)
            total, partial = self.top, self.partial
            text += history.result(f"%m{part}")
            self.top = history.top
            if rest:
                text.append(self.merged(f"%w{part}", self.top, partial))
                self.top = f"%w{part}"
            text += self._divide(part, divisor)
            text += self._store(self.top, "place", part)
            text += history.take(total, f"%t{part}")
        ends = zip(names, carried, history.carried(), strict=True)
        yield from (f" {name} = phi {self.total.text} [{start}, %entry], [{end}, %body]" for name, start, end in ends)
        yield " %row.i = getelementptr i8, ptr %row.p, i64 %i"
        yield " %begins = icmp eq i64 %i, 0\n %ends = icmp eq i64 %i, %last"
        yield " %to.i = getelementptr i8, ptr %to.p, i64 %i"
        yield " %inside = select i1 %ends, ptr %final.p, ptr %to.i\n %at = select i1 %begins, ptr %first.p, ptr %inside"
        yield " %back = sub i64 0, %i\n %place.p = getelementptr i8, ptr %at, i64 %back"
        yield from text
        yield from self._ask_place()
        yield f" %next = add i64 %i, {LINE}\n br i1 %ends, label %done, label %body\ndone:\n ret void\n}}"

    def _lanes(self, tag: str, pointer: str, start: int, rest: int) -> list[str]:
        """Windows of as many cells as there are lanes, ``top``, and of the first ``rest`` of them, ``partial``."""
        lines, level = [], []
        for lane in range(self.total.lanes):
            lines.append(f" {tag}a{lane} = getelementptr i8, ptr {pointer}, i64 {start + lane * self.total.bytes}")
            lines.append(f" {tag}l{lane} = load {self.total.text}, ptr {tag}a{lane}, align {self.total.bytes}")
            level.append(f"{tag}l{lane}")
        found = {1: level}
        while len(level) > 1:
            merged = [f"{tag}m{len(level)}.{k}" for k in range(len(level) // 2)]
            lines += [self.merged(name, level[2 * k], level[2 * k + 1]) for k, name in enumerate(merged)]
            level = merged
            found[self.total.lanes // len(level)] = level
        self.top = level[0]
        pieces, at = [], 0
        for size in sorted(found, reverse=True):
            if rest & size:
                pieces.append(found[size][at // size])
                at += size
        for number, piece in enumerate(pieces[1:]):
            lines.append(self.merged(f"{tag}p{number}", pieces[0] if number == 0 else f"{tag}p{number - 1}", piece))
        self.partial = "" if not pieces else pieces[0] if len(pieces) == 1 else f"{tag}p{len(pieces) - 2}"
        return lines

    def _ask_place(self) -> Iterator[str]:
        yield " %there = add i64 %to, %ahead\n %there.p = inttoptr i64 %there to ptr"
        yield " %soon = getelementptr i8, ptr %there.p, i64 %i"
        yield " call void @llvm.prefetch.p0(ptr %soon, i32 1, i32 3, i32 1)"

    def _average_declarations(self) -> Iterator[str]:
        vector = self.total.text
        if self.total.floating:
            yield f"declare {vector} @llvm.fma.{self.total.suffix}({vector}, {vector}, {vector})"

    def _spread(self, name: str) -> Iterator[str]:
        """A number that came as bits, in every lane."""
        vector, lanes = self.total.text, self.total.lanes
        yield f" %{name}.d = bitcast i64 %{name} to double"
        yield f" %{name}.0 = insertelement {vector} poison, double %{name}.d, i32 0"
        yield f" %{name}.v = shufflevector {vector} %{name}.0, {vector} poison, <{lanes} x i32> zeroinitializer"

    def _divide(self, part: int, divisor: str) -> Iterator[str]:
        """``top`` divided by what the loop was written for."""
        if divisor == CELLS:
            yield from self._divide_by_cells(part)
        elif divisor:
            yield from self._divide_by_counts(part, 8 * np.dtype(divisor).itemsize)

    def _divide_by_counts(self, part: int, bits: int) -> Iterator[str]:
        vector, counts, size = self.total.text, f"<{self.total.lanes} x i{bits}>", bits // 8
        yield f" %first{part} = add i64 %i, {part * self.register}"
        yield f" %number{part} = sdiv exact i64 %first{part}, {self.total.bytes}"
        yield f" %counts.a{part} = getelementptr i{bits}, ptr %counts.p, i64 %number{part}"
        yield f" %count{part} = load {counts}, ptr %counts.a{part}, align {size}"
        yield f" %divisor{part} = uitofp {counts} %count{part} to {vector}"
        yield f" %quotient{part} = fdiv {vector} {self.top}, %divisor{part}"
        self.top = f"%quotient{part}"

    def _divide_by_cells(self, part: int) -> Iterator[str]:
        """By how wide and high a window is.

        The quotient by way of a reciprocal is corrected by what it lacks, so that it is as good as a division, but for
        infinities, which it would spoil.
        """
        vector, fma = self.total.text, f"@llvm.fma.{self.total.suffix}"
        for name, factor in (("widths", "height"), ("inverses", "inverse")):
            yield from self._load(name, part)
            yield f" %{name}.n{part} = fmul {vector} %{name}.v{part}, %{factor}.v"
        yield f" %rough{part} = fmul {vector} {self.top}, %inverses.n{part}"
        yield f" %minus{part} = fneg {vector} %rough{part}"
        yield (
            f" %lack{part} = call {vector} {fma}({vector} %minus{part}, {vector} %widths.n{part}, {vector} {self.top})"
        )
        yield (
            f" %fine{part} = call {vector} {fma}({vector} %lack{part}, {vector} %inverses.n{part}, "
            f"{vector} %rough{part})"
        )
        yield f" %lost{part} = fcmp uno {vector} %lack{part}, zeroinitializer"
        lanes = f"<{self.total.lanes} x i1>"
        yield f" %quotient{part} = select {lanes} %lost{part}, {vector} %rough{part}, {vector} %fine{part}"
        self.top = f"%quotient{part}"

    def _answer(self, vector: Vector) -> Iterator[str]:
        """The end of a function that gives whether a bit of ``%found`` is set."""
        whole = f"i{8 * vector.bytes * vector.lanes}"
        yield f"done:\n %bits = bitcast {vector.bits} %found to {whole}"
        yield f" %any = icmp ne {whole} %bits, 0\n %result = zext i1 %any to i64\n ret i64 %result\n}}"

    def _steps(self, body: Callable[[], Iterator[str]], also: str = "") -> Iterator[str]:
        yield f" br label %body\nbody:\n %i = phi i64 [0, %entry], [%next, %body]{also}"
        yield from body()
        yield f" %start = icmp eq i64 %i, 0\n %onward = add i64 %i, {LINE}"
        yield " %step = select i1 %start, i64 %skew, i64 %onward\n %beyond = icmp sgt i64 %step, %last"
        yield " %next = select i1 %beyond, i64 %last, i64 %step\n %end = icmp eq i64 %i, %last"
        yield " br i1 %end, label %done, label %body"


def _divisors(divisor: str) -> tuple[list[str], list[str]]:
    """Rows of numbers that a divisor is made of, and numbers that are the same for the whole row."""
    if divisor == CELLS:
        return ["widths", "inverses"], ["height", "inverse"]
    return (["counts"] if divisor else []), []


class History:
    """The last registers of a row, and merges of 2, 4, 8 of them up to each; ``count`` of them make a result."""

    def __init__(self, text: LoopText, count: int) -> None:
        self.text = text
        self.pieces = [1 << bit for bit in range(count.bit_length() - 1, -1, -1) if count >> bit & 1]
        self.last: dict[int, list[str]] = {1 << bit: [] for bit in range(count.bit_length())}
        # How far back a merge of each size is looked at: by results, and by merges of twice the size.
        self.depth = {size: size for size in self.last if 2 * size in self.last}
        back = 0
        for size in self.pieces:
            self.depth[size] = max(self.depth.get(size, 0), back + 1)
            back += size
        self.top = ""

    def take(self, value: str, tag: str) -> Iterator[str]:
        """One register more."""
        for size in sorted(self.last):
            if size > 1:
                before = self.last[size // 2]
                if len(before) < size // 2 + 1:
                    break
                yield self.text.merged(f"{tag}.{size}", before[-1 - size // 2], before[-1])
                value = f"{tag}.{size}"
            self.last[size].append(value)

    def result(self, tag: str) -> Iterator[str]:
        """``top``: the merge of the last so many."""
        back, self.top = 0, ""
        for size in self.pieces:
            piece = self.last[size][-1 - back]
            if self.top:
                yield self.text.merged(f"{tag}.{size}", self.top, piece)
            self.top = f"{tag}.{size}" if self.top else piece
            back += size

    def carried(self) -> list[str]:
        """What the next step needs."""
        return [name for size, depth in self.depth.items() for name in self.last[size][-depth:]]

    def restart(self, names: Sequence[str]) -> None:
        """Give what is carried other names, in the same order."""
        rest = iter(names)
        for size, depth in self.depth.items():
            self.last[size] = [next(rest) for _ in self.last[size][-depth:]]
