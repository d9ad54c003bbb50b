"""Whatever people have as b(), made into a decision maker: a rule, a function, a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mutandis.data.columns import read_numbers
from mutandis.data.expression import ValueKind
from mutandis.data.formula import Formula
from mutandis.decision.maker import DecisionMaker, DescribedMaker
from mutandis.decision.models import ModelMaker, ModelScores
from mutandis.decision.selection import opened_columns
from mutandis.decision.threshold import Threshold, Thresholded
from mutandis.errors import DecisionError, FormulaError
from mutandis.frames import check_columns, open_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import narwhals as nw
    from numpy.typing import NDArray

    from mutandis.decision.model_file import ModelFile
    from mutandis.decision.models import ScoreSource
    from mutandis.decision.threshold import Favourable

__all__ = [
    "FormulaScores",
    "FunctionMaker",
    "Rule",
    "as_decision_maker",
    "required_columns",
    "with_threshold",
]


@dataclass(frozen=True, slots=True)
class Rule(DescribedMaker):
    """A formula that states when the favourable outcome is granted.

    Parameters
    ----------
    formula
        A condition over columns of the table; build both with `Rule.parse`.

    Examples
    --------
    >>> import pandas as pd
    >>> rule = Rule.parse("AnnualSalary + 5 * AccountBalance > 225000")
    >>> rule.names
    ('AnnualSalary', 'AccountBalance')
    >>> applicants = pd.DataFrame({"AnnualSalary": [35_000, 90_000], "AccountBalance": [8e3, 3e4]})
    >>> rule.decide(applicants).tolist()
    [False, True]
    """

    true_is_favourable: ClassVar[bool] = True
    """How `decide` reads the answers: true is always the positive outcome."""

    formula: Formula

    def __post_init__(self) -> None:
        if self.formula.kind is ValueKind.NUMBER:
            raise self._not_a_condition()

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a rule from the text of its formula.

        Examples
        --------
        >>> Rule.parse("0.6 * UGPA + 0.4 * LSAT >= 20.8").names
        ('UGPA', 'LSAT')
        """
        return cls(Formula.parse(text))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the rule reads."""
        return self.formula.names

    def decide(self, frame: Any, /) -> NDArray[np.bool_]:
        """Tell for each row of any dataframe whether the favourable outcome is granted."""
        return self._condition(_evaluated(self.formula, frame))

    def decide_columns(
        self, columns: Mapping[str, NDArray[Any]], *, rows: int
    ) -> NDArray[np.bool_]:
        """Tell it from the columns that the rule reads; they are not written to.

        Examples
        --------
        >>> Rule.parse("salary > 15").decide_columns({"salary": np.array([10.0, 20.0])}, rows=2)
        array([False,  True])
        """
        return self._condition(self.formula.evaluate(columns, length=rows))

    def _condition(self, granted: NDArray[Any]) -> NDArray[np.bool_]:
        if granted.dtype != np.bool_:
            raise self._not_a_condition()
        return granted

    def describe(self) -> dict[str, Any]:
        """Give the formula."""
        return {"kind": "rule", "rule": self.formula.text}

    def _not_a_condition(self) -> FormulaError:
        return FormulaError(
            f"The rule {self.formula.text!r} gives numbers, not true or false. "
            "State when the favourable outcome is granted, as in `salary > 30000`."
        )


@dataclass(frozen=True, slots=True)
class FormulaScores(DescribedMaker):
    """A formula that gives each row a number, for a threshold: give it to `Thresholded`.

    Examples
    --------
    >>> scores = FormulaScores(Formula.parse("salary + 5 * balance"))
    >>> scores.decide({"salary": [10, 20], "balance": [1, 2]}).tolist()
    [15.0, 30.0]
    """

    formula: Formula

    def __post_init__(self) -> None:
        if self.formula.kind is ValueKind.BOOLEAN:
            raise FormulaError(
                f"The rule {self.formula.text!r} decides already: it gives true or false, not a "
                "score. Leave the threshold out, or write a formula for the score."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the formula reads."""
        return self.formula.names

    def decide(self, frame: Any, /) -> NDArray[Any]:
        """Work the formula out for each row."""
        return _evaluated(self.formula, frame)

    def describe(self) -> dict[str, Any]:
        """Give the formula."""
        return {"kind": "rule", "rule": self.formula.text}


def _evaluated(formula: Formula, frame: Any) -> NDArray[Any]:
    opened = open_frame(frame)
    check_columns(formula.names, opened.columns)
    columns = {name: _values(opened[name]) for name in formula.names}
    return formula.evaluate(columns, length=len(opened))


