"""Formulas that people write: a small language that can compute and compare, and nothing else.

Decision rules and stated equations arrive as text, often in a file from someone else. Running such
text as Python could do anything to the machine. So its characters are checked (names in backticks
are masked, whatever could confuse a parser is refused), Python parses the rest without running it,
and the syntax tree is copied into nodes of our own. What has no copy here is refused, so additions
to Python's syntax are refused by default.

Values are arrays of float64, of bool, or of objects (text). True counts as 1 and false as 0 in
arithmetic; there is no reverse conversion. Each row is evaluated the way Python would: the right
side of `and` only for rows where the left side holds, and each branch of `where` only for the rows
that take it. So `where(balance > 0, log(balance), 0)` is safe, and a division by zero is an error
exactly when a row needs it.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from mutandis.errors import FormulaError, MissingValuesError, UnknownColumnError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

_LONGEST_TEXT = 4_000
_MOST_PARTS = 1_000
_DEEPEST = 200
_LARGEST_EXPONENT = 16
_MOST_DIGITS = 15
_SHOWN = 40  # characters of a formula in a message


Kind = Literal["number", "boolean", "text", "any"]
"""What a node evaluates to, as far as its text tells; a column may hold anything."""


class Excerpt(NamedTuple):
    """A piece of a formula's text, and its first character."""

    character: int
    text: str

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= _SHOWN else f"{self.text[: _SHOWN - 1]}…"
        return f"{shown!r} (character {self.character})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A column, a constant, or an operation on other nodes."""

    operation: str  # "column", "constant", "compare", "and", "or", "not", or a key of _APPLIED
    place: Excerpt
    operands: tuple[Node, ...] = ()
    value: Any = None  # the column's name, the constant, or the operators of a chain of comparisons

    @property
    def kind(self) -> Kind:
        """What it evaluates to; `where` gives booleans only if both branches do."""
        match self.operation:
            case "column":
                return "any"
            case "constant":
                return "text" if isinstance(self.value, str) else "number"
            case "compare" | "and" | "or" | "not":
                return "boolean"
            case "where":
                kinds = {branch.kind for branch in self.operands[1:]}
                mixed: Kind = "boolean" if kinds == {"boolean"} else "any"
                return "number" if "number" in kinds else mixed
        return "number"

    @property
    def number(self) -> float | None:
        """The number that is written out here, with or without a sign."""
        if self.operation == "constant":
            return self.value if isinstance(self.value, float) else None
        if self.operation in {"negative", "positive"}:
            (operand,) = self.operands
            if operand.operation == "constant" and operand.number is not None:
                return -operand.number if self.operation == "negative" else operand.number
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A checked formula over the columns of a table; build one with `Formula.parse`."""

    text: str
    names: tuple[str, ...]
    root: Node = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Formula:
        """Read a formula, or raise an error that names the first piece outside the language."""
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
            reader = _Reader(text, masked, quoted)
            root = reader.read(ast.parse(masked, mode="eval").body)
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
        return cls(text=text, names=tuple(reader.names), root=root)

    def __reduce__(self) -> tuple[Any, ...]:
        # a formula travels as text and is checked again where it arrives
        return Formula.parse, (self.text,)

    @property
    def kind(self) -> Kind:
        """Whether it gives numbers or booleans, as far as the text alone tells."""
        return self.root.kind

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
        rows = _Rows(bound, lengths.pop())
        values = _evaluate(self.root, rows)
        if values.dtype == np.object_:
            values = _as_numbers(self.root, values)
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
            pass  # an integer beyond float64, refused below without the number
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


# --- evaluation -----------------------------------------------------------------------------------


def _round(values: NDArray[np.float64], digits: float = 0) -> NDArray[np.float64]:
    rounded = np.round(values, int(digits))
    # numpy scales up first; a number too large for that has no decimals to round off
    return np.where(np.isfinite(rounded), rounded, values)


FUNCTIONS: Mapping[str, tuple[int, int | None, Callable[..., NDArray[Any]]]] = {
    "abs": (1, 1, np.abs),
    "exp": (1, 1, np.exp),
    "log": (1, 1, np.log),
    "max": (2, None, lambda *values: reduce(np.maximum, values)),
    "min": (2, None, lambda *values: reduce(np.minimum, values)),
    "round": (1, 2, _round),
    "sqrt": (1, 1, np.sqrt),
    "where": (3, 3, np.where),
}
"""The functions of the language, with the fewest and the most arguments."""

_OPERATORS: Mapping[type[ast.AST], tuple[str, Callable[..., NDArray[Any]]]] = {
    ast.USub: ("negative", np.negative),
    ast.UAdd: ("positive", np.positive),
    ast.Add: ("+", np.add),
    ast.Sub: ("-", np.subtract),
    ast.Mult: ("*", np.multiply),
    ast.Div: ("/", np.divide),
    ast.Pow: ("**", np.power),
    ast.Not: ("not", np.logical_not),
    ast.And: ("and", np.logical_and),
    ast.Or: ("or", np.logical_or),
    ast.Eq: ("==", np.equal),
    ast.NotEq: ("!=", np.not_equal),
    ast.Lt: ("<", np.less),
    ast.LtE: ("<=", np.less_equal),
    ast.Gt: (">", np.greater),
    ast.GtE: (">=", np.greater_equal),
}
_APPLIED = {**dict(_OPERATORS.values()), **{name: each[2] for name, each in FUNCTIONS.items()}}
_EQUALITY = frozenset({"==", "!="})


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that a node is evaluated for: all of them, or those that got this far."""

    columns: Mapping[str, NDArray[Any]]
    count: int
    chosen: NDArray[np.intp] | None = None

    def column(self, name: str) -> NDArray[Any]:
        values = self.columns[name]
        return values if self.chosen is None else values[self.chosen]

    def only(self, mask: NDArray[np.bool_]) -> _Rows:
        if mask.all():
            return self
        chosen = np.flatnonzero(mask) if self.chosen is None else self.chosen[mask]
        return _Rows(self.columns, len(chosen), chosen)


