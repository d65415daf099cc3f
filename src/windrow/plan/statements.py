"""Statements as frozen data, one class for each thing that can be asked of windrow in text."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import DataError, SchemaError, nearest
from windrow.expressions.nodes import Literal, Node
from windrow.expressions.written import Value
from windrow.model.schema import Schema, check_name
from windrow.plan.nodes import Plan, Scan

Settings = tuple[tuple[str, Value], ...]
"""What follows ``with``: names and constants, as in ``with (delimiter = ';')``; a bare word is a text."""

LISTED = ("aggregates", "arrays", "functions", "operators", "versions", "views")
PLOTTED = ("histogram", "line", "map")


@dataclass(frozen=True)
class Statement:
    """Something to be done."""

    def __str__(self) -> str:
        from windrow.plan.printing import to_text

        return to_text(self)


@dataclass(frozen=True)
class Query(Statement):
    """A query, to be shown or kept as all that the array ``into`` holds."""

    plan: Plan
    into: str | None = None

    def __post_init__(self) -> None:
        if self.into is not None:
            check_name(self.into, "an array")


@dataclass(frozen=True)
class Sql(Statement):
    """A statement of SQL, in which arrays are tables."""

    text: str

    def __str__(self) -> str:
        return f"sql {self.text}"


@dataclass(frozen=True)
class CreateArray(Statement):
    array: str
    schema: Schema

    def __post_init__(self) -> None:
        check_name(self.array, "an array")


@dataclass(frozen=True)
class CreateFrom(Statement):
    """A new array that holds a query's result."""

    array: str
    plan: Plan

    def __post_init__(self) -> None:
        check_name(self.array, "an array")


@dataclass(frozen=True)
class CreateView(Statement):
    """A stored query; a deferred one is brought up to date by refresh alone."""

    view: str
    plan: Plan
    deferred: bool = False
    settings: Settings = ()

    def __post_init__(self) -> None:
        check_name(self.view, "a view")
        _check_settings(self.settings)


@dataclass(frozen=True)
class Load(Statement):
    """Fills a dense array with typed values, row by row as they were typed; without rows they are still to come."""

    array: str
    rows: tuple[tuple[Value, ...], ...] = ()

    def __post_init__(self) -> None:
        check_name(self.array, "an array")
        if not all(self.rows):
            raise DataError("a row of values is empty")


@dataclass(frozen=True)
class LoadFile(Statement):
    """Fills an array that is there from a file."""

    array: str
    path: str
    settings: Settings = ()

    def __post_init__(self) -> None:
        check_name(self.array, "an array")
        _check_settings(self.settings)


@dataclass(frozen=True)
class ImportFiles(Statement):
    """Reads files into an array, which is created if it is not there."""

    paths: tuple[str, ...]
    array: str
    settings: Settings = ()

    def __post_init__(self) -> None:
        check_name(self.array, "an array")
        _check_settings(self.settings)
        if not self.paths:
            raise DataError("an import needs a file")


@dataclass(frozen=True)
class Cell:
    """Coordinates, by index or label, and the values of the attributes in order."""

    coordinates: tuple[Value, ...]
    values: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        if not self.coordinates:
            raise DataError("a cell needs coordinates", hint="As in (1, 2: 2.5)")


@dataclass(frozen=True)
class InsertCells(Statement):
    array: str
    cells: tuple[Cell, ...]
    settings: Settings = ()

    def __post_init__(self) -> None:
        check_name(self.array, "an array")
        _check_settings(self.settings)
        if not self.cells:
            raise DataError("an insert needs cells", hint="As in values (1, 2: 2.5)")


@dataclass(frozen=True)
class InsertFile(Statement):
    array: str
    path: str
    settings: Settings = ()

    def __post_init__(self) -> None:
        check_name(self.array, "an array")
        _check_settings(self.settings)


@dataclass(frozen=True)
class InsertQuery(Statement):
    """The cells of a query's result into an array that is there; its other cells stay as they are."""

    array: str
    plan: Plan

    def __post_init__(self) -> None:
        check_name(self.array, "an array")


