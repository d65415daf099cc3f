"""What plans hold besides other plans: windows, blocks, ranges and aggregates, their names not looked up yet."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from windrow.aggregates.definition import Definition
from windrow.aggregates.registry import canonical, definition, is_built_in
from windrow.errors import DataError, SchemaError
from windrow.expressions.nodes import Call, Column, Comparison, Literal, Node
from windrow.expressions.written import Value
from windrow.model.halo import whole_number
from windrow.model.schema import Schema, check_name
from windrow.model.window import ANY, AnyExtent, Window, check_boundary
from windrow.model.window import regrid as regrid_window

if TYPE_CHECKING:
    from windrow.aggregates.aggregate import Aggregate


@dataclass(frozen=True)
class WindowAxis:
    """A window along one dimension; without a name, along the one that stands at the same place in the array."""

    name: str | None
    extent: AnyExtent
    step: int = 1

    def __post_init__(self) -> None:
        _check_axis(self.name, self.step, "a step")


@dataclass(frozen=True)
class WindowSpec:
    """A window before it meets an array: all dimensions by name, or all by their place."""

    axes: tuple[WindowAxis, ...]
    boundary: str = "clip"
    min_count: int = 0

    def __post_init__(self) -> None:
        _check_names([axis.name for axis in self.axes], "a window")
        check_edges(self.boundary, self.min_count)

    @classmethod
    def of(cls, window: Window, schema: Schema | None = None) -> WindowSpec:
        """The specification that binds to this window, on the array that it is a window of.

        With the array's schema, what binding adds for its numbering dimension is left out.
        """
        axes = [WindowAxis(*axis) for axis in zip(window.dimensions, window.extents, window.step, strict=True)]
        if schema is not None:
            added = [schema.dimensions[axis].name for axis in schema.numbering]
            kept = [axis for axis in axes if not (axis.name in added and axis.extent == ANY and axis.step == 1)]
            axes = kept or axes
        return cls(tuple(axes), window.boundary, window.min_count)

    def bind(self, schema: Schema) -> Window:
        """The window on an array of that schema."""
        names = _placed([axis.name for axis in self.axes], schema, "window")
        extents = {name: axis.extent for name, axis in zip(names, self.axes, strict=True)}
        step = {name: axis.step for name, axis in zip(names, self.axes, strict=True)}
        return Window.of(schema, extents, step=step, boundary=self.boundary, min_count=self.min_count)


@dataclass(frozen=True)
class Block:
    """How many cells along one dimension make a block."""

    name: str | None
    size: int

    def __post_init__(self) -> None:
        _check_axis(self.name, self.size, "the size of a block")


@dataclass(frozen=True)
class RegridSpec:
    """Blocks side by side, before they meet an array."""

    blocks: tuple[Block, ...]
    boundary: str = "clip"
    min_count: int = 0

    def __post_init__(self) -> None:
        _check_names([block.name for block in self.blocks], "a regrid")
        check_edges(self.boundary, self.min_count)

    def bind(self, schema: Schema) -> Window:
        """The corner window, with steps as long as itself, on an array of that schema."""
        names = _placed([block.name for block in self.blocks], schema, "regrid")
        sizes = {name: block.size for name, block in zip(names, self.blocks, strict=True)}
        return regrid_window(schema, sizes, boundary=self.boundary, min_count=self.min_count)


@dataclass(frozen=True)
class Range:
    """The cells from ``low`` to ``high``, both inclusive: whole numbers are indices, all else labels, None no limit."""

    name: str | None
    low: Value
    high: Value

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name(self.name, "a dimension")
            if self.low is None and self.high is None:
                raise SchemaError(f"the range of {self.name} has no end", hint="As in i between 1 and 10")
        for end in ("low", "high"):
            value = Literal(getattr(self, end)).value
            if isinstance(value, bool):
                raise SchemaError("a range ends at an index or a label", got=str(value).lower())
            object.__setattr__(self, end, value)


@dataclass(frozen=True)
class Output:
    """A computed attribute and its name."""

    name: str
    expression: Node

    def __post_init__(self) -> None:
        check_name(self.name, "a column")


@dataclass(frozen=True)
class Measure:
    """An aggregate of an expression or of two, and the name of its result; without an argument, the count of cells."""

    name: str
    function: str
    argument: Node | None = None
    parameter: float | None = None
    second: Node | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "a column")
        check_name(self.function, "an aggregate")
        object.__setattr__(self, "function", canonical(self.function))
        if self.parameter is not None:
            object.__setattr__(self, "parameter", float(self.parameter))
            if not math.isfinite(self.parameter):
                raise DataError(f"the parameter of {self.function} must be finite", got=self.parameter)
        if self.argument is None and not self._known(lambda found: found.bare, False):
            raise DataError(f"{self.function} needs a value to aggregate", hint=f"As in {self.usage}")
        if self._known(lambda found: (found.arguments == 2) != (self.second is not None), self.second is not None):
            wanted = "one value" if self.second is not None else "two values"
            raise DataError(f"{self.function} takes {wanted}", hint=f"As in {self.usage}")
        if self._known(lambda found: (found.parameter is None) != (self.parameter is None), False):
            what = "takes no parameter" if self.parameter is not None else "needs a parameter"
            got = None if self.parameter is None else f"{self.parameter:g}"
            raise DataError(f"{self.function} {what}", got=got, hint=f"As in {self.usage}")

    @classmethod
    def of_call(cls, name: str, call: Call) -> Measure:
        """What a call asks for: ``avg(t)``, ``percentile(t, 70)``, ``covar(t, u)``, ``avg(t, weight = w)``."""
        if len(call.arguments) > 2:
            raise DataError(f"{call.function} takes a value and at most one more or one parameter", got=str(call))
        argument, other = (*call.arguments, None, None)[:2]
        known = definition(call.function) if is_built_in(call.function) else None
        if known is not None and known.arguments == 2:
            return cls(name, call.function, argument, second=other)
        if known is not None and known.weighted is not None and _is_weight(other):
            return cls(name, known.weighted, argument, second=other.right)
        if other is not None and not (isinstance(other, Literal) and type(other.value) in (int, float)):
            if known is None or known.parameter is None:
                usage = f"{call.function}(x)" if known is None else known.usage()
                raise DataError(f"{call.function} takes one value", got=str(other), hint=f"As in {usage}")
            hint = f"As in {call.function}(a, {known.example_parameter})"
            raise DataError(f"the parameter of {call.function} is a number", got=str(other), hint=hint)
        value: Any = other.value if isinstance(other, Literal) else None
        return cls(name, call.function, argument, value)

    def _known(self, ask: Callable[[Definition], bool], otherwise: bool) -> bool:
        """What is to be known of a built-in aggregate; users' own take one value."""
        return ask(definition(self.function)) if is_built_in(self.function) else otherwise

    @property
    def arguments(self) -> tuple[Node, ...]:
        return tuple(node for node in (self.argument, self.second) if node is not None)

    @property
    def usage(self) -> str:
        """How the aggregate is called."""
        return definition(self.function).usage() if is_built_in(self.function) else f"{self.function}(x)"

    @property
    def attribute(self) -> str | None:
        """The attribute that is aggregated as it is, if it is that simple."""
        plain = isinstance(self.argument, Column) and self.argument.qualifier is None
        return self.argument.name if plain and isinstance(self.argument, Column) else None

    def aggregate(self, attribute: str | None = None, second: str | None = None) -> Aggregate:
        """The aggregate of the plain attribute, or of the attributes to which the arguments have been computed."""
        from windrow.aggregates.aggregate import Aggregate
        from windrow.aggregates.user import user_aggregate

        found = self.attribute if attribute is None else attribute
        if (found is None and self.argument is not None) or (second is None and self.second is not None):
            raise DataError(f"the arguments of {self.function} have to be computed first", got=self.argument)
        if is_built_in(self.function):
            return Aggregate(self.function, found, self.parameter, second=second)
        return user_aggregate(self.function)(found or "")


