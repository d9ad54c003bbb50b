"""Formulas that people write: a small language that can compute and compare, and nothing else.

Decision rules and expert-stated structural equations arrive as text, often in a file from someone
else. Running such text as Python could do anything to the machine. So it is read in three steps:
the characters are checked (names in backticks are masked, whatever could confuse a parser is
refused), Python parses the rest without running it, and the syntax tree is copied node by node into
a tree of our own (`expression.py`). A node without a reader here is refused, so additions to
Python's syntax are refused by default.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data import expression as tree
from mutandis.data.expression import Excerpt, Expression, ValueKind
from mutandis.errors import FormulaError, MissingValuesError, UnknownColumnError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

_LONGEST_TEXT = 4_000
_MOST_PARTS = 1_000
_DEEPEST = 200
_LARGEST_EXPONENT = 16
_MOST_DIGITS = 15

_ALLOWED = (
    "Allowed are column names (in `backticks` if they hold spaces or other signs), decimal "
    'numbers, + - * / **, comparisons, and, or, not, "text" beside == or !=, and the functions '
    f"{', '.join(tree.FUNCTIONS)}."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A checked formula over the columns of a table; build one with `Formula.parse`."""

    # The language is what `_ALLOWED` says. True counts as 1 and false as 0 in arithmetic, so
    # 3 * (Gender == 1) is a number; there is no reverse conversion: `salary and balance` is an
    # error. Each row is evaluated the way Python would (`expression.py`).

    text: str
    names: tuple[str, ...]
    root: Expression = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Formula:
        """Read a formula, or say which part of it is not in the language and where."""
        if not isinstance(text, str):
            raise FormulaError(f"A formula is text, not {type(text).__name__}. {_ALLOWED}")
        if len(text) > _LONGEST_TEXT:
            raise FormulaError(
                f"The formula has {len(text)} characters; at most {_LONGEST_TEXT} are read. "
                "Compute parts of it into columns of the table first."
            )
        text = text.strip()
        if not text:
            raise FormulaError(f"The formula is empty. {_ALLOWED}")
        masked, quoted = _mask_quoted_names(text)
        try:
            builder = _TreeBuilder(text, masked, quoted)
            root = builder.read(ast.parse(masked, mode="eval").body)
        except SyntaxError as error:
            raise FormulaError(
                f"The formula cannot be read near character {error.offset or 1}: something is "
                f"missing or out of place there. Equality is written ==. {_ALLOWED}"
            ) from None
        except UnicodeError:
            raise FormulaError(
                "The formula holds half a character (a lone surrogate). Check how the text was "
                "read."
            ) from None
        except (RecursionError, MemoryError):
            raise _too_large() from None
        return cls(text=text, names=tuple(builder.names), root=root)

    def __reduce__(self) -> tuple[Any, ...]:
        # a formula travels as text and is checked again where it arrives
        return Formula.parse, (self.text,)

    @property
    def kind(self) -> ValueKind:
        """Whether it gives numbers or booleans, as far as the text alone tells."""
        return tree.kind_of(self.root)

    def evaluate(
        self, columns: Mapping[str, NDArray[Any]], *, length: int | None = None
    ) -> NDArray[Any]:
        """Evaluate the formula for every row: an array of float64, or of bool."""
        unknown = [name for name in self.names if name not in columns]
        if unknown:
            raise UnknownColumnError(
                f"The formula reads {', '.join(map(repr, unknown))}, which the {len(columns)} "
                "columns at hand do not include. Correct the names, or add the columns."
            )
        bound = {name: _bind(name, columns[name]) for name in self.names}
        lengths = {len(values) for values in (bound or columns).values()}
        lengths |= {length} if length is not None else set()
        if len(lengths) != 1:
            raise FormulaError(
                f"The formula's columns have the lengths {sorted(lengths)}. "
                "Give columns of one length, or length= where there are none."
            )
        rows = tree.Rows(bound, lengths.pop())
        values = self.root.evaluate(rows)
        if values.dtype == np.object_:
            values = self.root.to_numbers(values)
        return np.array(np.broadcast_to(values, rows.count))


