"""Formulas against an oracle: Python itself, which evaluates the same expression row by row."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from mutandis.data.formula import Formula
from mutandis.errors import FormulaError

_Twin = tuple[str, str]  # the same expression in our language and in Python

_CONSTANTS = st.integers(-40, 40).map(lambda n: (f"({n / 8})", f"({n / 8})"))
_COLUMNS = st.sampled_from(["x", "y"]).map(lambda name: (name, name))


def _join(template: str, *parts: st.SearchStrategy[_Twin]) -> st.SearchStrategy[_Twin]:
    """Fill the parts into a template, of which Python's version may differ after a bar."""
    ours, _, python = template.partition("|")
    return st.tuples(*parts).map(
        lambda twins: (
            ours.format(*(twin[0] for twin in twins)),
            (python or ours).format(*(twin[1] for twin in twins)),
        )
    )


@cache
def _numbers(depth: int) -> st.SearchStrategy[_Twin]:
    if not depth:
        return st.one_of(_CONSTANTS, _COLUMNS)
    number, truth = _numbers(depth - 1), _truths(depth - 1)
    return st.one_of(
        _CONSTANTS,
        _COLUMNS,
        _join("({} + {})", number, number),
        _join("({} - {})", number, number),
        _join("({} * {})", number, number),
        _join("({} / {})", number, number),
        _join("(-{})", number),
        _join("abs({})", number),
        _join("sqrt({})", number),
        _join("round({})", number),
        _join("min({}, {}, {})", number, number, number),
        _join("max({}, {})", number, number),
        _join("where({}, {}, {})|({1} if {0} else {2})", truth, number, number),
        _join("({} * {})", truth, number),
    )


@cache
def _truths(depth: int) -> st.SearchStrategy[_Twin]:
    known = st.sampled_from(["flag", "(job == 'cook')", "('clerk' != job)"])
    plain = known.map(lambda text: (text, text))
    if not depth:
        return plain
    number, truth = _numbers(depth - 1), _truths(depth - 1)
    return st.one_of(
        plain,
        _join("({} < {})", number, number),
        _join("({} == {})", number, number),
        _join("({} >= {} > {})", number, number, number),
        _join("({} <= {} != {} < {})", number, number, number, number),
        _join("({} and {} and {})", truth, truth, truth),
        _join("({} or {})", truth, truth),
        _join("(not {})", truth),
        _join("where({}, {}, {})|({1} if {0} else {2})", truth, truth, truth),
        _join("({} != {})", truth, truth),
    )


_EIGHTHS = st.integers(-80, 80).map(lambda n: n / 8)
_ROWS = st.lists(
    st.tuples(_EIGHTHS, _EIGHTHS, st.booleans(), st.sampled_from(["cook", "clerk"])),
    min_size=1,
    max_size=6,
)
_PYTHON = {
    "__builtins__": {},
    "abs": abs,
    "min": min,
    "max": max,
    "sqrt": math.sqrt,
    "round": lambda number: float(round(number)),
}


@settings(max_examples=300)
@given(st.one_of(_numbers(4), _truths(4)), _ROWS)
def test_formulas_mean_what_python_means(
    twin: _Twin, rows: list[tuple[float, float, bool, str]]
) -> None:
    ours, python = twin
    x, y, flag, job = zip(*rows, strict=True)
    columns = {
        "x": np.array(x),
        "y": np.array(y),
        "flag": np.array(flag),
        "job": np.array(job, dtype=object),
    }
    try:
        expected = [
            eval(python, _PYTHON, dict(zip(columns, row, strict=True)))  # noqa: S307 - the oracle
            for row in rows
        ]
    except (ZeroDivisionError, ValueError):
        event("not finite")
        with pytest.raises(FormulaError, match="no finite result"):
            Formula.parse(ours).evaluate(columns)
    else:
        event(f"finite, {min(len(ours) // 40, 3) * 40} or more characters")
        assert Formula.parse(ours).evaluate(columns).tolist() == expected


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=5), st.integers(-16, 16))
def test_powers_exponentials_and_logarithms(numbers: list[float], exponent: int) -> None:
    formula = Formula.parse(f"x ** {exponent} + exp(-x) - log(x)")
    expected = [x**exponent + math.exp(-x) - math.log(x) for x in numbers]
    result = formula.evaluate({"x": np.array(numbers)})
    assert result.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)
