"""The formula language: what it computes, and what it refuses."""

from __future__ import annotations

import copy
import math
import pickle
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data.formula import Formula
from mutandis.errors import FormulaError, MissingValuesError

if TYPE_CHECKING:
    from numpy.typing import NDArray


X = np.array([1.0, 4.0, -2.0])
Y = np.array([3.0, 0.5, -2.0])
FLAG = np.array([True, False, True])
JOB = np.array(["cook", "clerk", "cook"], dtype=object)
COLUMNS = {"x": X, "y": Y, "flag": FLAG, "job": JOB}


def value(text: str, **columns: Any) -> list[Any]:
    result: list[Any] = Formula.parse(text).evaluate({**COLUMNS, **columns}).tolist()
    return result


# --- what it computes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-x ** 2", [-1.0, -16.0, -4.0]),
        ("x ** -1", [1.0, 0.25, -0.5]),
        ("2 ** 3 / 4 - +1", [1.0, 1.0, 1.0]),
        ("1_000 * .5e1", [5000.0, 5000.0, 5000.0]),
        ("abs(x) - max(x, y, 0)", [-2.0, 0.0, 2.0]),
        ("log(exp(y))", [3.0, 0.5, -2.0]),
        ("round(y)", [3.0, 0.0, -2.0]),  # half to even
        ("round(x / 3, 2)", [0.33, 1.33, -0.67]),
        ("round(1234 * x, -3)", [1000.0, 5000.0, -2000.0]),
        ("round(1e300, 15)", [1e300] * 3),
        ("3 * (job == 'cook') + flag", [4.0, 0.0, 4.0]),
        ("where(flag, x > 1, 2)", [0.0, 2.0, 0.0]),
    ],
)
def test_numbers(text: str, expected: list[float]) -> None:
    result = Formula.parse(text).evaluate(COLUMNS)
    assert result.dtype == np.float64
    assert result.tolist() == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-3 < x <= 1", [True, False, True]),
        ("-3 < x <= 1 != y", [True, False, True]),
        ("x > 3 or y > 2 and flag", [True, True, False]),
        ("not x > 3 or flag", [True, False, True]),
        ("flag == 1", [True, False, True]),
        ("(x > 3) == flag", [False, False, False]),
        ("'cook' != job", [False, True, False]),
        ('"a" == "b"', [False, False, False]),
        ("where(x > 0, flag, y < 0)", [True, False, True]),
    ],
)
def test_truths(text: str, expected: list[bool]) -> None:
    result = Formula.parse(text).evaluate(COLUMNS)
    assert result.dtype == np.bool_
    assert result.tolist() == expected


def test_text_is_taken_as_written() -> None:
    jobs = np.array(["it's", 'the "boss"', "a`b`c", "# {x}"], dtype=object)
    for number, text in enumerate(['"it\'s"', "'the \"boss\"'", "'a`b`c'", "'# {x}'"]):
        assert value(f"job == {text}", job=jobs) == [place == number for place in range(4)]


def test_names_in_backticks() -> None:
    formula = Formula.parse("`Annual Salary` > 3 * `class` + `a``b` - ß_ * `__x__` + `Größe.1`")
    assert formula.names == ("Annual Salary", "class", "a`b", "ß_", "__x__", "Größe.1")
    columns = {name: np.array([float(place)]) for place, name in enumerate(formula.names)}
    columns["Annual Salary"] = np.array([0.5])
    # 3·1 + 2 − 3·4 + 5 = −2
    assert formula.evaluate(columns).tolist() == [True]
    columns["Annual Salary"] = np.array([-2.0])
    assert formula.evaluate(columns).tolist() == [False]


def test_nothing_grows_together_with_a_name_in_backticks() -> None:
    # signs that Python takes for parts of a name: a connector, a combining accent
    for text in ("`a`\u203fb", "x\u203f`a`", "`a`\u0308"):
        with pytest.raises(FormulaError, match="would be read as"):
            Formula.parse(text)


