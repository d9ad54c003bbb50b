"""Pictures of attributes: what they count and summarise, against slow and simple ways."""

from __future__ import annotations

from fractions import Fraction
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mutandis.pictures.attributes import (
    Box,
    Spread,
    bin_edges,
    box_of,
    plot_groups,
    plot_levels,
    plot_numbers,
)


def test_bars_lie_around_values_on_a_grid() -> None:
    edges = bin_edges([np.array([10_000.0, 20_000, 40_000] * 9), np.linspace(9_000, 41_000, 500)])
    assert edges.tolist() == [5_000, 15_000, 25_000, 35_000, 45_000]
    assert bin_edges([np.full(5, 3.0)]).tolist() == [2.5, 3.5]
    assert bin_edges([np.array([1.0, 2.0, 2.0, 3.0])]).tolist() == [0.5, 1.5, 2.5, 3.5]
    assert len(bin_edges([np.linspace(0.0, 1.0, 400) ** 2])) == 21
    tenths = bin_edges([np.round(np.arange(20, 41) / 10, 1)])
    assert len(tenths) == 22
    assert tenths[0] == pytest.approx(1.95)


def test_a_few_far_values_do_not_squeeze_the_others() -> None:
    values = np.append(np.random.default_rng(0).normal(size=5000), [1e9, -1e9])
    edges = bin_edges([values])
    assert -5 < edges[0] < edges[-1] < 5
    assert len(edges) == 41


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=12),
)
def test_boxes_count_shared_places_as_parts(people: list[tuple[int, int]]) -> None:
    values = np.array([float(value) for value, _ in people])
    place = np.array([1 / split for _, split in people])
    box = box_of(values, place, center=0.0)
    total = sum(Fraction(1, split) for _, split in people)

    def quantile(part: Fraction) -> float:
        filled = Fraction(0)
        for value, split in sorted(people):
            filled += Fraction(1, split)
            if filled >= part * total:
                return float(value)
        raise AssertionError

    assert box.first == quantile(Fraction(1, 4))
    assert box.median == quantile(Fraction(1, 2))
    assert box.third == quantile(Fraction(3, 4))
    assert (box.low, box.high) == (values.min(), values.max())


@pytest.mark.parametrize("name", ["<script>&", "a\x00b", "$x^2$", "_hidden", "long " * 60])
def test_names_are_text_whatever_they_hold(name: str) -> None:
    values = np.arange(50.0)
    spreads = [
        Spread(role="factual", label="one", values=values),
        Spread(role="reference", label="two", values=values),
    ]
    shares = [Spread(role="factual", label="one", values=np.array([1.0]))]
    box = Box(low=0, first=1, median=2, third=3, high=4, center=2)
    for drawing in (
        plot_numbers(name, spreads),
        plot_levels(name, [name], shares),
        plot_groups(name, {name: {"control": box, "cst": box}}, levels=[name] * 5),
    ):
        root = ET.fromstring(drawing.svg)  # noqa: S314 - our own drawing
        assert not [each for each in root.iter() if each.tag.endswith("script")]
        assert len(drawing.svg) < 100_000


def test_the_same_numbers_give_the_same_drawing() -> None:
    spreads = [Spread(role="factual", label="one", values=np.arange(50.0))]
    assert plot_numbers("x", spreads) == plot_numbers("x", spreads)
