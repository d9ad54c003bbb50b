"""The tree behind a formula, and how it is evaluated on columns.

A small interpreter: each expression evaluates itself on rows, and no text is ever run by Python.
Values are numpy arrays of one of three types: float64, bool, and object (text).

Each row is evaluated the way Python would: the right side of `and` only for rows where the left
side holds, and each branch of `where` only for the rows that take it. So
`where(balance > 0, log(balance), 0)` is safe, and a division by zero is an error exactly when a row
needs it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, auto
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.errors import FormulaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray


class ValueKind(Enum):
    """What an expression evaluates to, as far as its text tells."""

    NUMBER = auto()
    BOOLEAN = auto()
    TEXT = auto()
    COLUMN = auto()
    """Whatever the column holds: known only when there is a table."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a formula's text, and where it stands."""

    character: int
    text: str

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= 40 else f"{self.text[:39]}…"
        return f"{shown!r} (character {self.character})"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that an expression is evaluated for: all of them, or those that got this far."""

    columns: Mapping[str, NDArray[Any]]
    count: int
    chosen: NDArray[np.intp] | None = None

    def column(self, name: str) -> NDArray[Any]:
        values = self.columns[name]
        return values if self.chosen is None else values[self.chosen]

    def only(self, mask: NDArray[np.bool_]) -> Rows:
        if mask.all():
            return self
        chosen = np.flatnonzero(mask) if self.chosen is None else self.chosen[mask]
        return Rows(self.columns, len(chosen), chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression(ABC):
    """One part of a formula."""

    place: Excerpt
    operands: tuple[Expression, ...] = ()

    @abstractmethod
    def evaluate(self, rows: Rows) -> NDArray[Any]:
        """Give one value per row, or a single one for all of them."""

    def to_numbers(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Read its values as numbers; a boolean counts as 0 or 1, text is refused."""
        if values.dtype == np.object_:
            raise FormulaError(
                f"{self.place} is text where a number is needed. "
                "Text can only be compared by == or !=."
            )
        return values.astype(np.float64, copy=False)

    def booleans(self, rows: Rows) -> NDArray[np.bool_]:
        """Give one boolean per row; numbers are refused."""
        values = self.evaluate(rows)
        if values.dtype != np.bool_:
            raise not_a_boolean(self.place)
        return np.broadcast_to(values, rows.count)


