"""What an aggregate is, as data: what it takes and gives, how it is computed, and how its parts are joined.

An aggregate is computed in one of three ways, and each works in windows, at sparse cells, in groups and in frames:

- by one primitive ``operation`` of the kernels, whose outcome ``finish`` turns into results;
- by ``compose``, from several primitives, of one argument or of two;
- by a user's own functions.

What is present decides how an aggregate can run. With ``parts`` and ``join``, results over some of the cells become
results over all of them: totals are computed block by block, and unbounded frames across tasks. With ``state``, values
can be added to results and taken out again. An aggregate without them is computed over whole neighbourhoods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from windrow.aggregates.rounding import Rounding
from windrow.errors import DataError
from windrow.kernels.contract.outcomes import Outcome
from windrow.kernels.contract.ranks import RankRule
from windrow.model.types import DataType

if TYPE_CHECKING:
    from windrow.aggregates.states.rule import StateRule

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]

Finish = Callable[[Outcome, DataType], Array]


class Computed(NamedTuple):
    """Results, and where they are missing whatever stands there."""

    values: Array
    missing: Mask | None = None


class Primitives(Protocol):
    """What an evaluator offers to ``compose``: primitives over the cells at which all arguments are present."""

    method: str

    def type_of(self, argument: int) -> DataType:
        """The type of an argument's values."""

    def reals(self, argument: int) -> Float64Array:
        """An argument's values as floats, one for each cell."""

    def counts(self) -> Int64Array:
        """How many cells each neighbourhood holds at which all arguments are present."""

    def sums(self, name: str, values: Callable[[], Float64Array]) -> Float64Array:
        """Sums over each neighbourhood of something worked out for each cell; ``name`` tells the same apart."""

    def extremes(self, argument: int, operation: str) -> Array:
        """The smallest (``min``) or largest (``max``) value of an argument in each neighbourhood."""

    def places(self, operation: str) -> Int64Array:
        """The place of the first (``min``) or last (``max``) cell of each neighbourhood in that order."""

    def outermost(self, argument: int, operation: str) -> Array:
        """The value at the first (``min``) or last (``max``) cell of each neighbourhood, in coordinate or row order."""

    def lists(self, wanted: Mask) -> Iterator[tuple[Int64Array, Int64Array, Int64Array]]:
        """Some neighbourhoods cell by cell: their numbers, all their cells, and where the cells of each begin."""


Compose = Callable[[Primitives], Computed]


class Parts(Protocol):
    """Parts of groups: for each part and each of its aggregates a value, those of one group side by side."""

    def total(self, name: str) -> Array:
        """The sum over each group of a part's values."""

    def values(self, name: str) -> Array:
        """The values themselves; 0 where a part has none."""

    def sum(self, values: Float64Array) -> Float64Array:
        """Sums over each group of something worked out for each part."""

    def spread(self, results: Array) -> Array:
        """Results of groups, given back to each of their parts."""

    def extreme(self, name: str, operation: str) -> Array:
        """The smallest or largest of each group's values."""

    def pick(self, name: str, by: str, operation: str) -> Array:
        """Of each group the value of the part whose ``by`` is smallest or largest."""


Join = Callable[[Parts], Computed]