def test_a_column_may_be_called_like_a_function() -> None:
    assert value("min(min, `abs`) + where", min=X, abs=Y, where=X) == [2.0, 4.5, -4.0]


def test_equal_text_makes_equal_formulas_and_the_tree_stays_out_of_sight() -> None:
    formula = Formula.parse("a + 1")
    assert formula == Formula.parse(" a + 1 ")
    assert formula != Formula.parse("a + 2")
    assert hash(formula) == hash(Formula.parse("a + 1"))
    assert repr(formula) == "Formula(text='a + 1', names=('a',))"


def test_a_formula_travels_as_text() -> None:
    long = Formula.parse(" + ".join(["x"] * 199))
    for twin in (pickle.loads(pickle.dumps(long)), copy.deepcopy(long)):  # noqa: S301 - ours
        assert twin == long
        assert twin.evaluate(COLUMNS).tolist() == [199.0, 796.0, -398.0]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a", "any"),
        ("a + 1", "number"),
        ("a < 1", "boolean"),
        ("not a", "boolean"),
        ("a or b", "boolean"),
        ("where(a, b, c)", "any"),
        ("where(a, b, 1)", "number"),
        ("where(a, b < 1, c < 1)", "boolean"),
        ("where(a, b < 1, c)", "any"),
    ],
)
def test_the_kind_follows_from_the_text(text: str, kind: str) -> None:
    assert Formula.parse(text).kind == kind


# --- rows are followed one by one -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("where(z != 0, 1 / z, -1)", [-1.0, 0.5, -0.25]),
        ("where(z <= 0, 0, log(z)) * 0", [0.0, 0.0, 0.0]),
        ("z != 0 and 1 / z > 0", [False, True, False]),
        ("z == 0 or 1 / z > 0", [True, True, False]),
        ("0 < z < 1 + 1 / z", [False, False, False]),
        ("where(z > 0, where(z != 2, 1 / (z - 2), z), 7)", [7.0, 2.0, 7.0]),
    ],
)
def test_a_guarded_operation_is_not_worked_out_where_it_is_not_needed(
    text: str, expected: list[Any]
) -> None:
    assert value(text, z=np.array([0.0, 2.0, -4.0])) == expected


def test_nested_branches_are_each_worked_out_once() -> None:
    text = "x"
    for _ in range(60):  # 2⁶⁰ evaluations, if each level asked twice
        text = f"where(x > 0, {text}, 0)"
    assert value(text) == [1.0, 4.0, 0.0]


def test_operands_are_checked_even_where_no_row_needs_them() -> None:
    with pytest.raises(FormulaError, match=r"'x' \(character 20\) is neither true nor false"):
        value("1 > 2 and (flag or x)")
    with pytest.raises(FormulaError, match=r"'job'.*is text"):
        value("where(x > 100, job, 1)")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1 / z", 1),
        ("z / z", 1),
        ("log(z)", 2),
        ("sqrt(z)", 1),
        ("z ** 0.5", 1),
        ("z ** -2", 1),
        ("exp(1000 * z)", 1),
        ("1e308 * z", 1),
        ("1 / 0", 3),
    ],
)
def test_a_result_that_is_not_finite_is_an_error_with_the_number_of_rows(
    text: str, rows: int
) -> None:
    with pytest.raises(FormulaError) as caught:
        value(f"0 < {text}", z=np.array([0.0, 2.0, -1.0]))
    assert f"no finite result in {rows} of 3 rows" in str(caught.value)
    assert f"{text!r} (character 5)" in str(caught.value)


# --- the columns ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        np.array([1, 0, 1], dtype=np.int8),
        np.array([1, 0, 1], dtype=np.uint64),
        np.array([1, 0, 1], dtype=np.float32),
        np.array([1, 0, 1], dtype=object),
        np.array([1.0, 0, np.float64(1)], dtype=object),
        np.array([Decimal(1), Decimal(0), Decimal(1)], dtype=object),
    ],
)
def test_numbers_of_any_type_are_read_as_float64(column: NDArray[Any]) -> None:
    assert value("2 * a", a=column) == [2.0, 0.0, 2.0]