@dataclass(frozen=True)
class Delete(Statement):
    """Removes the cells where a condition holds, or all."""

    array: str
    condition: Node | None = None

    def __post_init__(self) -> None:
        check_name(self.array, "an array")


@dataclass(frozen=True)
class Update(Statement):
    """Sets attributes to expressions where a condition holds, or everywhere."""

    array: str
    assignments: tuple[tuple[str, Node], ...]
    condition: Node | None = None

    def __post_init__(self) -> None:
        check_name(self.array, "an array")
        names = [check_name(name, "an attribute") for name, _ in self.assignments]
        if not names or len(set(names)) < len(names):
            raise DataError("an update sets each of its attributes once", got=", ".join(names) or "none")


@dataclass(frozen=True)
class Describe(Statement):
    source: Scan


@dataclass(frozen=True)
class Explain(Statement):
    """Shows how a query would run; with ``analyze``, runs it and shows what was measured."""

    plan: Plan
    analyze: bool = False


@dataclass(frozen=True)
class ExplainView(Statement):
    """Shows how a view would be kept up to date, without making it."""

    create: CreateView


@dataclass(frozen=True)
class List(Statement):
    """Lists things of a kind; the versions are those of ``array``."""

    kind: str = "arrays"
    array: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in LISTED:
            raise DataError("nothing of that kind can be listed", got=repr(self.kind), hint=nearest(self.kind, LISTED))
        if (self.kind == "versions") != (self.array is not None):
            raise DataError("versions are listed of one array", hint="As in list versions A")
        if self.array is not None:
            check_name(self.array, "an array")


@dataclass(frozen=True)
class ShowHistory(Statement):
    name: str

    def __post_init__(self) -> None:
        check_name(self.name, "a view")


@dataclass(frozen=True)
class Refresh(Statement):
    """Brings a view up to date; in ``full``, by computing all of it anew."""

    view: str
    full: bool = False

    def __post_init__(self) -> None:
        check_name(self.view, "a view")


@dataclass(frozen=True)
class CheckView(Statement):
    """Compares a view with its query."""

    view: str

    def __post_init__(self) -> None:
        check_name(self.view, "a view")


@dataclass(frozen=True)
class Drop(Statement):
    """Removes an array or a view; ``kind`` is "array" or "view" where the text says so.

    ``cascade`` removes the views on it as well.
    """

    name: str
    kind: str | None = None
    if_exists: bool = False
    cascade: bool = False

    def __post_init__(self) -> None:
        check_name(self.name, "an array")
        if self.kind not in (None, "array", "view"):
            raise SchemaError("only arrays and views can be dropped", got=repr(self.kind))


@dataclass(frozen=True)
class Save(Statement):
    """Writes a query's result to a file."""

    plan: Plan
    path: str
    settings: Settings = ()

    def __post_init__(self) -> None:
        _check_settings(self.settings)


@dataclass(frozen=True)
class Plot(Statement):
    """Draws a query's result, to a file or to the terminal, as the kind asked for or the one that fits."""

    plan: Plan
    path: str | None = None
    kind: str | None = None
    settings: Settings = ()

    def __post_init__(self) -> None:
        _check_settings(self.settings)
        if self.kind is not None and self.kind not in PLOTTED:
            raise DataError("unknown kind of plot", got=repr(self.kind), hint=nearest(self.kind, PLOTTED))


@dataclass(frozen=True)
class Begin(Statement):
    """Starts a batch; one whose id was seen before is reported and not applied again."""

    batch: str | None = None


@dataclass(frozen=True)
class Commit(Statement):
    pass


@dataclass(frozen=True)
class Rollback(Statement):
    pass


@dataclass(frozen=True)
class SetOption(Statement):
    """Changes a setting of the session; words such as ``on`` arrive as texts."""

    option: str
    value: Value

    def __post_init__(self) -> None:
        check_name(self.option, "a setting")
        object.__setattr__(self, "value", Literal(self.value).value)


def _check_settings(settings: Settings) -> None:
    names = [check_name(name, "a setting") for name, _ in settings]
    if len(set(names)) < len(names):
        raise DataError("a setting is given twice", got=", ".join(names))
