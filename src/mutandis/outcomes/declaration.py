"""How an outcome is declared to an audit, and all kinds of declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from mutandis.errors import PlanError
from mutandis.outcomes.binary import Binary
from mutandis.outcomes.ordered import Ordered
from mutandis.outcomes.score import Score
from mutandis.outcomes.words import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutandis.data.columns import Column
    from mutandis.outcomes.outcome import Outcome

__all__ = ["DECLARATIONS", "Declaration", "declare", "read_declaration"]


class Declaration(Protocol):
    """What a user says about the outcome column."""

    key: ClassVar[str]  # the argument that says which values are worse
    numeric: ClassVar[bool]  # whether the column holds numbers
    title: ClassVar[str]  # "a score"
    plural: ClassVar[str]  # "scores"
    example: ClassVar[str]  # how it is written, around the quoted column
    # the only measure and interval of this kind; None where users choose
    measure: ClassVar[str | None]
    interval: ClassVar[str | None]

    @property
    def column(self) -> str:
        """The outcome column."""
        ...

    @property
    def values(self) -> int | None:
        """Number of values; None if any number is one."""
        ...

    def read(self, column: Column, *, finest: bool = False) -> Outcome:
        """Read the column; `finest` if counterfactuals may have values between those on record."""
        ...


DECLARATIONS: Final[Mapping[str, type[Declaration]]] = {
    each.key: each for each in (Binary, Score, Ordered)
}
"""All declarations by their keys; a new kind adds its own."""


def declare(column: str, **how: Any) -> Declaration:
    """Declare an outcome column by its key: ``declare("rate", worse="higher")``."""
    key = next(iter(how))
    return DECLARATIONS[key](column, **how)  # type: ignore[call-arg]  # each takes its key


def read_declaration(outcome: object, negative: object) -> Declaration:
    """Read the arguments `outcome` and `negative` of an audit."""
    if isinstance(outcome, str):
        if negative is None:
            others = [each for each in DECLARATIONS.values() if each is not Binary]
            forms = ", one that is ".join(
                f"{each.title} is outcome={each.example.format(repr(outcome))}" for each in others
            )
            raise PlanError(
                f"negative= is missing: name the unfavourable value of {outcome!r}. An outcome "
                f"that is {forms}."
            )
        return Binary(outcome, negative=negative)
    if not isinstance(outcome, Binary | Score | Ordered):
        kinds = [each.__name__ for each in DECLARATIONS.values() if each is not Binary]
        raise PlanError(
            f"outcome= is {type(outcome).__name__}. Give the name of a column, such as "
            f"'LoanApproval', or a {listed(kinds, last='or')}."
        )
    if negative is not None:
        raise PlanError(
            f"negative={negative!r} and {type(outcome).__name__}({outcome.column!r}) contradict "
            f"each other: {outcome.title} has no unfavourable value. Leave negative= out; "
            f"{outcome.key}= says which end is worse."
        )
    return outcome
