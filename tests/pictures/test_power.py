"""Plots of power: plain SVG, the same bytes each time, with the numbers in them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import mutandis as mm
from mutandis.pictures.power import plot_power

if TYPE_CHECKING:
    from mutandis.pictures.picture import Picture


def texts(drawn: Picture) -> set[str]:
    root = ET.fromstring(drawn.svg)  # noqa: S314 - our own
    return {"".join(node.itertext()).strip() for node in root.iter() if node.tag.endswith("text")}


def test_power_names_its_setting_and_the_smallest_k() -> None:
    found = mm.power(0.6, 0.3, k_max=60)
    drawn = plot_power(found)
    assert drawn == plot_power(found)
    assert {"k = 33", "power"} <= texts(drawn)
    assert any("refused 0.6 and 0.3" in text for text in texts(drawn))
    assert "<script" not in drawn.svg


def test_power_that_is_never_reached_is_drawn_too() -> None:
    drawn = plot_power(mm.power(0.31, 0.3, ks=(5,), k_max=20))
    assert not any(text.startswith("k = ") for text in texts(drawn))