def _evaluate(node: Node, rows: _Rows) -> NDArray[Any]:
    """Return one value per row, or a single one for all of them."""
    match node.operation:
        case "column":
            return rows.column(node.value)
        case "constant":
            kind: Any = np.object_ if isinstance(node.value, str) else np.float64
            return np.array(node.value, dtype=kind)
        case "not":
            return ~_booleans(node.operands[0], rows)
    of_rows = {"compare": _compare, "and": _connect, "or": _connect, "where": _choose}
    return of_rows.get(node.operation, _compute)(node, rows)


def _compute(node: Node, rows: _Rows) -> NDArray[Any]:
    """Apply an operation to numbers; a result that is not a finite number is an error."""
    values = [_as_numbers(operand, _evaluate(operand, rows)) for operand in node.operands]
    with np.errstate(all="ignore"):
        result = np.asarray(_APPLIED[node.operation](*values))
    finite = np.broadcast_to(np.isfinite(result), rows.count)
    if not finite.all():
        raise FormulaError(
            f"{node.place} has no finite result in {rows.count - np.count_nonzero(finite)} "
            f"of {rows.count} rows (a division by zero, a logarithm or root outside its "
            "range, or too large a number). Keep these rows out of it, as in "
            "`where(balance > 0, log(balance), 0)`."
        )
    return result


def _as_numbers(node: Node, values: NDArray[Any]) -> NDArray[np.float64]:
    if values.dtype == np.object_:
        raise FormulaError(
            f"{node.place} is text where a number is needed. Text can only be compared by == or !=."
        )
    return values.astype(np.float64, copy=False)


def _booleans(node: Node, rows: _Rows) -> NDArray[np.bool_]:
    values = _evaluate(node, rows)
    if values.dtype != np.bool_:
        raise _not_a_boolean(node.place)
    return np.broadcast_to(values, rows.count)


def _not_a_boolean(place: Excerpt) -> FormulaError:
    return FormulaError(
        f"{place} is neither true nor false, as and, or, not and where(condition, …) need it. "
        "Compare it with something, as in `salary > 0`."
    )


def _compare(node: Node, rows: _Rows) -> NDArray[np.bool_]:
    """Compare along a chain, each link only in the rows where all before it hold."""
    result = np.zeros(rows.count, dtype=np.bool_)
    holding = np.arange(rows.count)
    left = _evaluate(node.operands[0], rows)
    for position, operator in enumerate(node.value):
        right = _evaluate(node.operands[position + 1], rows)
        _check_link(node, position, left.dtype == np.object_, right.dtype == np.object_)
        passed = np.broadcast_to(_APPLIED[operator](left, right), rows.count)
        holding = holding[passed]
        rows = rows.only(passed)
        left = right[passed] if right.ndim else right
    result[holding] = True
    return result


