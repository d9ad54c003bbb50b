"""What an outcome is: the only package that knows.

`outcome` has the contract of a kind, `binary`, `score` and `ordered` fulfil it. A kind defines what
is summed over groups (marks), how two sums are compared, and how results are worded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mutandis.errors import PlanError
from mutandis.outcomes.binary import Binary
from mutandis.outcomes.intervals import INTERVALS
from mutandis.outcomes.measures import MEASURES, Measure
from mutandis.outcomes.ordered import Ordered
from mutandis.outcomes.outcome import Declaration, listed
from mutandis.outcomes.score import Score

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ALL_INTERVALS",
    "ALL_MEASURES",
    "DECLARATIONS",
    "declare",
    "measure_named",
    "owner_of",
    "read_declaration",
]

DECLARATIONS: Final[Mapping[str, type[Declaration]]] = {
    each.key: each for each in (Binary, Score, Ordered)
}
"""All declarations by their keys; a new kind adds its own."""

_OTHERS = [each for each in DECLARATIONS.values() if each is not Binary]

ALL_MEASURES: Final[Mapping[str, Measure]] = {
    **MEASURES,
    **{each.measure.name: each.measure for each in _OTHERS if each.measure},
}
ALL_INTERVALS: Final = (*INTERVALS, *(each.interval for each in _OTHERS if each.interval))


def measure_named(name: str) -> Measure:
    """Return a measure of any kind of outcome."""
    return ALL_MEASURES[name]


def owner_of(name: object) -> type[Declaration] | None:
    """Return the kind of outcome that has a measure or an interval of this name for itself."""
    return next(
        (each for each in _OTHERS if each.measure and name in {each.measure.name, each.interval}),
        None,
    )


def declare(column: str, **how: Any) -> Declaration:
    """Declare an outcome column by its key: ``declare("rate", worse="higher")``."""
    key = next(iter(how))
    return DECLARATIONS[key](column, **how)  # type: ignore[call-arg]  # each takes its key


def read_declaration(outcome: object, negative: object) -> Declaration:
    """Read the arguments `outcome` and `negative` of an audit."""
    if isinstance(outcome, str):
        if negative is None:
            forms = ", one that is ".join(
                f"{each.title} is outcome={each.example.format(repr(outcome))}" for each in _OTHERS
            )
            raise PlanError(
                f"negative= is missing: name the unfavourable value of {outcome!r}. An outcome "
                f"that is {forms}."
            )
        return Binary(outcome, negative=negative)
    if not isinstance(outcome, Declaration):
        raise PlanError(
            f"outcome= is {type(outcome).__name__}. Give the name of a column, such as "
            f"'LoanApproval', or a {listed((each.__name__ for each in _OTHERS), last='or')}."
        )
    if negative is not None:
        raise PlanError(
            f"negative={negative!r} and {type(outcome).__name__}({outcome.column!r}) contradict "
            f"each other: {outcome.title} has no unfavourable value. Leave negative= out; "
            f"{outcome.key}= says which end is worse."
        )
    return outcome
