"""Counterfactual changes taken apart, against numbers computed by hand."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from mutandis.data.columns import Categories, Numbers
from mutandis.scm import Linear, Stated
from mutandis.scm.contributions import decompose, paths_between
from mutandis.scm.graph import Graph


def numbers(*values: float) -> Numbers:
    return Numbers(np.array(values, dtype=np.float64))


def test_parts_of_a_sum_are_slopes_times_changes() -> None:
    # Y = 2 + 3·A - 0.5·B, without noise: the fit is exact
    causes = {"A": numbers(0, 1, 2, 5), "B": numbers(4, 0, 2, 8)}
    child = numbers(0, 5, 7, 13)
    fitted = Linear("A", "B").fit(child, causes)
    parts = decompose(
        fitted, {"A": numbers(1), "B": numbers(4)}, {"A": numbers(3), "B": numbers(10)}
    )
    assert parts is not None
    assert parts.how == "sum"
    assert [each.parents for each in parts.contributions] == [("A",), ("B",)]
    assert [each.amount for each in parts.contributions] == pytest.approx([6.0, -3.0])
    assert parts.total == pytest.approx(3.0)


def test_causes_that_stay_are_left_out() -> None:
    causes = {"A": numbers(0, 1, 2, 5), "B": numbers(4, 0, 2, 8)}
    fitted = Linear("A", "B").fit(numbers(0, 5, 7, 13), causes)
    parts = decompose(
        fitted, {"A": numbers(1), "B": numbers(4)}, {"A": numbers(1), "B": numbers(6)}
    )
    assert parts is not None
    assert [each.parents for each in parts.contributions] == [("B",)]
    assert parts.total == pytest.approx(-1.0)


def test_a_nominal_cause_has_one_shift() -> None:
    job = Categories(np.array([0, 0, 1, 1], dtype=np.int32), ("clerk", "cook"))
    fitted = Linear("Job").fit(numbers(9, 11, 14, 16), {"Job": job})
    parts = decompose(fitted, {"Job": job.take(np.array([3]))}, {"Job": job.take(np.array([0]))})
    assert parts is not None
    assert parts.total == pytest.approx(-5.0)


def test_under_the_log_link_parts_are_factors() -> None:
    # log Y = log 10 + log 2 · A: each unit of A doubles
    causes = {"A": numbers(0, 1, 2, 3)}
    fitted = Linear("A", link="log").fit(numbers(10, 20, 40, 80), causes)
    parts = decompose(fitted, {"A": numbers(1)}, {"A": numbers(3)})
    assert parts is not None
    assert parts.how == "factor"
    assert parts.total == pytest.approx(exp(2 * log(2)))


def test_two_causes_that_act_together_have_a_part_of_their_own() -> None:
    # Y = A + B + 2·A·B
    a, b = [0, 0, 1, 1, 2, 3], [0, 1, 0, 1, 2, 1]
    causes = {"A": numbers(*a), "B": numbers(*b)}
    child = numbers(*[x + y + 2 * x * y for x, y in zip(a, b, strict=True)])
    fitted = Linear("A", "B", interactions=True).fit(child, causes)
    parts = decompose(
        fitted, {"A": numbers(1), "B": numbers(1)}, {"A": numbers(3), "B": numbers(2)}
    )
    assert parts is not None
    found = {each.parents: each.amount for each in parts.contributions}
    # 2·3·2 - 2·1·1 = 10 through both
    assert found == pytest.approx({("A",): 2.0, ("B",): 1.0, ("A", "B"): 10.0})


def test_other_families_are_not_taken_apart() -> None:
    causes = {"A": numbers(0, 1, 2, 3)}
    fitted = Stated("A ** 2").fit(numbers(0, 1, 4, 9), causes)
    assert decompose(fitted, {"A": numbers(1)}, {"A": numbers(3)}) is None


GRAPH = Graph.from_parents({"B": ("A",), "C": ("A", "B"), "D": ("C", "B"), "E": ("X",)})


def test_every_way_is_found_once() -> None:
    found = set(paths_between(GRAPH, ["A"], "D"))
    assert found == {("A", "C", "D"), ("A", "B", "C", "D"), ("A", "B", "D")}
    assert len(list(paths_between(GRAPH, ["A"], "D"))) == 3


def test_no_way_leads_through_what_is_held() -> None:
    assert list(paths_between(GRAPH, ["A"], "D", held=["B"])) == [("A", "C", "D")]


def test_there_may_be_no_way() -> None:
    assert list(paths_between(GRAPH, ["A"], "E")) == []