def _values(series: nw.Series[Any]) -> NDArray[Any]:
    return read_numbers(series).values if series.dtype.is_numeric() else series.to_numpy()


@dataclass(frozen=True, slots=True)
class FunctionMaker(DescribedMaker):
    """A function of the table, in the caller's own frame type.

    Parameters
    ----------
    function
        It takes a table and gives one answer a row.
    columns
        The columns that it is shown. Default: the whole table.
    reference, file
        Where it was found (``module:function``) and the file that its module was read from.

    Examples
    --------
    >>> import pandas as pd
    >>> maker = FunctionMaker(lambda table: table["salary"] > 15)
    >>> maker.decide(pd.DataFrame({"salary": [10, 20]})).tolist()
    [False, True]
    """

    function: Callable[[Any], Any]
    columns: tuple[str, ...] = ()
    reference: str | None = None
    file: ModelFile | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it is shown; none if that is all of them."""
        return self.columns

    @property
    def label(self) -> str:
        """What error messages call it."""
        return type(self).__name__ if self.reference is None else f"function {self.reference}"

    def decide(self, frame: Any, /) -> Any:
        """Call the function."""
        if not self.columns:
            return self.function(frame)
        return self.function(opened_columns(frame, self.columns).to_native())

    def describe(self) -> dict[str, Any]:
        """Name the function."""
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        return {
            "kind": "function" if self.reference is None else "python",
            "function": self.reference or name,
            **({} if self.file is None else self.file.describe()),
            "columns": list(self.columns) or None,
        }


def as_decision_maker(value: object) -> DecisionMaker:
    """Make a decision maker of whatever the caller has.

    Parameters
    ----------
    value
        The text of a rule, a formula, an object with a `decide` method, a fitted model with a
        `predict` method, or a function from a table to answers.

    Examples
    --------
    >>> as_decision_maker("salary > 15").names
    ('salary',)
    """
    if isinstance(value, str):
        return Rule.parse(value)
    if isinstance(value, Formula):
        return Rule(value)
    if isinstance(value, type):
        raise DecisionError(
            f"{value.__name__} is a class and cannot decide. Give an object made from it."
        )
    if isinstance(value, DecisionMaker):
        return value
    if callable(getattr(value, "predict", None)):
        return ModelMaker(value)
    if callable(value):
        return FunctionMaker(value)
    raise DecisionError(
        f"{type(value).__name__} cannot decide. Allowed are a rule such as 'salary > 30000', a "
        "function that takes a table and gives one answer a row, a fitted model with a predict "
        "method, or an object with a decide method."
    )


def required_columns(maker: DecisionMaker) -> tuple[str, ...]:
    """Name the columns that a decision maker is known to need; none if it does not tell.

    Examples
    --------
    >>> required_columns(as_decision_maker("salary + 5 * balance > 225000"))
    ('salary', 'balance')
    """
    return maker.names if isinstance(maker, DescribedMaker) else ()


def with_threshold(
    decision: object,
    threshold: float,
    *,
    favourable: Favourable = "above",
    score_of: Any = None,
    score_from: ScoreSource | None = None,
) -> Thresholded:
    """Make a decision maker of whatever gives scores.

    Parameters
    ----------
    decision
        The text of a formula, a function from a table to scores, a fitted model, or an object
        with a `decide` method that gives scores.
    threshold, favourable
        Where the scores are cut, and which side gets the favourable outcome (a score that equals
        the threshold counts as above).
    score_of, score_from
        For a model: the class that the scores speak for, and the method to take them from.

    Examples
    --------
    >>> maker = with_threshold("0.6 * UGPA + 0.4 * LSAT", 20.8)
    >>> maker.decide({"UGPA": [3.0, 3.5], "LSAT": [40, 48]}).tolist()
    [False, True]
    """
    cut = Threshold(threshold, favourable)
    if isinstance(decision, str):
        decision = Formula.parse(decision)
    maker = (
        FormulaScores(decision) if isinstance(decision, Formula) else as_decision_maker(decision)
    )
    if isinstance(maker, ModelMaker):
        return Thresholded(ModelScores(maker, score_of, score_from), cut)
    if score_of is not None or score_from is not None:
        raise DecisionError(
            "score_of and score_from say which scores of a fitted model are meant, and this is no "
            "fitted model. Leave them out."
        )
    return Thresholded(maker.scoring() if isinstance(maker, DescribedMaker) else maker, cut)