@pytest.mark.parametrize(
    "column",
    [np.array(["u", "v", "u"]), np.array(["u", "v", "u"], dtype=np.dtypes.StringDType())],
)
def test_text_columns_of_any_type(column: NDArray[Any]) -> None:
    assert value("a == 'u'", a=column) == [True, False, True]


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.0, np.nan, np.inf]),
        np.array(["u", None, np.nan], dtype=object),
        np.array([True, None, None], dtype=object),
        np.array([1, None, np.nan], dtype=object),
        np.array([1, math.inf, -math.inf], dtype=object),
    ],
)
def test_missing_and_infinite_values_are_counted_not_guessed(column: NDArray[Any]) -> None:
    with pytest.raises(MissingValuesError, match="Column 'a' has 2 missing or infinite values"):
        value("a == 1", a=column)


@pytest.mark.parametrize(
    "column",
    [
        np.array(["2020-01-01"] * 3, dtype="datetime64[D]"),
        np.array([1 + 2j] * 3),
        np.array(["u", 1, 2], dtype=object),
        np.array([10**400, 1, 2], dtype=object),
        np.array([b"secret"] * 3),
        np.zeros((3, 1)),
    ],
)
def test_other_columns_are_refused_without_quoting_a_cell(column: NDArray[Any]) -> None:
    with pytest.raises(FormulaError, match="Column 'a'") as caught:
        value("a == 1", a=column)
    assert "secret" not in str(caught.value)
    assert "0000" not in str(caught.value)


def test_lengths_must_agree() -> None:
    with pytest.raises(FormulaError, match=r"lengths \[2, 3\]"):
        value("x + a", a=np.array([1.0, 2.0]))
    with pytest.raises(FormulaError, match=r"lengths \[3, 4\]"):
        Formula.parse("x").evaluate(COLUMNS, length=4)


def test_a_formula_of_constants_takes_its_length_from_the_table() -> None:
    assert value("2 + 1") == [3.0, 3.0, 3.0]
    assert Formula.parse("2 > 1").evaluate({}, length=2).tolist() == [True, True]
    assert Formula.parse("x > 1").evaluate({"x": np.array([])}).shape == (0,)
    with pytest.raises(FormulaError, match="length="):
        Formula.parse("2 > 1").evaluate({})


