"""Formulas over columns: a rule that decides, or a score for a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import read_numbers
from mutandis.data.expression import ValueKind
from mutandis.data.formula import Formula
from mutandis.decision.maker import BooleanMaker, DescribedMaker
from mutandis.errors import FormulaError
from mutandis.frames import check_columns, open_frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    import narwhals as nw
    from numpy.typing import NDArray


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


@dataclass(frozen=True, slots=True)
class Rule(_FormulaMaker, BooleanMaker):
    """A formula that states when the favourable outcome is granted."""

    def __post_init__(self) -> None:
        if self.formula.kind is ValueKind.NUMBER:
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
        if self.formula.kind is ValueKind.BOOLEAN:
            raise FormulaError(
                f"The rule {self.formula.text!r} decides already: it gives true or false, not a "
                "score. Leave the threshold out, or write a formula for the score."
            )


def _values(series: nw.Series[Any]) -> NDArray[Any]:
    return read_numbers(series).values if series.dtype.is_numeric() else series.to_numpy()
