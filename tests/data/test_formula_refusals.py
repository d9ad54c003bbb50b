"""What the formula language refuses, and how it says so; nothing that is refused ever runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.data.formula import Formula
from mutandis.errors import FormulaError

NUMBERS = np.array([1.0, 4.0, -2.0])
TEXT = np.array(["cook", "clerk", "cook"], dtype=object)


@pytest.mark.parametrize(
    ("text", "found", "character"),
    [
        ("1 + x.real", "'x.real' (character 5): the attribute access", 5),
        ("x.__class__.__bases__", "attribute access", 1),
        ("().__class__", "attribute access", 1),
        ("'a'.upper() == x", "calls something", 1),
        ("__import__('os').system('ls')", "calls something", 1),
        ("__import__('os')", "calls something", 1),
        ("open('file')", "calls something", 1),
        ("eval(x)", "calls something", 1),
        ("(x)(y)", "calls something", 1),
        ("`abs`(x)", "calls something", 1),
        ("abs(abs)(x)", "calls something", 1),
        ("x > __builtins__", "two underscores", 5),
        ("__x", "two underscores", 1),
        ("x[0]", "subscript", 1),
        ("x[0:1]", "subscript", 1),
        ("[x, y]", "list of values", 1),
        ("x, y", "list of values", 1),
        ("()", "list of values", 1),
        ("{x: y}", "form Dict", 1),
        ("{x}", "form Set", 1),
        ("2 * (x := 3)", "assignment", 6),
        ("abs(*x)", "starred", 5),
        ("lambda: x", "'lambda' (character 1) is a reserved word", 1),
        ("[a for a in x]", "reserved word", 4),
        ("(a async for a in x)", "reserved word", 4),
        ("x if flag else y", "reserved word", 3),
        ("x in y", "reserved word", 3),
        ("x is y", "reserved word", 3),
        ("await x", "reserved word", 1),
        ("yield", "reserved word", 1),
        ("True", "reserved word", 1),
        ("x == None", "reserved word", 6),
        ("class > 3", "in backticks: `class`", 1),
        ("...", "not a decimal number", 1),
        ("x // y", "operator //", 1),
        ("x % y", "operator %", 1),
        ("x @ y", "operator @", 1),
        ("(x > 1) & (y > 1)", "write `and`", 1),
        ("(x > 1) | (y > 1)", "write `or`", 1),
        ("x ^ 2", "a power is written **", 1),
        ("x << 2", "form LShift", 1),
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
        ("`a`x", "runs into", 4),
        ("`a`'b'", "runs into", 4),
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
        ("x + '", "does not close", 5),
        ("'cook'", "only beside == or !=", 1),
        ("job < 'cook'", "only beside == or !=", 7),
        ("job == 'cook' < 'd'", "only beside == or !=", 8),
        ("job == 'a' + 'b'", "only beside == or !=", 8),
        ("abs('cook')", "only beside == or !=", 5),
        ("x ** y", "exponent 'y' (character 6)", 6),
        ("9**9**9", "exponent '9**9' (character 4)", 4),
        ("x ** 17", "exponent '17'", 6),
        ("x ** -16.5", "exponent '-16.5'", 6),
        ("x ** (1 + 1)", "exponent '1 + 1'", 7),
        ("x ** -y", "exponent '-y'", 6),
        ("x ** --2", "exponent '--2'", 6),
        ("1e999 > x", "too large a number", 1),
        ("x < " + "1" * 3_900, "too large a number", 5),
        ("round(x, y)", "whole number of digits", 1),
        ("round(x, 1.5)", "whole number of digits", 1),
        ("round(x, 16)", "whole number of digits", 1),
        ("round(x, 1, 2)", "round takes 1 or 2 arguments", 1),
        ("abs()", "abs takes 1 argument ", 1),
        ("abs(x, y)", "abs takes 1 argument ", 1),
        ("min(x)", "min takes 2 or more arguments", 1),
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


def test_an_error_lists_what_is_allowed() -> None:
    with pytest.raises(FormulaError) as caught:
        Formula.parse("x.y")
    for allowed in ("backticks", "numbers", "**", "and", "where", "sqrt"):
        assert allowed in str(caught.value)


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


@pytest.mark.parametrize("text", ["(" * 100_000, "x" + " " * 4_000, "1" * 5_000])
def test_long_text_is_not_even_parsed(text: str) -> None:
    with pytest.raises(FormulaError, match=f"has {len(text)} characters; at most 4000"):
        Formula.parse(text)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_empty_text(text: str) -> None:
    with pytest.raises(FormulaError, match="is empty"):
        Formula.parse(text)


@pytest.mark.parametrize("text", [None, 3, b"x > 1", ["x"]])
def test_a_formula_is_text(text: Any) -> None:
    with pytest.raises(FormulaError, match=f"not {type(text).__name__}"):
        Formula.parse(text)


def test_half_characters() -> None:
    with pytest.raises(FormulaError, match="half a character"):
        Formula.parse("x == '\ud800'")


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
