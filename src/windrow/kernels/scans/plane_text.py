"""Loops that merge several rows of cells at once, down the columns, as LLVM text; ``loops`` says what each does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from windrow.kernels.scans.along_text import ENDS, AlongText
from windrow.kernels.scans.text import Vector


class PlaneText(AlongText):
    """``direct`` merges all rows of a few windows; ``suffix`` and ``prefix`` are the two halves of a block scan."""

    positive_zeros = False  # it is enough if results are not

    def direct(self, outputs: int, height: int, careful: bool) -> Iterator[str]:
        """Windows of ``height`` rows, one below the other: what all of them cover is merged once."""
        rows = outputs + height - 1

        def body(part: int) -> Iterator[str]:
            for row in range(rows):
                yield from self._cells(row, part, careful)
            shared = [self._value(row, part) for row in range(outputs - 1, height)]
            yield from self._tree_of(shared, f"%shared{part}")
            above = [self.top]
            for row in range(outputs - 2, -1, -1):
                yield self.merged(f"%above{part}.{row}", self._value(row, part), above[-1])
                above.append(f"%above{part}.{row}")
            yield from self._give(above[-1], 0, part)
            below = ""
            for output in range(1, outputs):
                new = self._value(height - 1 + output, part)
                if below:
                    yield self.merged(f"%below{part}.{output}", below, new)
                below = f"%below{part}.{output}" if below else new
                yield self.merged(f"%whole{part}.{output}", above[outputs - 1 - output], below)
                yield from self._give(f"%whole{part}.{output}", output, part)

        new = range(height - 1, rows)
        yield from self._function(["to"], rows, range(rows) if careful else new, new, body, careful)

    def suffix(self, rows: int, careful: bool) -> Iterator[str]:
        """Rows merged with all rows below them."""

        def body(part: int) -> Iterator[str]:
            yield from self._load_row("below", part)
            for row in range(rows):
                yield from self._cells(row, part, careful)
            values = [self._value(row, part) for row in range(rows)]
            yield from self._tree_of(values, f"%rows{part}")
            yield self.merged(f"%given0.{part}", self.top, f"%below.v{part}")
            yield from self._store_row(f"%given0.{part}", "to", 0, part)

        checked = range(rows - 1, rows) if careful else range(rows)
        yield from self._function(["below", "to"], rows, checked, range(rows), body, careful, outputs=1)

    def prefix(self, rows: int, careful: bool) -> Iterator[str]:
        """Windows of many rows: the last rows of a block, so many of which are listed first, and the next ones'."""

        def body(part: int) -> Iterator[str]:
            for row in range(2 * rows):
                yield from self._cells(row, part, careful)
            yield from self._load_row("below", part)
            upper = [f"%below.v{part}"]
            for row in range(rows - 1, -1, -1):
                yield self.merged(f"%upper{part}.{row}", self._value(row, part), upper[-1])
                upper.append(f"%upper{part}.{row}")
            yield from self._load_row("before", part)
            total = f"%before.v{part}"
            for row in range(rows):
                yield self.merged(f"%total{part}.{row}", total, self._value(rows + row, part))
                total = f"%total{part}.{row}"
                yield self.merged(f"%whole{part}.{row}", upper[rows - row], total)
                yield from self._give(f"%whole{part}.{row}", row, part)
            yield from self._store_row(total, "after", 0, part)

        new = range(rows, 2 * rows)
        names = ["below", "before", "after", "to"]
        checked = range(2 * rows - 1, 2 * rows) if careful else range(2 * rows)
        yield from self._function(names, 2 * rows, checked, new, body, careful, outputs=rows)

    def _function(
        self, rows_of_totals: Sequence[str], rows: int, checked: Sequence[int], asked: Sequence[int],
        body: Callable[[int], Iterator[str]], careful: bool, outputs: int | None = None,
    ) -> Iterator[str]:  # fmt: skip
        """A loop over rows of cells, whose addresses are in a list; it gives whether a checked one has a NaN.

        In a sum a NaN shows, and so may opposite infinities: no harm, since care is taken then. Extremes hide it.
        With care one row is enough to tell whether to go on so: a loop that is blind finds out if it was not.
        """
        arguments = ["rows", *rows_of_totals, "room", "ahead", *ENDS]
        results = len(asked) if outputs is None else outputs
        shows = not careful and self.rule in ("sum", "squares")
        vector = self.total if shows else self.cell
        parts = range(self.parts)

        def whole() -> Iterator[str]:
            if self._at != "%i":
                yield f" %bytes = mul i64 %i, {self.cell.bytes}\n %at = sdiv exact i64 %bytes, {self.total.bytes}"
            for part in parts:
                yield from body(part)
            names = [f"%given{row}.{part}" for row in range(results) for part in parts]
            yield from self._lacking(
                vector, names if shows else [f"%cell{row}.{part}" for row in checked for part in parts]
            )
            yield from self._ask_rows(asked)

        yield from self._declaration()
        yield f"define i64 @loop({', '.join(f'i64 %{argument}' for argument in arguments)}) {{\nentry:"
        yield " %rows.p = inttoptr i64 %rows to ptr"
        for row in range(rows):
            yield f" %row{row}.a = getelementptr i64, ptr %rows.p, i64 {row}"
            yield f" %row{row}.n = load i64, ptr %row{row}.a\n %row{row}.p = inttoptr i64 %row{row}.n to ptr"
        for name in rows_of_totals:
            for row in range(results if name == "to" else 1):
                yield f" %{name}.{row}.s = mul i64 %room, {row}\n %{name}.{row}.n = add i64 %{name}, %{name}.{row}.s"
                yield f" %{name}.{row}.p = inttoptr i64 %{name}.{row}.n to ptr"
        yield from self._steps(whole, f"\n %seen = phi {vector.bits} [zeroinitializer, %entry], [%found, %body]")
        yield from self._answer(vector)

    def _lacking(self, vector: Vector, values: Sequence[str]) -> Iterator[str]:
        """``%found``: ``%seen`` and where one of these is NaN. A comparison tells whether either of two is."""
        flags = "%seen"
        for number in range(0, len(values) if self.checked else 0, 2):
            pair = f"{values[number]}, {values[min(number + 1, len(values) - 1)]}"
            yield f" %gone{number} = fcmp uno {vector.text} {pair}"
            yield f" %gone{number}.b = sext <{vector.lanes} x i1> %gone{number} to {vector.bits}"
            yield f" %flags{number} = or {vector.bits} {flags}, %gone{number}.b"
            flags = f"%flags{number}"
        yield f" %found = or {vector.bits} {flags}, zeroinitializer"

    def _ask_rows(self, rows: Sequence[int]) -> Iterator[str]:
        """Ask for the cells that come next: rows are too short, and too many, for the hardware to see it."""
        for row in rows:
            yield f" %next{row}.n = add i64 %row{row}.n, %ahead\n %next{row}.p = inttoptr i64 %next{row}.n to ptr"
            yield f" %asked{row} = getelementptr i8, ptr %next{row}.p, i64 {self._at}"
            yield f" call void @llvm.prefetch.p0(ptr %asked{row}, i32 0, i32 3, i32 1)"

    @property
    def _at(self) -> str:
        """Where cells begin that make the line of totals at ``%i``."""
        return "%i" if self.cell.bytes == self.total.bytes else "%at"

    def _value(self, row: int, part: int) -> str:
        return f"%value{row}.{part}"

    def _cells(self, row: int, part: int, careful: bool) -> Iterator[str]:
        """``%value<row>.<part>``: what a row's cells bring."""
        yield f" %from.{row}.{part} = getelementptr i8, ptr %row{row}.p, i64 {self._at}"
        yield from self._contribution(f"{row}.{part}", f"%from.{row}.{part}", part, careful)

    def _load_row(self, name: str, part: int, row: int | None = None) -> Iterator[str]:
        yield from self._address(name, row, part)
        tag = name if row is None else f"{name}.{row}"
        yield f" %{tag}.v{part} = load {self.total.text}, ptr %{tag}.a{part}, align {self.total.bytes}"

    def _store_row(self, value: str, name: str, row: int, part: int) -> Iterator[str]:
        yield from self._address(name, row, part)
        yield f" store {self.total.text} {value}, ptr %{name}.{row}.a{part}, align {self.total.bytes}"

    def _give(self, value: str, row: int, part: int) -> Iterator[str]:
        """Store a row of results. Minus zero becomes zero, or an extreme's sign would depend on the order of merges."""
        vector, name = self.total.text, f"%given{row}.{part}"
        if self.total.floating and self.rule in ("min", "max"):
            yield f" {name} = fadd {vector} {value}, zeroinitializer"
        else:
            yield f" {name} = bitcast {vector} {value} to {vector}"
        yield from self._store_row(name, "to", row, part)

    def _address(self, name: str, row: int | None, part: int) -> Iterator[str]:
        tag = name if row is None else f"{name}.{row}"
        yield f" %{tag}.i{part} = getelementptr i8, ptr %{name}.{row or 0}.p, i64 %i"
        yield f" %{tag}.a{part} = getelementptr i8, ptr %{tag}.i{part}, i64 {part * self.register}"

    def _tree_of(self, values: Sequence[str], tag: str) -> Iterator[str]:
        """Values merged pairwise; ``top`` is the merge of all."""
        level = list(values)
        while len(level) > 1:
            pairs = list(zip(level[::2], level[1::2], strict=False))
            merged = [f"{tag}.{len(level)}.{k}" for k in range(len(pairs))]
            for result, (one, other) in zip(merged, pairs, strict=True):
                yield self.merged(result, one, other)
            level = merged + level[2 * len(pairs) :]
        self.top = level[0]
