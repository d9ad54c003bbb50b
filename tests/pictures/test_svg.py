"""SVG as text: escaping, numbers, and the widths of names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mutandis.pictures.svg import element, number, printable, shortened, text_width


def test_names_are_measured_rather_too_wide() -> None:
    # in Helvetica, n has 0.556 and M 0.833 of the font size
    assert 5.56 <= text_width("n", 10) <= 6.5
    assert 8.33 <= text_width("M", 10) <= 9.5
    assert text_width("収", 10) >= 10
    assert text_width("é", 10) >= 5.56
    assert text_width("e\u0301", 10) == text_width("e", 10)


@given(st.text(max_size=300), st.floats(20, 200))
def test_shortened_names_fit(name: str, width: float) -> None:
    short = shortened(name, width=width, size=10)

    assert short == name or (text_width(short, 10) <= max(width, 35) and "…" in short)


def test_the_middle_of_a_long_name_is_left_out() -> None:
    assert shortened("AnnualSalaryBeforeTaxes2019", width=120, size=14) == "AnnualS…es2019"
    assert round(text_width("salary", 14), 1) == 39.2


def test_svg_is_written_escaped_and_with_short_numbers() -> None:
    written = element("text", text="a < b", x=3.04, text_anchor="middle", class_="name")
    assert written == '<text x="3" text-anchor="middle" class="name">a &lt; b</text>'
    assert [number(each) for each in (12.0, 12.34, -0.01)] == ["12", "12.3", "0"]
    assert (printable("a\x00b"), printable("")) == ("a�b", '""')