def _is_weight(node: Node | None) -> TypeGuard[Comparison]:
    """Whether it is written as ``weight = w``."""
    return isinstance(node, Comparison) and node.operator == "=" and node.left == Column("weight")


def check_step(step: int | tuple[Block, ...]) -> None:
    """Refuses a step that goes nowhere, or of which some parts have names and others none."""
    if isinstance(step, tuple):
        _check_names([block.name for block in step], "a step")
    elif whole_number(step, "a step") < 1:
        raise SchemaError("a step must be at least 1", got=step)


def bind_step(step: int | tuple[Block, ...], schema: Schema) -> tuple[int, ...]:
    """The step along each dimension of an array of that schema; one number for all is not about numbered cells."""
    if not isinstance(step, tuple):
        return tuple(1 if dimension.numbering else step for dimension in schema.dimensions)
    names = _placed([block.name for block in step], schema, "step")
    sizes = {schema.axis(name): block.size for name, block in zip(names, step, strict=True)}
    return tuple(sizes.get(axis, 1) for axis in range(schema.ndim))


def check_different(names: Iterable[str], what: str) -> None:
    """Refuses a name that is used twice."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise SchemaError(f"{what} has two columns of one name", got=repr(twice[0]), hint="Name them with as")


def _check_axis(name: str | None, count: int, what: str) -> None:
    if name is not None:
        check_name(name, "a dimension")
    if whole_number(count, what) < 1:
        raise SchemaError(f"{what} must be at least 1", got=count)


def _check_names(names: list[str | None], what: str) -> None:
    if not names:
        raise SchemaError(f"{what} needs at least one dimension", hint="As in window (2, 2) or regrid (i 2)")
    if None in names and any(name is not None for name in names):
        raise SchemaError(f"{what} names some dimensions and not others", hint="Name all of them, or none")
    twice = [name for name, count in Counter(names).items() if name is not None and count > 1]
    if twice:
        raise SchemaError(f"{what} names a dimension twice", got=repr(twice[0]))


def check_edges(boundary: str, min_count: int) -> None:
    """Refuse what windows cannot do at borders, and counts below 0."""
    check_boundary(boundary)
    if whole_number(min_count, "min count") < 0:
        raise SchemaError("min count must not be negative", got=min_count)


def _placed(names: list[str | None], schema: Schema, what: str) -> list[str]:
    """The dimensions meant: those named, or all of the array's in order, with or without the numbering one."""
    named = [name for name in names if name is not None]
    if named:
        return named
    numbered = len(names) == schema.ndim - len(schema.numbering)
    if numbered:  # it says nothing of where cells are, so that it may be left out
        return [dimension.name for dimension in schema.dimensions if not dimension.numbering]
    if len(names) != schema.ndim:
        known = ", ".join(schema.dimension_names)
        hint = f"The dimensions are {known}; name some of them, as in {what} ({schema.dimension_names[0]} 2)"
        raise SchemaError(f"expected {schema.ndim} sizes, one for each dimension", got=len(names), hint=hint)
    return list(schema.dimension_names)
