"""Users' operators, from an array to an array: a pure function of a block and of the cells within a stated halo.

``wr.operator`` registers one, and so do packages through the entry-point group ``windrow.operators``. A query names an
operator like one of the functional forms: ``select a from smooth(A, 3)``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from windrow.aggregates.plugins import OPERATORS, load_plugins, refuse_broken
from windrow.errors import DataError, Error, SchemaError, UnknownNameError, nearest
from windrow.expressions.nodes import Literal
from windrow.model.halo import whole_number
from windrow.model.schema import Attribute, Schema, check_name
from windrow.plan.bound import Bound
from windrow.plan.nodes import Plan
from windrow.plan.steps import ended

Parameter = int | float | str | bool
FORMS = ("aggregate", "apply", "between", "filter", "project", "regrid", "scan", "window")


@dataclass(frozen=True, eq=False)
class Operator:
    """A registered operator. ``halo`` and ``result`` are constants, or functions of its parameters."""

    name: str
    function: Callable[..., Any]
    halo: Any = 0
    result: Any = None
    summary: str = ""

    def __call__(self, source: Any, *parameters: Parameter) -> Any:
        """The operator on an array or a query: ``smooth(A, 3)``."""
        if not hasattr(source, "operate"):
            raise DataError(f"{self.name} takes an array or a query", got=type(source).__name__)
        return source.operate(self.name, *parameters)

    @property
    def usage(self) -> str:
        """How it is written: smooth(A, width)."""
        return f"{self.name}({', '.join(['A', *_parameters(self.function)])})"

    def halo_of(self, schema: Schema, parameters: Sequence[Parameter]) -> tuple[int, ...]:
        """The cells around a block that it needs, for each dimension."""
        found = self._asked(self.halo, parameters, "halo")
        sides = tuple(found) if isinstance(found, Sequence) and not isinstance(found, str) else (found,) * schema.ndim
        if len(sides) != schema.ndim:
            raise SchemaError(f"operator {self.name} needs a halo for each of {schema.ndim} dimensions", got=sides)
        return tuple(_check_side(side, self.name) for side in sides)

    def attributes_of(self, schema: Schema, parameters: Sequence[Parameter]) -> tuple[Attribute, ...]:
        """The attributes of its result; by default those of its input."""
        from windrow.model.notation import parse_schema

        found = self.result
        if callable(found):
            found = self._asked(lambda *given: self.result(schema, *given), parameters, "result")
        if found is None:
            return schema.attributes
        try:
            return parse_schema(f"{found} [i=0:0]")[1].attributes
        except Error as error:
            raise SchemaError(f"the result of operator {self.name} is no list of attributes", got=found) from error

    def _asked(self, given: Any, parameters: Sequence[Parameter], what: str) -> Any:
        if not callable(given):
            return given
        try:
            return given(*parameters)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            raise DataError(f"the {what} of operator {self.name} cannot be worked out", got=told) from error

    def check(self, parameters: Sequence[Parameter]) -> None:
        """Refuse parameters that the function does not take."""
        try:
            inspect.signature(self.function).bind(None, *parameters)
        except TypeError as error:
            told = ", ".join(map(repr, parameters)) or "none"
            raise DataError(f"operator {self.name} takes other parameters", got=told, hint=self.usage) from error

    def __repr__(self) -> str:
        return f"<windrow operator {self.usage}>"


def _check_side(side: object, name: str) -> int:
    """A number of cells."""
    try:
        found = whole_number(side, f"the halo of operator {name}")
    except SchemaError as error:
        hint = "A number of cells, one for each dimension, or a function of the parameters that gives such"
        raise SchemaError(error.what, got=error.got, hint=hint) from None
    if found < 0:
        raise SchemaError(f"the halo of operator {name} must not be negative", got=side)
    return found


def _parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)[1:]


REGISTERED: dict[str, Operator] = {}


def operator(name: str, *, halo: Any = 0, result: Any = None) -> Callable[[Callable[..., Any]], Operator]:
    """Register a function of a block, and of parameters, as an operator.

    The function gets a dictionary of arrays, one for each attribute, with the ``halo`` around the block as far as the
    array has cells there, and gives one of the same shapes, or the array of a single attribute. ``halo`` is a number of
    cells for all dimensions, a tuple of such, or a function of the parameters. ``result`` are the attributes that it
    gives, as in ``"<m: float64>"``, or a function of the schema and the parameters; by default those that it gets.
    """
    check_name(name, "an operator")
    if name.lower() in FORMS:
        raise DataError("a form of the language has that name", got=repr(name))

    if not callable(halo):
        for side in halo if isinstance(halo, Sequence) and not isinstance(halo, str) else (halo,):
            _check_side(side, name)

    def register(function: Callable[..., Any]) -> Operator:
        if not callable(function) or not inspect.signature(function).parameters:
            raise DataError(f"operator {name} must be a function of a block", got=repr(function))
        summary = (inspect.getdoc(function) or "").split("\n")[0]
        made = Operator(name, function, halo, result, summary)
        REGISTERED[name.lower()] = made
        return made

    return register


def installed_operators() -> dict[str, Operator]:
    """All that are known, those of installed packages among them."""
    for loaded in load_plugins(OPERATORS, Operator).found:
        REGISTERED.setdefault(loaded.name.lower(), loaded)
    return REGISTERED


def find_operator(name: str) -> Operator:
    known = installed_operators()
    if name.lower() not in known:
        refuse_broken(OPERATORS, Operator, name)
        names = [*(found.name for found in known.values()), *FORMS]
        raise UnknownNameError("no such operator", got=repr(name), hint=nearest(name, names))
    return known[name.lower()]


@dataclass(frozen=True)
class Operated(Plan):
    """An operator on the cells of a source."""

    source: Plan
    operator: str
    parameters: tuple[Parameter, ...] = ()

    def __str__(self) -> str:
        from windrow.plan.printing import to_text

        return to_text(self)


@dataclass(frozen=True, kw_only=True)
class BoundOperated(Bound):
    """An operator that was looked up, with its parameters and the halo that it asks for."""

    source: Bound
    operator: Operator = field(compare=False)
    parameters: tuple[Parameter, ...]
    halo: tuple[int, ...]

    @property
    def text(self) -> str:
        """How it is told: smooth(…, 3), with a halo of 1 cell."""
        given = ", ".join(["…", *(str(Literal(value)) for value in self.parameters)])
        reach = "no halo" if not any(self.halo) else f"a halo of {', '.join(map(str, self.halo))} cells"
        return f"{self.operator.name}({given}), with {reach}"


def bind_operated(plan: Operated, source: Bound) -> Bound:
    """The operator on a bound source; whatever is wrong with it is refused here, but for what its function does."""
    found = find_operator(plan.operator)
    found.check(plan.parameters)
    if source.schema.sparse or source.scalar:
        raise SchemaError(f"operator {found.name} takes dense arrays", hint="Put the cells into one first")
    halo = found.halo_of(source.schema, plan.parameters)
    for name, side, extent in zip(source.schema.dimension_names, halo, source.box.shape, strict=True):
        if extent and side >= extent:
            what = f"operator {found.name} asks for a halo that is larger than the array"
            raise SchemaError(what, got=f"{side} cells along {name}, which has {extent}")
    attributes = found.attributes_of(source.schema, plan.parameters)
    schema = replace(ended(source.schema, source.box), attributes=attributes)
    return BoundOperated(
        schema=schema,
        box=source.box,
        labels=source.labels,
        gridding=None,
        source=source,
        operator=found,
        parameters=plan.parameters,
        halo=halo,
    )
