"""Pictures of findings: bars against exact arithmetic, and every line drawn or said in words."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mutandis.pictures.findings import (
    Differences,
    ForestRow,
    count_differences,
    plot_delta_p,
    plot_forest,
)

if TYPE_CHECKING:
    from mutandis.pictures.picture import Picture


def row(**changed: object) -> ForestRow:
    fields: dict[str, object] = {
        "group": "ST",
        "label": "k = 15",
        "delta_p": 0.25,
        "low": 0.1,
        "high": 0.4,
        "words": "0.250 [0.100, 0.400]",
        "verdict": "significant",
        "found": True,
    }
    return ForestRow(**{**fields, **changed})  # type: ignore[arg-type]


def texts(drawing: Picture) -> list[str]:
    root = ET.fromstring(drawing.svg)  # noqa: S314 - our own drawing
    return ["".join(node.itertext()).strip() for node in root.iter() if node.tag.endswith("}text")]


def test_every_line_is_labelled_and_a_group_is_named_once() -> None:
    rows = [row(), row(label="k = 30"), row(group="CF", label="", low=None, high=None)]
    said = texts(plot_forest(rows, threshold=0.0, threshold_name="τ = 0"))
    assert said.count("ST") == 1
    assert said.count("CF") == 1
    assert "k = 15" in said
    assert "k = 30" in said
    assert said.count("significant") == 3


def test_a_line_without_numbers_has_words_alone() -> None:
    drawn = plot_forest([row()], threshold=0.0, threshold_name="τ = 0")
    bare = plot_forest(
        [row(delta_p=None, low=None, high=None, words="withheld")],
        threshold=0.0,
        threshold_name="τ = 0",
    )
    assert "withheld" in texts(bare)
    assert len(re.findall("<path ", bare.svg)) < len(re.findall("<path ", drawn.svg))


def test_a_threshold_is_drawn_and_named() -> None:
    without = plot_forest([row()], threshold=0.0, threshold_name="τ = 0")
    drawn = plot_forest([row()], threshold=0.1, threshold_name="τ = 0.1")
    assert any("dashed: τ = 0.1" in said for said in texts(drawn))
    assert not any("dashed" in said for said in texts(without))


def test_the_same_lines_give_the_same_bytes() -> None:
    first, second = (plot_forest([row()], threshold=0.0, threshold_name="τ") for _ in range(2))
    assert first == second


def test_hostile_words_are_escaped() -> None:
    drawing = plot_forest([row(words="<script>$x$")], threshold=0.0, threshold_name="τ")
    assert "<script>" not in drawing.svg
    assert "<script>$x$" in texts(drawing)


def bar_of(difference: Fraction) -> int:
    """Find the bar by exact arithmetic: (-1 + 0.05·i, -1 + 0.05·(i + 1)]."""
    return next(place for place in range(40) if difference <= Fraction(place + 1, 20) - 1)


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(1, 40), st.integers(1, 40)),
        max_size=30,
    )
)
def test_differences_fall_into_the_bar_that_exact_arithmetic_says(
    quadruples: list[tuple[int, int, int, int]],
) -> None:
    exact = [
        Fraction(min(up, size), size) - Fraction(min(other, places), places)
        for up, other, size, places in quadruples
    ]
    counts = count_differences(np.array([float(each) for each in exact]))
    expected = np.zeros(40, dtype=int)
    for each in exact:
        expected[bar_of(each)] += 1
    assert counts.tolist() == expected.tolist()


def test_differences_on_an_edge_belong_to_the_bar_below() -> None:
    # 0.1 + 1 is a little more than 1.1 in floats: rounding must not lift it into the next bar
    for twentieths in range(-19, 21):
        counts = count_differences(np.array([twentieths / 20]))
        assert counts.nonzero()[0].tolist() == [bar_of(Fraction(twentieths, 20))]


def words(drawing: Picture) -> str:
    return " ".join(ET.fromstring(drawing.svg).itertext())  # noqa: S314 - our own drawing


def test_those_who_do_not_differ_are_told_and_not_drawn() -> None:
    delta_p = np.array([0.0] * 1200 + [0.5, -0.5])
    drawing = plot_delta_p(
        [Differences(title="ST", delta_p=delta_p, evidence=delta_p > 0)], threshold=0.0
    )
    assert "Δp = 0: 1,200" in words(drawing)
    assert "threshold 0" in words(drawing)
