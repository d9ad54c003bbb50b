"""Pictures of attributes: what they count and summarise, against slow and simple ways."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from mutandis.pictures import attributes
from mutandis.pictures.attributes import (
    Spread,
    bin_edges,
    plot_levels,
    plot_numbers,
    plot_roles,
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


@pytest.mark.parametrize("size", [1, 3, 999, 1000, 1001, 7000])
def test_bars_end_at_quantiles_however_values_are_sorted(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    values = np.random.default_rng(size).normal(size=size) ** 3
    low, high = np.quantile(values, [0.001, 0.999], method="inverted_cdf").tolist()
    # the values that are looked at first may be any, such as the smallest alone
    for looked_at in (1, 30, 20_000):
        monkeypatch.setattr(attributes, "_LOOKED_AT", looked_at)
        for given_values in (values, np.sort(values), np.sort(values)[::-1]):
            edges = bin_edges([given_values[: size // 3], given_values[size // 3 :]])
            if size < 4:  # so few are on a grid, or all the same
                continue
            assert (edges[0], edges[-1]) == (low, high)


@pytest.mark.parametrize("name", ["<script>&", "a\x00b", "$x^2$", "_hidden", "long " * 60])
def test_names_are_text_whatever_they_hold(name: str) -> None:
    values = np.arange(50.0)
    spreads = [
        Spread(role="factual", label="one", values=values),
        Spread(role="reference", label="two", values=values),
    ]
    shares = [Spread(role="factual", label="one", values=np.array([1.0]))]
    for drawing in (
        plot_numbers(name, spreads),
        plot_levels(name, [name], shares),
    ):
        root = ET.fromstring(drawing.svg)  # noqa: S314 - our own drawing
        assert not [each for each in root.iter() if each.tag.endswith("script")]
        assert len(drawing.svg) < 100_000


def test_the_same_numbers_give_the_same_drawing() -> None:
    spreads = [Spread(role="factual", label="one", values=np.arange(50.0))]
    assert plot_numbers("x", spreads) == plot_numbers("x", spreads)


def test_one_legend_serves_many_pictures() -> None:
    spreads = [Spread(role="factual", label="one of them", values=np.arange(50.0))]
    assert "one of them" in plot_numbers("x", spreads).svg
    assert "one of them" not in plot_numbers("x", spreads, legend=False).svg
    assert "one of them" in plot_roles({"factual": "one of them"}).svg
