"""The tree behind a formula, and how it is worked out on columns.

A small interpreter of its own: each node knows how to evaluate itself on rows, nothing is ever
handed to Python to run. Values are numpy arrays of one of three types: float64 (numbers), bool
(truths) and object (text).

Evaluation follows each row the way Python would follow one person: the right side of `and` is
worked out only for rows where the left side holds, and `where` works out each branch only for the
rows that take it. So `where(balance > 0, log(balance), 0)` is safe, and a division by zero is an
error exactly when a row needs it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, auto
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.errors import FormulaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

__all__ = [
    "COMPARISONS",
    "FUNCTIONS",
    "ColumnName",
    "Comparison",
    "Kind",
    "Logic",
    "Node",
    "Not",
    "Number",
    "Numeric",
    "Place",
    "Rows",
    "Text",
    "Where",
    "not_a_truth",
]


class Kind(Enum):
    """What a part of a formula gives, as far as its text tells."""

    NUMBER = auto()
    TRUTH = auto()
    TEXT = auto()
    COLUMN = auto()
    """Whatever the column holds: known only when there is a table."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part of a formula stands."""

    character: int
    text: str

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= 40 else f"{self.text[:39]}…"
        return f"{shown!r} (character {self.character})"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that a node is worked out for: all of them, or those that got this far."""

    columns: Mapping[str, NDArray[Any]]
    count: int
    chosen: NDArray[np.intp] | None = None

    def column(self, name: str) -> NDArray[Any]:
        """Give a column's values in these rows."""
        values = self.columns[name]
        return values if self.chosen is None else values[self.chosen]

    def only(self, mask: NDArray[np.bool_]) -> Rows:
        """Give the rows where the mask holds."""
        if mask.all():
            return self
        chosen = np.flatnonzero(mask) if self.chosen is None else self.chosen[mask]
        return Rows(self.columns, len(chosen), chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(ABC):
    """One part of a formula."""

    place: Place

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """What it gives."""

    @abstractmethod
    def evaluate(self, rows: Rows) -> NDArray[Any]:
        """Work it out: one value a row, or a single one for all of them."""

    def to_numbers(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Read what it gave as numbers; a truth counts as 0 or 1, text is refused."""
        if values.dtype == np.object_:
            raise FormulaError(
                f"{self.place} is text where a number is needed. "
                "Text can only be compared by == or !=."
            )
        return values.astype(np.float64, copy=False)

    def truths(self, rows: Rows) -> NDArray[np.bool_]:
        """Work it out as true or false, one a row; numbers are refused."""
        values = self.evaluate(rows)
        if values.dtype != np.bool_:
            raise not_a_truth(self.place)
        return np.broadcast_to(values, rows.count)


def not_a_truth(place: Place) -> FormulaError:
    """Say that a number or text stands where true or false is needed."""
    return FormulaError(
        f"{place} is neither true nor false, as and, or, not and where(condition, …) need it. "
        "Compare it with something, as in `salary > 0`."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(Node):
    """A constant."""

    value: float

    @property
    def kind(self) -> Kind:
        """A number."""
        return Kind.NUMBER

    def evaluate(self, rows: Rows) -> NDArray[Any]:  # noqa: ARG002 - the same for all rows
        """Give the constant."""
        return np.array(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(Node):
    """A text constant."""

    value: str

    @property
    def kind(self) -> Kind:
        """Text."""
        return Kind.TEXT

    def evaluate(self, rows: Rows) -> NDArray[Any]:  # noqa: ARG002 - the same for all rows
        """Give the text."""
        return np.array(self.value, dtype=np.object_)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnName(Node):
    """A column."""

    name: str

    @property
    def kind(self) -> Kind:
        """Depends on the table."""
        return Kind.COLUMN

    def evaluate(self, rows: Rows) -> NDArray[Any]:
        """Give the column's values."""
        return rows.column(self.name)


def _rounded(values: NDArray[np.float64], digits: NDArray[np.float64]) -> NDArray[np.float64]:
    rounded = np.round(values, int(digits))
    # numpy scales up first; a number too large for that has no decimals to round off
    return np.where(np.isfinite(rounded), rounded, values)


_OPERATIONS: Mapping[str, Callable[..., NDArray[np.float64]]] = MappingProxyType(
    {
        "negative": np.negative,
        "positive": np.positive,
        "+": np.add,
        "-": np.subtract,
        "*": np.multiply,
        "/": np.divide,
        "**": np.power,
        "abs": np.abs,
        "exp": np.exp,
        "log": np.log,
        "sqrt": np.sqrt,
        "min": lambda *values: reduce(np.minimum, values),
        "max": lambda *values: reduce(np.maximum, values),
        "round": _rounded,
    }
)

FUNCTIONS: Mapping[str, tuple[int, int | None]] = MappingProxyType(
    {
        "abs": (1, 1),
        "exp": (1, 1),
        "log": (1, 1),
        "max": (2, None),
        "min": (2, None),
        "round": (1, 2),
        "sqrt": (1, 1),
        "where": (3, 3),
    }
)
"""The functions of the language, with the fewest and the most arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numeric(Node):
    """An operator or function that makes a number of numbers."""

    operation: str
    operands: tuple[Node, ...]

    @property
    def kind(self) -> Kind:
        """A number."""
        return Kind.NUMBER

    def evaluate(self, rows: Rows) -> NDArray[Any]:
        """Apply the operation; a result that is no finite number is an error."""
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


COMPARISONS: Mapping[str, Callable[..., NDArray[np.bool_]]] = MappingProxyType(
    {
        "==": np.equal,
        "!=": np.not_equal,
        "<": np.less,
        "<=": np.less_equal,
        ">": np.greater,
        ">=": np.greater_equal,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Node):
    """One comparison, or a chain of them: `a < b <= c` means `a < b and b <= c`."""

    operators: tuple[str, ...]
    operands: tuple[Node, ...]

    @property
    def kind(self) -> Kind:
        """A truth."""
        return Kind.TRUTH

    def evaluate(self, rows: Rows) -> NDArray[Any]:
        """Compare along the chain, each link only in the rows where all before it hold."""
        result = np.zeros(rows.count, dtype=np.bool_)
        holding = np.arange(rows.count)
        left = self.operands[0].evaluate(rows)
        for position, operator in enumerate(self.operators):
            right = self.operands[position + 1].evaluate(rows)
            self._check_link(position, left.dtype, right.dtype)
            passed = np.broadcast_to(COMPARISONS[operator](left, right), rows.count)
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
class Logic(Node):
    """`and` or `or` between two or more conditions."""

    operator: str
    operands: tuple[Node, ...]

    @property
    def kind(self) -> Kind:
        """A truth."""
        return Kind.TRUTH

    def evaluate(self, rows: Rows) -> NDArray[Any]:
        """Work out each condition only in the rows that those before it have not settled."""
        settling = self.operator == "or"  # one true settles an `or`, one false an `and`
        result = np.full(rows.count, not settling)
        unsettled = np.arange(rows.count)
        for operand in self.operands:
            settled = operand.truths(rows) == settling
            result[unsettled[settled]] = settling
            unsettled = unsettled[~settled]
            rows = rows.only(~settled)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Not(Node):
    """The opposite of a condition."""

    operand: Node

    @property
    def kind(self) -> Kind:
        """A truth."""
        return Kind.TRUTH

    def evaluate(self, rows: Rows) -> NDArray[Any]:
        """Turn each truth around."""
        return ~self.operand.truths(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Where(Node):
    """One value where a condition holds, another where it does not."""

    condition: Node
    chosen: Node
    otherwise: Node

    @property
    def kind(self) -> Kind:
        """A truth if both branches are; a number if one of them is."""
        kinds = {self.chosen.kind, self.otherwise.kind}
        if kinds == {Kind.TRUTH}:
            return Kind.TRUTH
        return Kind.NUMBER if Kind.NUMBER in kinds else Kind.COLUMN

    def evaluate(self, rows: Rows) -> NDArray[Any]:
        """Work out each branch only in the rows that take it."""
        holds = self.condition.truths(rows)
        chosen, otherwise = rows.only(holds), rows.only(~holds)
        branches = [self.chosen.evaluate(chosen), self.otherwise.evaluate(otherwise)]
        if any(branch.dtype != np.bool_ for branch in branches):
            nodes = (self.chosen, self.otherwise)
            branches = [node.to_numbers(b) for node, b in zip(nodes, branches, strict=True)]
        result = np.empty(rows.count, dtype=branches[0].dtype)
        result[holds], result[~holds] = branches
        return result