def _bind(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Read a column as numbers, booleans or text, without gaps."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise FormulaError(f"Column {name!r} has {array.ndim} dimensions; a column has one.")
    if array.dtype.kind in "OUT":
        array = _bind_objects(name, array.astype(np.object_))
    if array.dtype.kind in "iuf":
        array = array.astype(np.float64, copy=False)
        _refuse_gaps(name, int(np.count_nonzero(~np.isfinite(array))))
    elif array.dtype.kind not in "bO":
        raise _unusable(name, str(array.dtype))
    return array


def _bind_objects(name: str, array: NDArray[Any]) -> NDArray[Any]:
    import pandas as pd

    _refuse_gaps(name, int(np.count_nonzero(pd.isna(array))))
    found = pd.api.types.infer_dtype(array, skipna=False)
    if found in {"string", "empty"}:
        return array
    if found == "boolean":
        return array.astype(np.bool_)
    if found in {"integer", "floating", "mixed-integer-float", "decimal"}:
        try:
            return array.astype(np.float64)
        except OverflowError:
            pass  # an integer beyond float64, said below without the number
    raise _unusable(name, found)


def _refuse_gaps(name: str, count: int) -> None:
    if count:
        raise MissingValuesError(
            f"Column {name!r} has {count} missing or infinite values, and the formula needs it "
            "in every row. Complete them, or leave these rows out."
        )


def _unusable(name: str, found: str) -> FormulaError:
    return FormulaError(
        f"Column {name!r} holds values of type {found}. "
        "Formulas read numbers, booleans and text: convert it to one of these."
    )


def _too_large() -> FormulaError:
    return FormulaError(
        f"The formula is too large: at most {_MOST_PARTS} parts, nested {_DEEPEST} deep. "
        "Compute parts of it into columns of the table first."
    )


# What is checked before Python's parser sees it. Backticks are not Python at all; text and numbers
# are restricted to forms on which no version of Python warns.
_TOKEN = re.compile(
    r"""
    (?P<quoted>`(?:[^`]|``)*`)
  | (?P<text>"[^"\\\r\n\0]*"|'[^'\\\r\n\0]*')
  | (?P<number>(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
  | (?P<word>[^\W\d]\w*)
  | (?P<space>[ \t\r\n])
  | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_Span = tuple[int, int]
_OPERANDS = frozenset({"quoted", "text", "number", "word"})
_LOGIC = frozenset({"and", "or", "not"})


def _mask_quoted_names(text: str) -> tuple[str, dict[_Span, str]]:
    """Put underscores in place of each name in backticks, and record the name by its position."""
    # by its position, not by its spelling: no plain name can be taken for one
    masked: list[str] = []
    quoted: dict[_Span, str] = {}
    previous = "space"
    for token in _TOKEN.finditer(text):
        kind, found = str(token.lastgroup), token.group()
        place = Excerpt(token.start() + 1, found)
        _check_token(kind, found, place)
        if kind in _OPERANDS and previous in _OPERANDS:
            raise FormulaError(
                f"{place} runs into what stands before it. Put an operator between them; text has "
                f"no letter before its quotes, and numbers are decimal. {_ALLOWED}"
            )
        if kind == "quoted":
            quoted[token.span()] = found[1:-1].replace("``", "`")
            found = "_" * len(found)
        masked.append(" " if kind == "space" else found)
        previous = kind
    return "".join(masked), quoted


def _check_token(kind: str, found: str, place: Excerpt) -> None:
    if kind == "word" and keyword.iskeyword(found) and found not in _LOGIC:
        raise FormulaError(
            f"{place} is a reserved word. A column of that name goes in backticks: `{found}`. "
            f"{_ALLOWED}"
        )
    if kind == "quoted" and len(found) == 2:
        raise FormulaError(f"{place} names no column: there is nothing between the backticks.")
    if kind == "sign" and found in "\"'`":
        raise FormulaError(
            f"{place} opens a quotation that does not close in the same line, or that holds a "
            "backslash. Text is taken as it is written, without escapes."
        )
    if kind == "sign" and (found in "#\\" or not found.isprintable()):
        raise FormulaError(f"{place} is not a sign of the formula language. {_ALLOWED}")


_ARITHMETIC: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
}
_SIGNS: Mapping[type[ast.unaryop], str] = {ast.USub: "negative", ast.UAdd: "positive"}
_COMPARISONS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
# The forms that people do write, by the names they know; any other is called by Python's name.
_FORMS: Mapping[type[ast.AST], str] = {
    ast.Attribute: "attribute access (a name after a dot)",
    ast.Subscript: "subscript (square brackets)",
    ast.Starred: "starred argument",
    ast.NamedExpr: "assignment",
    ast.Tuple: "list of values",
    ast.List: "list of values",
    ast.FloorDiv: "operator //",
    ast.Mod: "operator %",
    ast.MatMult: "operator @",
    ast.BitAnd: "operator & (write `and`)",
    ast.BitOr: "operator | (write `or`)",
    ast.Invert: "operator ~ (write `not`)",
    ast.BitXor: "operator ^ (a power is written **)",
}


class _TreeBuilder:
    """Copies a syntax tree into our own, node by node, and keeps the column names in it."""

    def __init__(self, text: str, masked: str, quoted: Mapping[_Span, str]) -> None:
        self.names: dict[str, None] = {}  # a dict keeps the order of first appearance
        self._text = text
        self._bytes = masked.encode()
        self._quoted = quoted
        self._parts = 0
        self._depth = 0

    def read(self, node: ast.expr) -> Expression:
        self._parts += 1
        self._depth += 1
        if self._parts > _MOST_PARTS or self._depth > _DEEPEST:
            raise _too_large()
        reader = _READERS.get(type(node))
        if reader is None:
            raise self._refused(node, node)
        result = reader(self, node)
        self._depth -= 1
        return result

    def read_name(self, node: ast.Name) -> Expression:
        place, name = self._place(node), self._quoted.get(self._span(node))
        if name is None:
            name = node.id
            if name != place.text:
                raise FormulaError(
                    f"{place} would be read as {name!r}. Write the name in backticks to keep it "
                    "as it is."
                )
            if name.startswith("__"):
                raise FormulaError(
                    f"{place} begins with two underscores. A column of that name goes in "
                    f"backticks: `{name}`. {_ALLOWED}"
                )
        self.names.setdefault(name)
        return tree.ColumnName(place=place, name=name)

    def read_constant(self, node: ast.Constant) -> Expression:
        place, value = self._place(node), node.value
        if isinstance(value, str):
            raise FormulaError(
                f"{place} is text, which has a place only beside == or !=. {_ALLOWED}"
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FormulaError(f"{place} is not a decimal number. {_ALLOWED}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise FormulaError(
                f"{place} is too large a number. The largest are near 1.8e308; "
                "rescale the columns it is compared with."
            )
        return tree.Constant(place=place, value=number)

    def read_unary(self, node: ast.UnaryOp) -> Expression:
        if isinstance(node.op, ast.Not):
            condition = self._condition(node.operand)
            return tree.Logic(place=self._place(node), operator="not", operands=(condition,))
        if type(node.op) not in _SIGNS:
            raise self._refused(node.op, node)
        operand = self.read(node.operand)
        return tree.Numeric(
            place=self._place(node), operation=_SIGNS[type(node.op)], operands=(operand,)
        )

    def read_arithmetic(self, node: ast.BinOp) -> Expression:
        operation = _ARITHMETIC.get(type(node.op))
        if operation is None:
            raise self._refused(node.op, node)
        operands = (self.read(node.left), self.read(node.right))
        if operation == "**":
            exponent = _constant(operands[1])
            if exponent is None or abs(exponent) > _LARGEST_EXPONENT:
                raise FormulaError(
                    f"The exponent {operands[1].place} is not a number from "
                    f"-{_LARGEST_EXPONENT} to {_LARGEST_EXPONENT}. Write it out as one, "
                    "or use exp and log."
                )
        return tree.Numeric(place=self._place(node), operation=operation, operands=operands)

    def read_comparison(self, node: ast.Compare) -> Expression:
        for operator in node.ops:
            if type(operator) not in _COMPARISONS:
                raise self._refused(operator, node)
        operators = tuple(_COMPARISONS[type(operator)] for operator in node.ops)
        operands = [node.left, *node.comparators]
        return tree.ComparisonChain(
            place=self._place(node),
            operators=operators,
            operands=tuple(
                self._compared(operand, beside=operators[max(place - 1, 0) : place + 1])
                for place, operand in enumerate(operands)
            ),
        )

    def read_logic(self, node: ast.BoolOp) -> Expression:
        return tree.Logic(
            place=self._place(node),
            operator="and" if isinstance(node.op, ast.And) else "or",
            operands=tuple(self._condition(value) for value in node.values),
        )

    def read_call(self, node: ast.Call) -> Expression:
        name = self._function_name(node)
        place, (fewest, most, _) = self._place(node), tree.FUNCTIONS[name]
        if node.keywords or not fewest <= len(node.args) <= (most or len(node.args)):
            numbers = f"{fewest}" if fewest == most else f"{fewest} or {most or 'more'}"
            arguments = "argument" if most == 1 else "arguments"
            raise FormulaError(
                f"{place}: {name} takes {numbers} {arguments} without names, separated by commas. "
                f"{_ALLOWED}"
            )
        if name == "where":
            condition, *branches = node.args
            operands = (self._condition(condition), *(self.read(branch) for branch in branches))
            return tree.Where(place=place, operands=operands)
        operands = tuple(self.read(argument) for argument in node.args)
        if name == "round":
            operands = self._with_digits(operands, place)
        return tree.Numeric(place=place, operation=name, operands=operands)

    def _function_name(self, node: ast.Call) -> str:
        function = node.func
        # the spelling in the text, not Python's reading of it: no look-alike letters
        spelled = self._place(function).text
        if not isinstance(function, ast.Name) or spelled not in tree.FUNCTIONS:
            raise FormulaError(
                f"{self._place(node)} calls something that is not a function of the formula "
                f"language. {_ALLOWED}"
            )
        return spelled

    def _with_digits(
        self, operands: tuple[Expression, ...], place: Excerpt
    ) -> tuple[Expression, ...]:
        if len(operands) == 1:
            return (*operands, tree.Constant(place=place, value=0.0))
        digits = _constant(operands[1])
        if digits is None or not digits.is_integer() or abs(digits) > _MOST_DIGITS:
            raise FormulaError(
                f"{place}: the second argument of round is a whole number of digits from "
                f"-{_MOST_DIGITS} to {_MOST_DIGITS}, written out."
            )
        return operands

    def _condition(self, node: ast.expr) -> Expression:
        condition = self.read(node)
        if tree.kind_of(condition) is ValueKind.NUMBER:
            raise tree.not_a_boolean(condition.place)
        return condition

    def _compared(self, node: ast.expr, *, beside: tuple[str, ...]) -> Expression:
        """Read an operand of a comparison: here, and only here, text may stand."""
        value = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(value, str) or not set(beside) <= {"==", "!="}:
            return self.read(node)
        place = self._place(node)
        if place.text[1:-1] != value:
            raise FormulaError(f"{place} is more than one text. Join them into one.")
        self._parts += 1
        return tree.Constant(place=place, value=value)

    def _refused(self, form: ast.AST, node: ast.expr) -> FormulaError:
        name = _FORMS.get(type(form), f"form {type(form).__name__}")
        return FormulaError(
            f"{self._place(node)}: the {name} is not part of the formula language. {_ALLOWED}"
        )

    def _place(self, node: ast.expr) -> Excerpt:
        start, end = self._span(node)
        return Excerpt(start + 1, self._text[start:end])

    def _span(self, node: ast.expr) -> _Span:
        """Turn Python's offsets, which count bytes, into ones that count characters."""
        start, end = node.col_offset, node.end_col_offset
        return len(self._bytes[:start].decode()), len(self._bytes[:end].decode())


_READERS: Mapping[type[ast.expr], Callable[[_TreeBuilder, Any], Expression]] = {
    ast.Name: _TreeBuilder.read_name,
    ast.Constant: _TreeBuilder.read_constant,
    ast.UnaryOp: _TreeBuilder.read_unary,
    ast.BinOp: _TreeBuilder.read_arithmetic,
    ast.Compare: _TreeBuilder.read_comparison,
    ast.BoolOp: _TreeBuilder.read_logic,
    ast.Call: _TreeBuilder.read_call,
}


def _constant(node: Expression) -> float | None:
    """Give the value of a number with or without a sign; None for anything else."""
    if isinstance(node, tree.Constant) and isinstance(node.value, float):
        return node.value
    if isinstance(node, tree.Numeric) and node.operation in _SIGNS.values():
        operand = node.operands[0]
        value = _constant(operand) if isinstance(operand, tree.Constant) else None
        return -value if value is not None and node.operation == "negative" else value
    return None
