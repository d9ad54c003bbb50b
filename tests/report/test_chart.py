"""SVG as text: escaping, numbers, the widths of names, and pictures as files."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mutandis as mm
from mutandis.errors import PlanError
from mutandis.report.chart import Picture, element, number, printable, shortened, text_width
from mutandis.report.plots import plot_power

if TYPE_CHECKING:
    from pathlib import Path


def test_names_are_measured_rather_too_wide() -> None:
    # in Helvetica, n has 0.556 and M 0.833 of the font size
    assert 5.56 <= text_width("n", 10) <= 6.5
    assert 8.33 <= text_width("M", 10) <= 11
    assert text_width("収", 10) >= 10
    assert text_width("é", 10) >= 5.56
    assert text_width("e\u0301", 10) == text_width("e", 10)


@given(st.text(max_size=300), st.floats(20, 200))
def test_shortened_names_fit(name: str, width: float) -> None:
    short = shortened(name, width=width, size=10)

    assert short == name or (text_width(short, 10) <= max(width, 35) and "…" in short)


def test_the_middle_of_a_long_name_is_left_out() -> None:
    assert shortened("AnnualSalaryBeforeTaxes2019", width=120, size=14) == "Annual…es2019"


def test_svg_is_written_escaped_and_with_short_numbers() -> None:
    written = element("text", text="a < b", x=3.04, text_anchor="middle", class_="name")
    assert written == '<text x="3" text-anchor="middle" class="name">a &lt; b</text>'
    assert [number(each) for each in (12.0, 12.34, -0.01)] == ["12", "12.3", "0"]
    assert (printable("a\x00b"), printable("")) == ("a�b", '""')


def test_a_notebook_shows_the_svg_text_and_the_repr_is_short() -> None:
    worldview = mm.Worldview({"salary": mm.Linear("gender")})
    picture = worldview.draw()
    assert picture._repr_svg_() == str(picture) == picture.svg
    assert repr(picture) == "Picture('Worldview')"
    assert picture == worldview.draw() != worldview.draw(protected="gender")


def test_a_picture_is_saved_as_svg_alone(tmp_path: Path) -> None:
    picture = Picture("<svg>−</svg>", "A title")
    picture.save(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text(encoding="utf-8") == picture.svg
    with pytest.raises(PlanError, match=r"is written as \.svg, not as '\.png'"):
        picture.save(tmp_path / "picture.png")
    with pytest.raises(PlanError, match=r"not as 'a file without an ending'"):
        picture.save(tmp_path / "picture")
    assert [each.name for each in tmp_path.iterdir()] == ["picture.svg"]


def texts(drawing: Picture) -> list[str]:
    root = ET.fromstring(drawing.svg)  # noqa: S314 - our own drawing
    return ["".join(node.itertext()).strip() for node in root.iter() if node.tag.endswith("}text")]


def test_power_names_its_setting_and_the_smallest_k() -> None:
    drawn = plot_power(mm.power(0.6, 0.3, k_max=60))
    assert {"k = 33", "power"} <= set(texts(drawn))
    assert any("refused 0.6 and 0.3" in text for text in texts(drawn))
    never = plot_power(mm.power(0.31, 0.3, ks=(5,), k_max=20))
    assert not any(text.startswith("k = ") for text in texts(never))
