"""Whatever people have as b(), made into a decision maker: a rule, a function, a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mutandis.decision.maker import DecisionMaker
from mutandis.domain import Formula
from mutandis.domain.columns import read_numbers
from mutandis.domain.expression import Kind
from mutandis.domain.population import check_names, open_frame
from mutandis.errors import DecisionError, FormulaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import narwhals as nw
    from numpy.typing import NDArray

__all__ = ["FunctionMaker", "ModelMaker", "Rule", "as_decision_maker", "required_columns"]


@dataclass(frozen=True, slots=True)
class Rule:
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
        if self.formula.kind is Kind.NUMBER:
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
        opened = open_frame(frame)
        check_names(opened, self.names)
        columns = {name: _values(opened[name]) for name in self.names}
        return self.decide_columns(columns, rows=len(opened))

    def decide_columns(
        self, columns: Mapping[str, NDArray[Any]], *, rows: int
    ) -> NDArray[np.bool_]:
        """Tell it from the columns that the rule reads; they are not written to.

        Examples
        --------
        >>> Rule.parse("salary > 15").decide_columns({"salary": np.array([10.0, 20.0])}, rows=2)
        array([False,  True])
        """
        granted = self.formula.evaluate(columns, length=rows)
        if granted.dtype != np.bool_:
            raise self._not_a_condition()
        return granted

    def _not_a_condition(self) -> FormulaError:
        return FormulaError(
            f"The rule {self.formula.text!r} gives numbers, not true or false. "
            "State when the favourable outcome is granted, as in `salary > 30000`."
        )


def _values(series: nw.Series[Any]) -> NDArray[Any]:
    return read_numbers(series).values if series.dtype.is_numeric() else series.to_numpy()


@dataclass(frozen=True, slots=True)
class FunctionMaker:
    """A function of the whole table, in the caller's own frame type.

    Examples
    --------
    >>> import pandas as pd
    >>> maker = FunctionMaker(lambda table: table["salary"] > 15)
    >>> maker.decide(pd.DataFrame({"salary": [10, 20]})).tolist()
    [False, True]
    """

    function: Callable[[Any], Any]

    def decide(self, frame: Any, /) -> Any:
        """Call the function."""
        return self.function(frame)


@dataclass(frozen=True, slots=True)
class ModelMaker:
    """A fitted model with a `predict` method, as scikit-learn and its kin have.

    It gets the columns that it was fitted on, in that order, if it remembers them
    (`feature_names_in_`); otherwise the whole table.

    Examples
    --------
    >>> import pandas as pd
    >>> class Threshold:
    ...     feature_names_in_ = ["salary"]
    ...
    ...     def predict(self, table):
    ...         return (table > 15).to_numpy().ravel()
    >>> maker = ModelMaker(Threshold())
    >>> maker.names, maker.decide(pd.DataFrame({"id": [1, 2], "salary": [10, 20]})).tolist()
    (('salary',), [False, True])
    """

    model: Any

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that the model was fitted on, as far as it remembers."""
        names = getattr(self.model, "feature_names_in_", None)
        return () if names is None else tuple(str(name) for name in names)

    def decide(self, frame: Any, /) -> Any:
        """Predict from the model's own columns."""
        if not self.names:
            return self.model.predict(frame)
        opened = open_frame(frame)
        check_names(opened, self.names)
        return self.model.predict(opened.select(self.names).to_native())


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
    return maker.names if isinstance(maker, Rule | ModelMaker) else ()
