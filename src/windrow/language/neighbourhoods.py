"""Windows, blocks and shapes as the grammar states them, to what plans hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any

from lark import Token

from windrow.errors import SchemaError, nearest
from windrow.expressions.nodes import Literal
from windrow.language.expression import number, unquoted
from windrow.language.mistakes import MisplacedError
from windrow.language.queries import GROUPING, Clause
from windrow.model.shape import L1, L2, Hamming, Linf, Lp, Shape, any_offset, offset_list, offsets, sky
from windrow.model.shape_terms import StoredOffsets
from windrow.model.window import AnyExtent, Extent, centred, corner, trailing, within
from windrow.plan.specs import Block, RegridSpec, WindowAxis, WindowSpec, check_step

_NORMS: dict[str, tuple[Callable[..., Shape], str]] = {
    "l1": (L1, "L1(1)"),
    "l2": (L2, "L2(2.5)"),
    "linf": (Linf, "Linf(2)"),
    "lp": (Lp, "Lp(3, 2.5)"),
    "hamming": (Hamming, "Hamming(1)"),
    "sky": (sky, "Sky('10 arcsec')"),
}
BEFORE_VERSION = "@ \t\r\n"


@dataclass(frozen=True)
class Setting:
    """What follows a neighbourhood: step, boundary, min count, method, strategy or sweep."""

    word: str
    value: Any
    place: int


class NeighbourhoodBuilder:
    """One method per alternative of the grammar."""

    def whole(self, children: list[Any]) -> int:
        sign, token = children
        value = Literal(-number(token) if sign == "-" else number(token)).value
        assert isinstance(value, int)
        return value

    def number(self, children: list[Any]) -> int | float:
        sign, token = children
        value = Literal(-number(token) if sign == "-" else number(token)).value
        assert isinstance(value, (int, float))
        return value

    def width(self, children: list[Any]) -> int | str:
        return unquoted(children[0]) if children[0].type == "TEXT" else whole(children[0])

    def corner(self, children: list[Any]) -> AnyExtent:
        width: str = children[0]
        return corner(width)

    def centred(self, children: list[Any]) -> AnyExtent:
        width: str = children[0]
        return centred(width)

    def trailing(self, children: list[Any]) -> AnyExtent:
        width: str = children[0]
        return trailing(width)

    def within(self, children: list[Any]) -> AnyExtent:
        return within(unquoted(children[0]))

    def offsets_between(self, children: list[Any]) -> AnyExtent:
        return Extent(*children)

    def axis(self, children: list[Any]) -> WindowAxis:
        name, extent, wraps = children
        return WindowAxis(name, extent.wrap() if wraps else extent)

    def block(self, children: list[Any]) -> Block:
        return Block(children[0], whole(children[1]))

    def offset(self, children: list[Any]) -> tuple[int, ...]:
        return tuple(children)

    def names(self, children: list[Any]) -> tuple[str, ...]:
        return tuple(children)

    def quantity(self, children: list[Any]) -> str:
        return unquoted(children[0])

    def norm(self, children: list[Any]) -> Shape:
        name, *measures, on = children
        make, usage = _NORMS.get(name.lower(), (None, ""))
        if make is None:
            known = [usage.split("(")[0] for _, usage in _NORMS.values()]
            raise SchemaError("no such shape", got=repr(str(name)), hint=nearest(str(name), known))
        if len(measures) != 1 + usage.count(","):
            wanted = "one number" if "," not in usage else "two numbers"
            raise SchemaError(f"{name} takes {wanted}", got=len(measures), hint=f"As in {usage}")
        return make(*measures, on)

    def stored_shape(self, children: list[Any]) -> Shape:
        name, version, on = children
        number = "" if version is None else f"@{whole(Token('INTEGER', version.lstrip(BEFORE_VERSION)))}"
        return Shape((StoredOffsets(name + number, on),))

    def reflected_shape(self, children: list[Any]) -> Shape:
        return self.stored_shape(children).reflect()

    def offset_list(self, children: list[Any]) -> Shape:
        *rows, on = children
        return offset_list([row for row in rows if row is not None], on)

    def offset_range(self, children: list[Any]) -> Shape:
        name, start, stop, wraps = children
        shape = offsets(**{name: (start, stop)})
        return shape.wrap(name) if wraps else shape

    def any_offset(self, children: list[Any]) -> Shape:
        name, wraps = children
        shape = offsets(**{name: any_offset})
        return shape.wrap(name) if wraps else shape

    def wrapped(self, children: list[Any]) -> Shape:
        return Shape(()).wrap(*children[0])

    def excluding_self(self, _: list[Any]) -> Shape:
        return Shape(()).excluding_self()

    def shape(self, children: list[Any]) -> Shape:
        shape: Shape = reduce(and_, children)
        if not shape.terms:
            raise SchemaError("a shape needs at least one term", hint="As in L1(1), excluding self")
        return shape


def window_clause(axes: Sequence[WindowAxis], settings: Sequence[Setting], place: int) -> Clause:
    """A window with what follows it; steps belong to the dimensions they name, or to all in order."""
    found = _settings("a window", settings, ("step", "boundary", "min count", "method", "strategy", "sweep"))
    if "step" in found:
        axes = _stepped(list(axes), found["step"].value, found["step"].place)
    spec = WindowSpec(tuple(axes), _value(found, "boundary", "clip"), _value(found, "min count", 0))
    return _clause("window", spec, found, place)


def regrid_clause(blocks: Sequence[Block], settings: Sequence[Setting], place: int) -> Clause:
    found = _settings("a regrid", settings, ("boundary", "min count", "method", "strategy"))
    spec = RegridSpec(tuple(blocks), _value(found, "boundary", "clip"), _value(found, "min count", 0))
    return _clause("regrid", spec, found, place)


def _clause(word: str, spec: WindowSpec | RegridSpec, found: dict[str, Setting], place: int) -> Clause:
    method, strategy = _value(found, "method", "auto"), _value(found, "strategy", "auto")
    sweep = _value(found, "sweep", None)
    return Clause(word, GROUPING, spec, place, method, strategy=strategy, sweep=sweep)


def neighbours_clause(shape: Shape, settings: Sequence[Setting], place: int) -> Clause:
    found = _settings("a shape", settings, ("step", "min count", "method"))
    method, min_count = _value(found, "method", "auto"), _value(found, "min count", 0)
    step = _value(found, "step", 1)
    given = tuple(step) if isinstance(step, list) else step
    try:
        check_step(given)
    except SchemaError as error:
        raise MisplacedError(error.what, found["step"].place, got=error.got, hint=error.hint) from None
    return Clause("neighbours", GROUPING, shape, place, method, min_count, step=given)


def whole(token: Any) -> int:
    """The value of an INTEGER that fits 64 bits."""
    value = Literal(number(token)).value
    assert isinstance(value, int)
    return value


def _settings(what: str, settings: Sequence[Setting], known: tuple[str, ...]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for setting in settings:
        if setting.word not in known:
            raise MisplacedError(f"{what} takes no {setting.word}", setting.place, hint="It takes " + ", ".join(known))
        if setting.word in found:
            raise MisplacedError(f"{setting.word} is given twice", setting.place)
        found[setting.word] = setting
    return found


def _value(found: dict[str, Setting], word: str, default: Any) -> Any:
    return found[word].value if word in found else default


def _stepped(axes: list[WindowAxis], steps: int | list[Block], place: int) -> list[WindowAxis]:
    if isinstance(steps, int):
        return [replace(axis, step=steps) for axis in axes]
    if all(step.name is None for step in steps):
        if len(steps) != len(axes):
            raise MisplacedError(f"expected a step for each extent, {len(axes)} in all", place, got=len(steps))
        return [replace(axis, step=step.size) for axis, step in zip(axes, steps, strict=True)]
    named = {step.name: step.size for step in steps}
    if None in named or len(named) < len(steps) or any(axis.name is None for axis in axes):
        hint = "As in window (i 3, j 3) step (i 2)"
        raise MisplacedError("steps are given by name for a window that names its dimensions", place, hint=hint)
    stepped = [replace(axis, step=named.pop(axis.name, 1)) for axis in axes]
    return stepped + [WindowAxis(name, Extent(0, 0), step) for name, step in named.items()]
