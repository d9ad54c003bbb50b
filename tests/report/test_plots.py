"""Plots of results: every line is drawn, or said in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import mutandis as mm
from mutandis.report.plots import (
    ForestRow,
    plot_forest,
    plot_power,
)

if TYPE_CHECKING:
    from mutandis.report.chart import Picture


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


def test_hostile_words_are_escaped() -> None:
    drawing = plot_forest([row(words="<script>$x$")], threshold=0.0, threshold_name="τ")
    assert "<script>" not in drawing.svg
    assert "<script>$x$" in texts(drawing)


def test_power_names_its_setting_and_the_smallest_k() -> None:
    drawn = plot_power(mm.power(0.6, 0.3, k_max=60))
    assert {"k = 33", "power"} <= set(texts(drawn))
    assert any("refused 0.6 and 0.3" in text for text in texts(drawn))
    never = plot_power(mm.power(0.31, 0.3, ks=(5,), k_max=20))
    assert not any(text.startswith("k = ") for text in texts(never))
