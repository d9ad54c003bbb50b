"""Counterfactual changes split by causes, against numbers computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mutandis.data.columns import Categories, Column, Numbers
from mutandis.scm import Linear
from mutandis.scm.graph import Graph


def numbers(*values: float) -> Numbers:
    return Numbers(np.array(values, dtype=np.float64))


TWO = {"A": numbers(0, 1, 2, 5), "B": numbers(4, 0, 2, 8)}
FOUR = {"A": numbers(0, 1, 2, 3)}
SIX = {"A": numbers(0, 0, 1, 1, 2, 3), "B": numbers(0, 1, 0, 1, 2, 1)}
JOB = Categories(np.array([0, 0, 1, 1], dtype=np.int32), ("clerk", "cook"))
COOK, CLERK = JOB.take(np.array([3])), JOB.take(np.array([0]))


# all fits are exact but that of names
@pytest.mark.parametrize(
    ("equation", "causes", "child", "before", "after", "found"),
    [
        # Y = 2 + 3·A - 0.5·B; causes that stay are left out
        (Linear("A", "B"), TWO, (0, 5, 7, 13), (1, 4), (3, 10), {("A",): 6.0, ("B",): -3.0}),
        (Linear("A", "B"), TWO, (0, 5, 7, 13), (1, 4), (1, 6), {("B",): -1.0}),
        (Linear("Job"), {"Job": JOB}, (9, 11, 14, 16), (COOK,), (CLERK,), {("Job",): -5.0}),
        # log Y = log 10 + log 2 · A: each unit of A doubles
        (Linear("A", link="log"), FOUR, (10, 20, 40, 80), (1,), (3,), {("A",): 4.0}),
        # Y = A + B + 2·A·B: 2·3·2 - 2·1·1 = 10 through both
        (
            Linear("A", "B", interactions=True),
            SIX,
            (0, 1, 1, 4, 12, 10),
            (1, 1),
            (3, 2),
            {("A",): 2.0, ("B",): 1.0, ("A", "B"): 10.0},
        ),
    ],
)  # fmt: skip
def test_contributions_by_hand(
    equation: Linear,
    causes: dict[str, Column],
    child: tuple[float, ...],
    before: Any,
    after: Any,
    found: dict[tuple[str, ...], float],
) -> None:
    one, other = (
        {
            name: value if isinstance(value, Categories) else numbers(value)
            for name, value in zip(causes, each, strict=True)
        }
        for each in (before, after)
    )
    parts = equation.fit(numbers(*child), causes).decompose(one, other)
    assert parts.how == ("factor" if equation.link == "log" else "sum")
    assert parts.contributions == pytest.approx(found)
    combine = np.prod if parts.how == "factor" else np.sum
    assert parts.total == pytest.approx(combine(list(found.values())))


GRAPH = Graph.from_parents({"B": ("A",), "C": ("A", "B"), "D": ("C", "B"), "E": ("X",)})


def test_every_path_is_found_once_and_none_through_what_is_held() -> None:
    found = list(GRAPH.paths(["A"], "D"))
    assert sorted(found) == [("A", "B", "C", "D"), ("A", "B", "D"), ("A", "C", "D")]
    assert list(GRAPH.paths(["A"], "D", held=["B"])) == [("A", "C", "D")]
    assert list(GRAPH.paths(["A"], "E")) == []
