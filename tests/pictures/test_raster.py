"""Drawings as PNG: each shape lies where SVG says, seen in the pixels."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

import mutandis as mm
from mutandis.pictures.raster import to_png

LOOKS = {"{line}": 'fill="none" stroke="#ff0000"', "{red}": 'fill="#ff0000"'}
WHITE, RED, BLUE = (255, 255, 255), (255, 0, 0), (0, 0, 255)


def drawn(shapes: str, *, width: int = 72, height: int = 36) -> Any:
    for name, look in LOOKS.items():
        shapes = shapes.replace(name, look)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>{shapes}</svg>'
    )
    return np.round(imread(BytesIO(to_png(svg)), format="png")[..., :3] * 255).astype(int)


def at(pixels: Any, x: float, y: float) -> tuple[int, ...]:
    """Give the colour at a point of the drawing: 200 pixels are 72 points."""
    return tuple(pixels[int(y * 200 / 72), int(x * 200 / 72)].tolist())


@pytest.mark.parametrize(
    ("shape", "inside", "outside"),
    [
        ('<rect x="10" y="5" width="20" height="10" {red}/>', (12, 7), (8, 7)),
        ('<rect x="10" y="5" width="20" height="20" rx="9" {red}/>', (20, 6), (11, 6)),
        ('<circle cx="30" cy="20" r="6" {red}/>', (34, 20), (35.5, 24.5)),
        ('<path d="M10,10 L30,10 L30,30 Z" {red}/>', (28, 14), (12, 26)),
        ('<path d="M10,10 h20 v10 l-20,0 Z" {red}/>', (12, 18), (12, 22)),
        ('<path d="M10,20 L60,20" {line} stroke-width="4"/>', (50, 21), (50, 25)),
        # the middle of the curve stands at 3/4 of the height of its handles
        (
            '<path d="M10,30 C10,-10 60,-10 60,30" {line} stroke-width="3"/>',
            (35, 0.4),
            (35, 20),
        ),
        # half a circle over the top
        (
            '<path d="M20,20 a6,6 0 0 1 12,0" {line} stroke-width="3"/>',
            (26, 14),
            (26, 20),
        ),
        (
            '<g transform="translate(40,10) scale(2)"><rect width="4" height="4" {red}/></g>',
            (47, 17),
            (49, 17),
        ),
        (
            '<rect width="20" height="4" {red} transform="translate(30,30) rotate(-90)"/>',
            (32, 12),
            (48, 32),
        ),
        ('<g {red}><rect x="5" y="5" width="9" height="9"/></g>', (9, 9), (16, 9)),
    ],
)  # fmt: skip
def test_shapes(shape: str, inside: tuple[float, float], outside: tuple[float, float]) -> None:
    pixels = drawn(shape)
    assert pixels.shape == (100, 200, 3)
    assert at(pixels, *inside) == RED
    assert at(pixels, *outside) == WHITE


def test_later_shapes_lie_on_earlier_ones_and_opacity_mixes() -> None:
    square = '<rect x="10" y="5" width="20" height="20" fill="{}"/>'
    assert at(drawn(square.format("#ff0000") + square.format("#0000ff")), 15, 10) == BLUE
    half = drawn('<rect x="0" y="0" width="9" height="9" {red} opacity="0.5"/>')
    np.testing.assert_allclose(at(half, 4, 4), (255, 127.5, 127.5), atol=1)


def test_dashes_leave_gaps() -> None:
    line = drawn('<path d="M0,20 L72,20" {line} stroke-width="2" stroke-dasharray="6 6"/>')
    assert [at(line, x, 20) for x in (3, 9, 15, 21)] == [RED, WHITE, RED, WHITE]


@pytest.mark.parametrize(("anchor", "left"), [("start", 40), ("middle", 20), ("end", 0)])
def test_text_stands_at_its_anchor(anchor: str, left: float) -> None:
    pixels = drawn(
        f'<text x="40" y="20" font-size="10" text-anchor="{anchor}" fill="#000000">MMMM</text>',
        width=90,
    )
    dark = np.argwhere(pixels.sum(axis=2) < 300)
    (top, first), (bottom, last) = dark.min(axis=0) * 72 / 200, dark.max(axis=0) * 72 / 200
    # letters stand on the line, and four of them are at most as wide as Helvetica's, with some room
    assert 11 < top < 14
    assert 19 < bottom < 20.5
    assert last - first < 4 * 8.33 * 1.05
    middle = (first + last) / 2
    expected = {"start": 40 + (last - first) / 2, "middle": 40, "end": 40 - (last - first) / 2}
    assert abs(middle - expected[anchor]) < 1.5
    assert first >= left


def test_letters_that_no_font_has_and_signs_of_formulas() -> None:
    for text in ("面接", "$x$ and $y", "&lt;b&gt;", "\u200f"):
        assert to_png(
            '<svg viewBox="0 0 72 36" xmlns="http://www.w3.org/2000/svg">'
            f'<text x="1" y="20" font-size="9">{text}</text></svg>'
        ).startswith(b"\x89PNG")


def test_the_same_drawing_gives_the_same_bytes() -> None:
    picture = mm.Worldview({"a": mm.Linear("sex"), "b": mm.Count("a")}, resolving=["a"]).draw()
    assert to_png(picture.svg) == to_png(picture.svg)