def _check_link(node: Node, position: int, left_is_text: bool, right_is_text: bool) -> None:  # noqa: FBT001
    """Refuse to compare text with numbers, or to order text."""
    left, right = (operand.place for operand in node.operands[position : position + 2])
    if left_is_text != right_is_text:
        text, other = (left, right) if left_is_text else (right, left)
        raise FormulaError(
            f"{text} is text and is compared with {other}, which is not. "
            "Compare text with text in quotes, and numbers with numbers."
        )
    if left_is_text and node.value[position] not in _EQUALITY:
        raise FormulaError(
            f"{left} and {right} are text and are put in order by {node.value[position]}. "
            "Text can only be compared by == or !=."
        )


def _connect(node: Node, rows: _Rows) -> NDArray[np.bool_]:
    """Evaluate each condition only in the rows that those before it have not settled."""
    settling = node.operation == "or"  # one true settles an `or`, one false an `and`
    result = np.full(rows.count, not settling)
    unsettled = np.arange(rows.count)
    for operand in node.operands:
        settled = _booleans(operand, rows) == settling
        result[unsettled[settled]] = settling
        unsettled = unsettled[~settled]
        rows = rows.only(~settled)
    return result


def _choose(node: Node, rows: _Rows) -> NDArray[Any]:
    """Evaluate each branch only in the rows that take it."""
    condition, *branches = node.operands
    holds = _booleans(condition, rows)
    values = [
        _evaluate(branch, rows.only(taken))
        for branch, taken in zip(branches, (holds, ~holds), strict=True)
    ]
    if any(part.dtype != np.bool_ for part in values):
        values = [_as_numbers(*pair) for pair in zip(branches, values, strict=True)]
    result = np.empty(rows.count, dtype=values[0].dtype)
    result[holds], result[~holds] = values
    return result


# --- reading --------------------------------------------------------------------------------------

