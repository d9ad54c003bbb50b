"""Pictures show themselves, are compared by what they show, and are saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import mutandis as mm
from mutandis.errors import PlanError
from mutandis.pictures.power import plot_power

if TYPE_CHECKING:
    from pathlib import Path

WORLDVIEW = mm.Worldview({"salary": mm.Linear("gender")})


def test_a_notebook_shows_the_svg_text_and_the_repr_is_short() -> None:
    picture = WORLDVIEW.draw()
    assert picture._repr_svg_() == str(picture) == picture.svg
    assert repr(picture) == "Picture('Worldview')"
    assert repr(plot_power(mm.power(0.6, 0.3, k_max=40))) == (
        "Picture('Power by the size of the groups')"
    )
    assert picture == WORLDVIEW.draw()
    assert picture != WORLDVIEW.draw(protected="gender")


def test_a_picture_is_saved_as_svg_alone(tmp_path: Path) -> None:
    picture = WORLDVIEW.draw()
    picture.save(tmp_path / "worldview.svg")
    assert (tmp_path / "worldview.svg").read_text(encoding="utf-8") == picture.svg
    with pytest.raises(PlanError, match=r"is written as \.svg, not as '\.png'"):
        picture.save(tmp_path / "worldview.png")
    with pytest.raises(PlanError, match=r"not as 'a file without an ending'"):
        plot_power(mm.power(0.6, 0.3, k_max=40)).save(tmp_path / "power")
    assert [each.name for each in tmp_path.iterdir()] == ["worldview.svg"]