@dataclass(frozen=True)
class Definition:
    """One aggregate. ``least`` is how many present values make a result: 0 for counts, which are never missing."""

    name: str
    summary: str
    takes: tuple[str, ...]
    """For each argument one of number, ranked (and datetimes), ordered (and strings), any."""
    result: Callable[[DataType], DataType]
    """From the type of the first argument to that of results."""
    operation: str | None = None
    finish: Finish | None = None
    compose: Compose | None = None
    made_of: tuple[str, ...] = ()
    """The aggregates whose primitives ``compose`` takes, for estimates of time."""
    ranks: RankRule | None = None
    fraction: float | None = None
    """The parameter of an order statistic that has none of its own: the median's."""
    parameter: str | None = None
    least: int = 1
    divides: bool = False
    """Whether the result is made with the number of present values."""
    picks: bool = False
    """Whether results are among the values themselves, whatever their type."""
    ordered: bool = False
    """Whether results depend on the order of cells."""
    bare: bool = False
    """Whether it may stand without an argument, for the cells themselves."""
    parts: tuple[str, ...] = ()
    """The aggregates of a part of the cells that ``join`` needs."""
    join: Join | None = None
    state: StateRule | None = None
    weighted: str | None = None
    """The aggregate of two arguments that it becomes if it is asked for with weights."""
    rounding: Rounding | None = None
    """How far apart results computed in two ways may lie, where they are floats; None if they are the same."""
    synonyms: tuple[str, ...] = ()
    spark: tuple[str, ...] = ()
    """What Spark SQL calls the same, computed well in the frames that Spark has."""
    differs_in_spark: bool = False
    """Whether Spark SQL means something else by the same name."""
    instead_in_spark: str | None = None
    """The order statistic that Spark SQL means by the same name."""
    within: str | None = None
    """What SQL calls it where it is written with WITHIN GROUP."""
    in_spark: str | None = None
    """Spark SQL for a part, over the columns {0} and {1}."""
    hidden: bool = False
    """Whether it only serves as a part of others."""

    @property
    def counts(self) -> bool:
        """Whether it says how many values there are, and nothing else."""
        return self.operation == "count"

    @property
    def sums(self) -> bool:
        """Whether it is a plain sum, which is exact for whole numbers and decimals."""
        return self.operation == "sum" and not self.divides

    @property
    def averages(self) -> bool:
        """Whether it is a plain average, which kernels may give in one go."""
        return self.operation == "sum" and self.divides

    @property
    def kernel_operation(self) -> str:
        """The operation of the kernels that gives it, averages in one go; of a composed one, counting is the least."""
        return "avg" if self.averages else self.operation or "count"

    @property
    def names_a_row(self) -> bool:
        """Whether it is the value of one row of a frame, missing or not, whatever the values are."""
        return self.operation == "row"

    @property
    def deviates(self) -> bool:
        """Whether it is made of squared distances from the mean, which are floats whatever the values are."""
        return self.operation == "squares"

    @property
    def largest(self) -> bool:
        """Whether of two values it is the larger one."""
        return self.operation == "max"

    @property
    def tallies(self) -> bool:
        """Whether the result depends on how often each value occurs, and on nothing else."""
        return self.operation in ("select", "distinct", "mode")

    @property
    def counts_values(self) -> bool:
        """Whether it asks how many different values there are or which is most frequent, rather than for a rank."""
        return self.operation in ("distinct", "mode")

    @property
    def most_frequent(self) -> bool:
        return self.operation == "mode"

    @property
    def ignores_repeats(self) -> bool:
        """Whether it is the same for each value once as for all of them."""
        return self.operation in ("min", "max", "distinct")

    @property
    def interpolates(self) -> bool:
        return self.ranks is not None and self.ranks.interpolates

    @property
    def arguments(self) -> int:
        return len(self.takes)

    @property
    def example_parameter(self) -> str:
        """What a parameter may be, for hints."""
        return _EXAMPLES.get(self.parameter or "", "1")

    def usage(self) -> str:
        """How it is written: percentile(x, P)."""
        names = ("x", "y")[: self.arguments]
        return f"{self.name}({', '.join([*names, *([self.parameter] if self.parameter else [])])})"

    def check_type(self, found: DataType, argument: int = 0) -> None:
        """Refuse values of types that the aggregate cannot take."""
        accepted = self.takes[argument]
        number = found.is_number or found.name == "bool"
        ordered = number or found.name in ("datetime", "string")
        ranked = number or found.name == "datetime"
        if not {"number": number, "ranked": ranked, "ordered": ordered, "any": True}[accepted]:
            raise DataError(f"{self.name} cannot take values of type {found}", hint=f"It takes {_TAKES[accepted]}")


_EXAMPLES: Mapping[str, str] = {"P": "70", "q": "0.7"}
_TAKES: Mapping[str, str] = {
    "number": "numbers and booleans",
    "ranked": "numbers, booleans and datetimes",
    "ordered": "numbers, booleans, datetimes and strings",
}