_ALLOWED = (
    "Allowed are column names (in `backticks` if they hold spaces or other signs), decimal "
    'numbers, + - * / **, comparisons, and, or, not, "text" next to == or !=, and the functions '
    f"{', '.join(FUNCTIONS)}."
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
    """Replace each name in backticks by underscores, and record the name by its position."""
    # by its position, not by its spelling: no plain name can be taken for one
    masked: list[str] = []
    quoted: dict[_Span, str] = {}
    previous = "space"
    for token in _TOKEN.finditer(text):
        kind, found = str(token.lastgroup), token.group()
        place = Excerpt(token.start() + 1, found)
        _check_token(kind, place)
        if kind in _OPERANDS and previous in _OPERANDS:
            raise FormulaError(
                f"{place} runs into the name, text or number before it. Put an operator between "
                f"them; text has no letter before its quotes, and numbers are decimal. {_ALLOWED}"
            )
        if kind == "quoted":
            quoted[token.span()] = found[1:-1].replace("``", "`")
            found = "_" * len(found)
        masked.append(" " if kind == "space" else found)
        previous = kind
    return "".join(masked), quoted


def _check_token(kind: str, place: Excerpt) -> None:
    found = place.text
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


class _Reader:
    """Copies a syntax tree into nodes, and keeps the column names in it."""

    def __init__(self, text: str, masked: str, quoted: Mapping[_Span, str]) -> None:
        self.names: dict[str, None] = {}  # a dict keeps the order of first appearance
        self._text = text
        self._bytes = masked.encode()
        self._quoted = quoted
        self._parts = 0
        self._depth = 0

    def read(self, node: ast.expr) -> Node:
        self._parts += 1
        self._depth += 1
        if self._parts > _MOST_PARTS or self._depth > _DEEPEST:
            raise _too_large()
        place = self._place(node)
        if type(node) not in _READERS:
            raise _refused(node, place)
        found = _READERS[type(node)](self, node, place)
        self._depth -= 1
        return found

    def operated(self, node: ast.UnaryOp | ast.BinOp | ast.BoolOp, place: Excerpt) -> Node:
        operation = _operation(node.op, place)
        read = self._condition if operation in _LOGIC else self.read
        match node:
            case ast.UnaryOp():
                operands = [node.operand]
            case ast.BinOp():
                operands = [node.left, node.right]
            case ast.BoolOp():
                operands = node.values
        found = tuple(map(read, operands))
        if operation == "**":
            _check_exponent(found[1])
        return Node(operation=operation, place=place, operands=found)

    def leaf(self, node: ast.Name | ast.Constant, place: Excerpt) -> Node:
        if isinstance(node, ast.Constant):
            return Node(operation="constant", place=place, value=_number(node.value, place))
        name = self._quoted.get(self._span(node))
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
        return Node(operation="column", place=place, value=name)

    def call(self, node: ast.Call, place: Excerpt) -> Node:
        # the spelling in the text, not Python's reading of it: no look-alike letters
        name = self._place(node.func).text
        if not isinstance(node.func, ast.Name) or name not in FUNCTIONS:
            raise FormulaError(
                f"{place} calls something that is not a function of the formula language. "
                f"{_ALLOWED}"
            )
        fewest, most, _ = FUNCTIONS[name]
        if node.keywords or not fewest <= len(node.args) <= (most or len(node.args)):
            numbers = f"{fewest}" if fewest == most else f"{fewest} or {most or 'more'}"
            raise FormulaError(
                f"{place}: {name} takes {numbers} argument{'' if most == 1 else 's'} without "
                f"names, separated by commas. {_ALLOWED}"
            )
        first, *rest = node.args
        condition = self._condition(first) if name == "where" else self.read(first)
        operands = (condition, *map(self.read, rest))
        if name == "round" and rest:
            _check_digits(operands[1], place)
        return Node(operation=name, place=place, operands=operands)

    def comparison(self, node: ast.Compare, place: Excerpt) -> Node:
        operators = tuple(_operation(operator, place) for operator in node.ops)
        operands = tuple(
            self._compared(operand, near=operators[max(position - 1, 0) : position + 1])
            for position, operand in enumerate([node.left, *node.comparators])
        )
        return Node(operation="compare", place=place, operands=operands, value=operators)

    def _compared(self, node: ast.expr, *, near: tuple[str, ...]) -> Node:
        """Read an operand of a comparison: here, and only here, text is allowed."""
        value = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(value, str) or not set(near) <= _EQUALITY:
            return self.read(node)
        place = self._place(node)
        if place.text[1:-1] != value:
            raise FormulaError(f"{place} is more than one text. Join them into one.")
        self._parts += 1
        return Node(operation="constant", place=place, value=value)

    def _condition(self, node: ast.expr) -> Node:
        condition = self.read(node)
        if condition.kind == "number":
            raise _not_a_boolean(condition.place)
        return condition

    def _place(self, node: ast.expr) -> Excerpt:
        start, end = self._span(node)
        return Excerpt(start + 1, self._text[start:end])

    def _span(self, node: ast.expr) -> _Span:
        """Turn Python's offsets, which count bytes, into ones that count characters."""
        start, end = node.col_offset, node.end_col_offset
        return len(self._bytes[:start].decode()), len(self._bytes[:end].decode())


_READERS: Mapping[type[ast.expr], Callable[[_Reader, Any, Excerpt], Node]] = {
    ast.Name: _Reader.leaf,
    ast.Constant: _Reader.leaf,
    ast.UnaryOp: _Reader.operated,
    ast.BinOp: _Reader.operated,
    ast.BoolOp: _Reader.operated,
    ast.Compare: _Reader.comparison,
    ast.Call: _Reader.call,
}


def _operation(operator: ast.AST, place: Excerpt) -> str:
    if type(operator) not in _OPERATORS:
        raise _refused(operator, place)
    return _OPERATORS[type(operator)][0]


def _refused(form: ast.AST, place: Excerpt) -> FormulaError:
    name = _FORMS.get(type(form), f"form {type(form).__name__}")
    return FormulaError(f"{place}: the {name} is not part of the formula language. {_ALLOWED}")


def _number(value: object, place: Excerpt) -> float:
    if isinstance(value, str):
        raise FormulaError(f"{place} is text, which is allowed only next to == or !=. {_ALLOWED}")
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
    return number


def _check_exponent(exponent: Node) -> None:
    if exponent.number is None or abs(exponent.number) > _LARGEST_EXPONENT:
        raise FormulaError(
            f"The exponent {exponent.place} is not a number from -{_LARGEST_EXPONENT} to "
            f"{_LARGEST_EXPONENT}. Write it out as one, or use exp and log."
        )


def _check_digits(digits: Node, place: Excerpt) -> None:
    found = digits.number
    if found is None or not found.is_integer() or abs(found) > _MOST_DIGITS:
        raise FormulaError(
            f"{place}: the second argument of round is a whole number of digits from "
            f"-{_MOST_DIGITS} to {_MOST_DIGITS}, written out."
        )
