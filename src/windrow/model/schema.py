"""What an array is: ordered dimensions, named and typed attributes, dense or sparse."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from windrow.errors import SchemaError, UnknownNameError, nearest
from windrow.model.box import Box
from windrow.model.grid import (
    DENSE_CHUNK_BYTES,
    MOST_SPARSE_CHUNK_CELLS,
    ChunkGrid,
    dense_chunks,
    sparse_chunks,
)
from windrow.model.types import DataType

VALID_SUFFIX = "__valid"
"""The dense companion of a nullable attribute ``x`` is the boolean array ``x__valid``."""

CHUNK_COLUMN = "_chunk"
"""The sparse store's column that holds a cell's chunk ordinal."""

NUMBERING = "n"
"""What the numbering dimension is called where a gridding makes it, or where the first insert looks for one."""

NUMBERING_MARK = "numbering"
"""What stands after the numbering dimension in a schema's text."""

WRAP_MARK = "wrap"
"""What stands after a dimension that goes round."""

MOST_CELLS = 2**62
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

LONGEST_NAME = 200
"""File systems and catalogs hold names of 255 bytes, of which windrow needs some itself."""


def check_name(name: str, what: str) -> str:
    """``name`` if it can name an array, dimension or attribute."""
    if not isinstance(name, str) or not _NAME.match(name):
        raise SchemaError(f"not a valid name for {what}", got=repr(name), hint="Use letters, digits and _, as in a_1")
    if len(name) > LONGEST_NAME:
        raise SchemaError(f"the name of {what} has more than {LONGEST_NAME} letters", got=len(name), hint="Shorten it")
    if name == CHUNK_COLUMN or name.endswith(VALID_SUFFIX):
        raise SchemaError(f"the name of {what} is reserved", got=repr(name), hint="windrow's stores use it themselves")
    return name


@dataclass(frozen=True, slots=True)
class Dimension:
    """An inclusive range of integers, cut into chunks; ``hi`` is None for a growing dimension.

    Along a ``numbering`` dimension cells of a sparse array are told apart that share all other coordinates. It says
    nothing of where they are, so that neighbourhoods take any number unless they name it. The labels of a dimension
    that is declared to ``wrap`` begin anew after its last cell.
    """

    name: str
    lo: int
    hi: int | None
    chunk: int | None = None
    numbering: bool = False
    wrap: bool = False

    def __post_init__(self) -> None:
        check_name(self.name, "a dimension")
        if self.wrap and self.hi is None:
            raise SchemaError(
                f"dimension {self.name} grows, so it cannot wrap", got=f"{self.lo}:*", hint="State its end"
            )
        if self.hi is not None and self.hi < self.lo:
            raise SchemaError(f"dimension {self.name} ends before it starts", got=f"{self.lo}:{self.hi}")
        if self.chunk is not None and self.chunk < 1:
            raise SchemaError(f"dimension {self.name} needs a chunk of at least one cell", got=self.chunk)
        if max(abs(self.lo), abs(self.hi or 0)) >= MOST_CELLS:
            raise SchemaError(f"dimension {self.name} reaches beyond 2^62", got=f"{self.lo}:{self.hi}")

    @property
    def growing(self) -> bool:
        return self.hi is None

    @property
    def extent(self) -> int | None:
        return None if self.hi is None else self.hi - self.lo + 1

    def __str__(self) -> str:
        text = f"{self.name}={self.lo}:{'*' if self.hi is None else self.hi}"
        text = text if self.chunk is None else f"{text}:{self.chunk}"
        text = f"{text} {NUMBERING_MARK}" if self.numbering else text
        return f"{text} {WRAP_MARK}" if self.wrap else text


@dataclass(frozen=True, slots=True)
class Attribute:
    """A named value of every cell."""

    name: str
    type: DataType
    nullable: bool = False

    def __post_init__(self) -> None:
        check_name(self.name, "an attribute")

    @property
    def can_be_missing(self) -> bool:
        return self.nullable or self.type.is_float

    @property
    def has_companion(self) -> bool:
        """Whether a dense array keeps ``<name>__valid`` beside it; floats carry NaN instead."""
        return self.nullable and not self.type.is_float

    @property
    def companion(self) -> str:
        return self.name + VALID_SUFFIX

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + (" null" if self.nullable else "")


