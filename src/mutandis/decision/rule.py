"""Formulas over columns: a rule that decides, or a score for a threshold."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import read_numbers
from mutandis.data.formula import Formula
from mutandis.decision.maker import BooleanMaker, DescribedMaker
from mutandis.errors import FormulaError
from mutandis.frames import check_columns, open_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import narwhals as nw
    from numpy.typing import NDArray

    from mutandis.data.formula import Node


@dataclass(frozen=True, slots=True)
class _FormulaMaker(DescribedMaker):
    formula: Formula

    @property
    def names(self) -> tuple[str, ...]:
        return self.formula.names

    def decide(self, frame: Any, /) -> NDArray[Any]:
        opened = open_frame(frame)
        check_columns(self.names, opened.columns)
        columns = {name: _values(opened[name]) for name in self.names}
        return self.formula.evaluate(columns, length=len(opened))

    def describe(self) -> dict[str, Any]:
        return {"kind": "rule", "rule": self.formula.text}

    def explain_change(
        self, before: Any, after: Any, called: Callable[[str], str] = str
    ) -> tuple[str, ...]:
        """Describe the conditions that hold for one of the records and not for the other."""
        opened = [open_frame(frame) for frame in (before, after)]
        columns = {
            name: np.concatenate([_values(each[name]) for each in opened]) for name in self.names
        }
        return self.explain_columns(columns, called)

    def explain_columns(
        self, columns: Mapping[str, NDArray[Any]], called: Callable[[str], str]
    ) -> tuple[str, ...]:
        """Describe the conditions that hold for one of two rows and not for the other.

        `columns` has both values of every column that the formula names; `called` translates
        names of columns, but in conditions, which are quoted as they were written.
        """
        found = (_compare(each, columns, called) for each in _conditions(self.formula.root))
        return tuple(line for line in found if line)


@dataclass(frozen=True, slots=True)
class Rule(_FormulaMaker, BooleanMaker):
    """A formula that states when the favourable outcome is granted."""

    def __post_init__(self) -> None:
        if self.formula.kind == "number":
            raise self._not_a_condition()

    @classmethod
    def parse(cls, text: str) -> Rule:
        return cls(Formula.parse(text))

    def decide(self, frame: Any, /) -> NDArray[np.bool_]:
        # no super() without names: slots make a second class of it
        return self._condition(_FormulaMaker.decide(self, frame))

    def decide_columns(
        self, columns: Mapping[str, NDArray[Any]], *, rows: int
    ) -> NDArray[np.bool_]:
        """Decide from the columns that the rule reads; they are not written to."""
        return self._condition(self.formula.evaluate(columns, length=rows))

    def _condition(self, granted: NDArray[Any]) -> NDArray[np.bool_]:
        if granted.dtype != np.bool_:
            raise self._not_a_condition()
        return granted

    def _not_a_condition(self) -> FormulaError:
        return FormulaError(
            f"The rule {self.formula.text!r} gives numbers, not true or false. "
            "State when the favourable outcome is granted, as in `salary > 30000`."
        )

    def scoring(self) -> FormulaScores:
        return FormulaScores(self.formula)


@dataclass(frozen=True, slots=True)
class FormulaScores(_FormulaMaker):
    """A formula that gives each row a number, for a threshold."""

    def __post_init__(self) -> None:
        if self.formula.kind == "boolean":
            raise FormulaError(
                f"The rule {self.formula.text!r} decides already: it gives true or false, not a "
                "score. Leave the threshold out, or write a formula for the score."
            )


def _values(series: nw.Series[Any]) -> NDArray[Any]:
    return read_numbers(series).values if series.dtype.is_numeric() else series.to_numpy()


def _conditions(node: Node) -> Iterator[Node]:
    """List the comparisons in a formula, from left to right, each once."""
    if node.operation == "compare":
        yield node
        return
    for operand in node.operands:
        yield from _conditions(operand)


def _compare(
    condition: Node, columns: Mapping[str, NDArray[Any]], called: Callable[[str], str]
) -> str:
    """Describe a condition that holds for one record and not for the other; empty if not so."""
    try:
        holds = Formula.parse(condition.place.text).evaluate(columns, length=2).tolist()
    except FormulaError:  # a condition that another one guards, such as a division by 0
        return ""
    if holds[0] == holds[1]:
        return ""
    sides = []
    for side in condition.operands:
        if side.operation != "constant":
            with suppress(FormulaError):  # a text is no formula by itself
                found = Formula.parse(side.place.text).evaluate(columns, length=2)
                sides.append((called(side.place.text), found))
    words = ("holds", "does not hold")
    first, second = words if holds[0] else words[::-1]
    values = "".join(
        f"; {text} is {_number(found[0])} and {_number(found[1])}" for text, found in sides
    )
    return (
        f"The condition {condition.place.text} {first} on record and {second} in the "
        f"counterfactual{values}."
    )


def _number(value: Any) -> str:
    return f"{float(value):,.6g}".replace("-", "−")