def test_the_result_is_a_copy() -> None:
    column = np.array([1.0, 2.0])
    result = Formula.parse("a").evaluate({"a": column})
    result[0] = 9.0
    assert column.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "text",
    ["x and flag", "flag or y", "not x", "where(x, 1, 2)", "job and flag", "x + 1 and flag"],
)
def test_a_number_is_no_truth(text: str) -> None:
    with pytest.raises(FormulaError, match="neither true nor false"):
        value(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("job + 1", "'job' .*is text where a number is needed"),
        ("abs(job)", "'job' .*is text where a number is needed"),
        ("job", "'job' .*is text where a number is needed"),
        ("where(flag, job, x)", "'job' .*is text where a number is needed"),
        ("where(flag, job, job)", "'job' .*is text where a number is needed"),
        ("job == 1", "'job' .*is text and is compared with '1'"),
        ("x == 'cook'", "'cook'.*is text and is compared with 'x'"),
        ("flag == 'cook'", "'cook'.*is text and is compared with 'flag'"),
        ("job < job", "put in order by <"),
    ],
)
def test_text_is_only_equal_or_different(text: str, message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        value(text)


def test_the_deepest_formulas_that_parse_can_also_be_evaluated() -> None:
    assert value("-" * 198 + "x") == X.tolist()
    assert value("x" + "+x" * 198) == (199 * X).tolist()
    assert value("not " * 198 + "flag") == FLAG.tolist()


NUMBERS = np.array([1.0, 4.0, -2.0])
TEXT = np.array(["cook", "clerk", "cook"], dtype=object)


@pytest.mark.parametrize(
    ("text", "found", "character"),
    [
        ("1 + x.real", "'x.real' (character 5): the attribute access", 5),
        ("().__class__", "attribute access", 1),
        ("'a'.upper() == x", "calls something", 1),
        ("__import__('os').system('ls')", "calls something", 1),
        ("eval(x)", "calls something", 1),
        ("(x)(y)", "calls something", 1),
        ("`abs`(x)", "calls something", 1),
        ("x > __builtins__", "two underscores", 5),
        ("__x", "two underscores", 1),
        ("x[0]", "subscript", 1),
        ("[x, y]", "list of values", 1),
        ("()", "list of values", 1),
        ("{x: y}", "form Dict", 1),
        ("2 * (x := 3)", "assignment", 6),
        ("abs(*x)", "starred", 5),
        ("lambda: x", "'lambda' (character 1) is a reserved word", 1),
        ("[a for a in x]", "reserved word", 4),
        ("x if flag else y", "reserved word", 3),
        ("True", "reserved word", 1),
        ("x == None", "reserved word", 6),
        ("class > 3", "in backticks: `class`", 1),
        ("...", "not a decimal number", 1),
        ("x // y", "operator //", 1),
        ("x % y", "operator %", 1),
        ("(x > 1) & (y > 1)", "write `and`", 1),
        ("(x > 1) | (y > 1)", "write `or`", 1),
        ("x ^ 2", "a power is written **", 1),
        ("~flag", "write `not`", 1),
        ("f'{x}' == job", "runs into", 2),
        ("b'x' == job", "runs into", 2),
        ("job == r'x'", "runs into", 9),
        ("job == 'a''b'", "runs into", 11),
        ("job == 'a' 'b'", "more than one text", 8),
        ('job == """a"""', "runs into", 10),
        ("1j * x", "runs into", 2),
        ("0x1F", "runs into", 2),
        ("1and x", "runs into", 2),
        ("x`a`", "runs into", 2),
        ("``", "nothing between", 1),
        ("`a", "does not close", 1),
        ("job == 'a", "does not close", 8),
        ("job == 'a\nb'", "does not close", 8),
        (r"job == 'a\n'", "holds a backslash", 8),
        ("x # > 3", "'#'", 3),
        ("x + \\\n y", "'\\\\'", 5),
        ("x\0y", "'\\x00'", 2),
        ("x\u00a0+ y", "'\\xa0'", 2),
        ("x\u202e+ y", "'\\u202e'", 2),
        ("'cook'", "allowed only next to", 1),
        ("job < 'cook'", "allowed only next to", 7),
        ("job == 'cook' < 'd'", "allowed only next to", 8),
        ("job == 'a' + 'b'", "allowed only next to", 8),
        ("abs('cook')", "allowed only next to", 5),
        ("x ** y", "exponent 'y' (character 6)", 6),
        ("9**9**9", "exponent '9**9' (character 4)", 4),
        ("x ** 17", "exponent '17'", 6),
        ("x ** -16.5", "exponent '-16.5'", 6),
        ("x ** (1 + 1)", "exponent '1 + 1'", 7),
        ("x ** -y", "exponent '-y'", 6),
        ("1e999 > x", "too large a number", 1),
        ("x < " + "1" * 3_900, "too large a number", 5),
        ("round(x, y)", "whole number of digits", 1),
        ("round(x, 16)", "whole number of digits", 1),
        ("round(x, 1, 2)", "round takes 1 or 2 arguments", 1),
        ("abs()", "abs takes 1 argument ", 1),
        ("where(flag, x)", "where takes 3 arguments", 1),
        ("abs(x=x)", "without names", 1),
        ("max(x, y, **x)", "without names", 1),
        ("flag and x + 1", "'x + 1' (character 10) is neither", 10),
        ("not 1", "'1' (character 5) is neither", 5),
        ("where(x + 1, x, y)", "'x + 1' (character 7) is neither", 7),
        ("ﬁeld > 1", "'ﬁeld' (character 1) would be read as 'field'", 1),
        ("1 < __ｉmport__", "would be read as '__import__'", 5),
        ("＿＿import＿＿('os')", "reserved word", 3),
        ("___ + `a`", "two underscores", 1),
        ("ａｂｓ(x)", "calls something", 1),
        ("ｌａｍｂｄａ + x", "would be read as 'lambda'", 1),
        ("é + ü.real", "'ü.real' (character 5)", 5),
    ],
)
def test_what_is_not_in_the_language_is_named_with_its_place(
    text: str, found: str, character: int
) -> None:
    with pytest.raises(FormulaError) as caught:
        Formula.parse(text)
    assert found in str(caught.value)
    assert f"(character {character})" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "character"),
    [
        ("x = 3", 3),
        ("x > 3)", 6),
        ("x > 1) or (y > 2", 6),
        ("x; y", 2),
        ("x y", 3),
        ("`a` `b`", 5),
        ("x <> y", 3),
        ("x ? y", 3),
        ("x $ y", 3),
        ("import os", None),
        ("007", None),
        ("1__0", None),
        ("１２ + x", None),
        ("x +", None),
        ("(" * 300 + "x" + ")" * 300, 201),
    ],
)
def test_what_cannot_be_parsed_is_placed(text: str, character: int | None) -> None:
    with pytest.raises(FormulaError, match=r"cannot be read near character|reserved") as caught:
        Formula.parse(text)
    if character is not None:
        assert f"near character {character}:" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "-" * 3_999 + "x",
        "-" * 201 + "x",
        "not " * 999 + "flag",
        "x" + "+x" * 1_999,
        "x" + "<x" * 1_999,
        "abs(" * 199 + "x+1" + ")" * 199,
        "min(" + "x," * 1_500 + "x)",
        "1" + "**1" * 1_300,
    ],
)
def test_formulas_that_are_too_large_or_too_deep(text: str) -> None:
    with pytest.raises(FormulaError, match="too large: at most 1000 parts, nested 200 deep"):
        Formula.parse(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        (None, "not NoneType"),
        (b"x > 1", "not bytes"),
        ("x == '\ud800'", "half a character"),
        ("(" * 100_000, "has 100000 characters; at most 4000"),
        ("x" + " " * 4_000, "has 4001 characters; at most 4000"),
    ],
)
def test_what_is_no_text_is_not_even_parsed(text: Any, said: str) -> None:
    with pytest.raises(FormulaError, match=said):
        Formula.parse(text)


@given(st.text(max_size=60))
def test_any_text_parses_or_is_refused_with_our_own_error(text: str) -> None:
    try:
        formula = Formula.parse(text)
    except FormulaError:
        return
    assert formula.text == text.strip()


_PLAIN = "x y flag job ( ) + - * / ** < <= == != and or not 1 0.5 'a' , abs( where( min( `a.b`"
_HOSTILE = ". [ ] { } : := = @ % // & | ~ ^ lambda if for in is True ` ' # \\ __import__ .real"
_FRAGMENTS = st.sampled_from([*_PLAIN.split(), *_HOSTILE.split()])


@given(st.lists(_FRAGMENTS, max_size=12), st.sampled_from(["", " "]))
def test_any_pieces_of_the_language_parse_or_are_refused(pieces: list[str], gap: str) -> None:
    try:
        formula = Formula.parse(gap.join(pieces))
        formula.evaluate(
            {**dict.fromkeys(formula.names, NUMBERS), "flag": NUMBERS > 1, "job": TEXT}
        )
    except FormulaError:
        pass