@dataclass(frozen=True)
class Schema:
    """Dimensions and attributes of an array, and whether it is sparse."""

    dimensions: tuple[Dimension, ...]
    attributes: tuple[Attribute, ...]
    sparse: bool = False

    def __post_init__(self) -> None:
        if not self.dimensions:
            raise SchemaError("an array needs at least one dimension", hint="As in <a: float64> [i=1:10]")
        if not self.attributes and not self.sparse:
            raise SchemaError("a dense array needs at least one attribute", hint="As in <a: float64> [i=1:10]")
        if self.numbering and not self.sparse:
            got = self.dimensions[self.numbering[0]]
            raise SchemaError("only sparse arrays have a numbering dimension", got=got, hint="Create a sparse array")
        uses = Counter([*self.dimension_names, *self.attribute_names])
        twice = sorted(name for name, count in uses.items() if count > 1)
        if twice:
            raise SchemaError("a name is used twice in one schema", got=", ".join(twice))

    @cached_property
    def dimension_names(self) -> tuple[str, ...]:
        return tuple(dimension.name for dimension in self.dimensions)

    @cached_property
    def attribute_names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def ndim(self) -> int:
        return len(self.dimensions)

    @property
    def lo(self) -> tuple[int, ...]:
        return tuple(dimension.lo for dimension in self.dimensions)

    @property
    def growing(self) -> tuple[int, ...]:
        """The positions of the growing dimensions."""
        return tuple(d for d, dimension in enumerate(self.dimensions) if dimension.growing)

    @property
    def numbering(self) -> tuple[int, ...]:
        """The positions of the numbering dimensions: none or one, but one of each side for pairs of cells."""
        return tuple(d for d, dimension in enumerate(self.dimensions) if dimension.numbering)

    @property
    def numbering_name(self) -> str | None:
        """The dimension that an insert may number twins along: the one marked as such, else the one called n."""
        marked = [self.dimensions[axis].name for axis in self.numbering]
        if not marked and NUMBERING in self.dimension_names:
            return NUMBERING
        return marked[0] if len(marked) == 1 else None

    def with_numbering(self, name: str) -> Schema:
        """The schema with a dimension marked as the numbering one."""
        axis = self.axis(name)
        marked = (replace(d, numbering=d.numbering or k == axis) for k, d in enumerate(self.dimensions))
        return replace(self, dimensions=tuple(marked))

    @property
    def cell_bytes(self) -> int:
        """Bytes of one cell in memory, companions included, coordinates not."""
        return self.bytes_of(self.attribute_names)

    def bytes_of(self, attributes: Iterable[str]) -> int:
        """The same of some of the attributes."""
        chosen = map(self.attribute, attributes)
        return sum(a.type.itemsize + (1 if a.has_companion else 0) for a in chosen)

    @cached_property
    def grid(self) -> ChunkGrid:
        chunks = [dimension.chunk for dimension in self.dimensions]
        if None in chunks:
            raise SchemaError("the schema states no chunk sizes", got=str(self), hint="Call with_chunks() first")
        return ChunkGrid(self.lo, tuple(d.hi for d in self.dimensions), tuple(c for c in chunks if c is not None))

    def dimension(self, name: str) -> Dimension:
        return self.dimensions[self.axis(name)]

    def axis(self, name: str) -> int:
        """The position of a dimension."""
        if name not in self.dimension_names:
            raise UnknownNameError("no such dimension", got=repr(name), hint=nearest(name, self.dimension_names))
        return self.dimension_names.index(name)

    def attribute(self, name: str) -> Attribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise UnknownNameError("no such attribute", got=repr(name), hint=nearest(name, self.attribute_names))

    def box(self, hi: Sequence[int] | None = None) -> Box:
        """The array's cells; ``hi`` gives the present end of growing dimensions (empty without it)."""
        present = [d.lo - 1 for d in self.dimensions] if hi is None else list(hi)
        bounds = zip(self.dimensions, present, strict=True)
        return Box(self.lo, tuple(end if d.hi is None else d.hi for d, end in bounds))

    def with_chunks(self, chunks: Mapping[str, int] | None = None, chunk_bytes: int = DENSE_CHUNK_BYTES) -> Schema:
        """The schema with a chunk size for every dimension: those given, those stated, defaults for the rest."""
        given = dict(chunks or {})
        for name, size in given.items():
            self.axis(name)
            if not isinstance(size, int) or isinstance(size, bool):
                raise SchemaError(f"the chunk size of dimension {name} is not an integer", got=repr(size))
        stated = {axis: given.get(d.name, d.chunk) for axis, d in enumerate(self.dimensions)}
        fixed = {axis: size for axis, size in stated.items() if size is not None}
        extents = [dimension.extent for dimension in self.dimensions]
        if self.sparse:
            sizes = sparse_chunks(extents, fixed)
        else:
            sizes = dense_chunks(extents, max(a.type.itemsize for a in self.attributes), fixed, chunk_bytes)
        dimensions = tuple(replace(d, chunk=size) for d, size in zip(self.dimensions, sizes, strict=True))
        resolved = replace(self, dimensions=dimensions)
        _ = resolved.grid.radix  # refuses a grid too large to number now, not at the first write
        if self.sparse and resolved.grid.chunk_cells > MOST_SPARSE_CHUNK_CELLS:
            raise SchemaError(
                "a sparse chunk covers more than 2^40 positions", got=resolved.grid.chunk, hint="Use smaller chunks"
            )
        return resolved

    def select(self, attributes: Iterable[str]) -> Schema:
        """The schema with some of its attributes."""
        return replace(self, attributes=tuple(self.attribute(name) for name in attributes))

    def __str__(self) -> str:
        attributes = ", ".join(map(str, self.attributes))
        return f"<{attributes}> [{', '.join(map(str, self.dimensions))}]"