def not_a_boolean(place: Excerpt) -> FormulaError:
    return FormulaError(
        f"{place} is neither true nor false, as and, or, not and where(condition, …) need it. "
        "Compare it with something, as in `salary > 0`."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Expression):
    """A number or a text."""

    value: float | str

    def evaluate(self, rows: Rows) -> NDArray[Any]:  # noqa: ARG002 - the same for all rows
        return np.array(self.value, dtype=np.object_ if isinstance(self.value, str) else np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnName(Expression):
    """A column."""

    name: str

    def evaluate(self, rows: Rows) -> NDArray[Any]:
        return rows.column(self.name)


def _rounded(values: NDArray[np.float64], digits: NDArray[np.float64]) -> NDArray[np.float64]:
    rounded = np.round(values, int(digits))
    # numpy scales up first; a number too large for that has no decimals to round off
    return np.where(np.isfinite(rounded), rounded, values)


FUNCTIONS: Mapping[str, tuple[int, int | None, Callable[..., NDArray[np.float64]]]] = {
    "abs": (1, 1, np.abs),
    "exp": (1, 1, np.exp),
    "log": (1, 1, np.log),
    "max": (2, None, lambda *values: reduce(np.maximum, values)),
    "min": (2, None, lambda *values: reduce(np.minimum, values)),
    "round": (1, 2, _rounded),
    "sqrt": (1, 1, np.sqrt),
    "where": (3, 3, np.where),
}
"""The functions of the language, with the fewest and the most arguments."""

_OPERATIONS: Mapping[str, Callable[..., NDArray[np.float64]]] = {
    "negative": np.negative,
    "positive": np.positive,
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": np.power,
    **{name: function for name, (_, _, function) in FUNCTIONS.items()},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Numeric(Expression):
    """An operator or function that makes a number of numbers."""

    operation: str

    def evaluate(self, rows: Rows) -> NDArray[Any]:
        """Apply the operation; a result that is not a finite number is an error."""
        values = [operand.to_numbers(operand.evaluate(rows)) for operand in self.operands]
        with np.errstate(all="ignore"):
            result = np.asarray(_OPERATIONS[self.operation](*values))
        finite = np.broadcast_to(np.isfinite(result), rows.count)
        if not finite.all():
            raise FormulaError(
                f"{self.place} has no finite result in {rows.count - np.count_nonzero(finite)} "
                f"of {rows.count} rows (a division by zero, a logarithm or root outside its "
                "range, or too large a number). Keep these rows out of it, as in "
                "`where(balance > 0, log(balance), 0)`."
            )
        return result


_COMPARISONS: Mapping[str, Callable[..., NDArray[np.bool_]]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonChain(Expression):
    """One comparison, or a chain of them: `a < b <= c` means `a < b and b <= c`."""

    operators: tuple[str, ...]

    def evaluate(self, rows: Rows) -> NDArray[Any]:
        """Compare along the chain, each link only in the rows where all before it hold."""
        result = np.zeros(rows.count, dtype=np.bool_)
        holding = np.arange(rows.count)
        left = self.operands[0].evaluate(rows)
        for position, operator in enumerate(self.operators):
            right = self.operands[position + 1].evaluate(rows)
            self._check_link(position, left.dtype, right.dtype)
            passed = np.broadcast_to(_COMPARISONS[operator](left, right), rows.count)
            holding = holding[passed]
            rows = rows.only(passed)
            left = right[passed] if right.ndim else right
        result[holding] = True
        return result

    def _check_link(
        self, position: int, left_type: np.dtype[Any], right_type: np.dtype[Any]
    ) -> None:
        """Refuse to compare text with numbers, or to order text."""
        left, right = self.operands[position : position + 2]
        left_is_text, right_is_text = left_type == np.object_, right_type == np.object_
        if left_is_text != right_is_text:
            text, other = (left, right) if left_is_text else (right, left)
            raise FormulaError(
                f"{text.place} is text and is compared with {other.place}, which is not. "
                "Compare text with text in quotes, and numbers with numbers."
            )
        if left_is_text and self.operators[position] not in {"==", "!="}:
            raise FormulaError(
                f"{left.place} and {right.place} are text and are put in order by "
                f"{self.operators[position]}. Text can only be compared by == or !=."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Logic(Expression):
    """`and` or `or` between two or more conditions, or `not` before one."""

    operator: str

    def evaluate(self, rows: Rows) -> NDArray[Any]:
        """Evaluate each condition only in the rows that those before it have not settled."""
        if self.operator == "not":
            return ~self.operands[0].booleans(rows)
        settling = self.operator == "or"  # one true settles an `or`, one false an `and`
        result = np.full(rows.count, not settling)
        unsettled = np.arange(rows.count)
        for operand in self.operands:
            settled = operand.booleans(rows) == settling
            result[unsettled[settled]] = settling
            unsettled = unsettled[~settled]
            rows = rows.only(~settled)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Where(Expression):
    """One value where a condition holds, another where it does not: three operands."""

    def evaluate(self, rows: Rows) -> NDArray[Any]:
        """Evaluate each branch only in the rows that take it."""
        condition, *branches = self.operands
        holds = condition.booleans(rows)
        taken = (rows.only(holds), rows.only(~holds))
        values = [branch.evaluate(part) for branch, part in zip(branches, taken, strict=True)]
        if any(part.dtype != np.bool_ for part in values):
            values = [branch.to_numbers(v) for branch, v in zip(branches, values, strict=True)]
        result = np.empty(rows.count, dtype=values[0].dtype)
        result[holds], result[~holds] = values
        return result


def kind_of(expression: Expression) -> ValueKind:
    """Tell what an expression evaluates to; `where` gives booleans only if both branches do."""
    match expression:
        case Constant(value=str()):
            return ValueKind.TEXT
        case Constant() | Numeric():
            return ValueKind.NUMBER
        case ComparisonChain() | Logic():
            return ValueKind.BOOLEAN
        case Where():
            kinds = {kind_of(branch) for branch in expression.operands[1:]}
            if kinds == {ValueKind.BOOLEAN}:
                return ValueKind.BOOLEAN
            return ValueKind.NUMBER if ValueKind.NUMBER in kinds else ValueKind.COLUMN
        case _:
            return ValueKind.COLUMN
