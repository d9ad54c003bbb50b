"""SVG as text: elements, escaping, and how wide a name will be."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from mutandis import errors

if TYPE_CHECKING:
    from collections.abc import Iterable

# Widths of Helvetica and Arial in thousandths of the font size.
_WIDTHS = {
    character: width
    for width, characters in {
        191: "'",
        222: "ijl",
        260: "|",
        278: " !,./:;I[\\]ft",
        333: "()-`r",
        334: "{}",
        355: '"',
        389: "*",
        469: "^",
        500: "Jcksvxyz",
        556: "#$0123456789?L_abdeghnopqu",
        584: "+<=>~",
        611: "FTZ",
        667: "&ABEKPSVXY",
        722: "CDHNRUw",
        778: "GOQ",
        833: "Mm",
        889: "%",
        944: "W",
        1000: "…—→",
        1015: "@",
    }.items()
    for character in characters
}
_OTHER = 640
_WIDE = 1000


def number(value: float) -> str:
    """Write a coordinate with one decimal, and none if it is whole."""
    rounded = round(value, 1) + 0.0
    return f"{rounded:.0f}" if rounded.is_integer() else f"{rounded:.1f}"


def element(
    tag: str, children: Iterable[str] | None = None, *, text: str = "", **attributes: str | float
) -> str:
    """Write one element; an underscore in an attribute's name stands for a hyphen."""
    written = "".join(
        f" {name.rstrip('_').replace('_', '-')}="
        + quoteattr(value if isinstance(value, str) else number(value))
        for name, value in attributes.items()
    )
    if children is None and not text:
        return f"<{tag}{written}/>"
    return f"<{tag}{written}>{escape(text)}{''.join(children or ())}</{tag}>"


def printable(name: str) -> str:
    """Replace what XML cannot hold, or what would not stay in its place, by a mark."""
    return errors.printable(name, keep="") or '""'


def text_width(text: str, size: float) -> float:
    """Estimate how wide a text is, rather too wide than too narrow."""
    return sum(map(_character_width, text)) * size / 1000 * 1.05


def _character_width(character: str) -> int:
    if character in _WIDTHS:
        return _WIDTHS[character]
    if unicodedata.combining(character):
        return 0
    return _WIDE if unicodedata.east_asian_width(character) in "WF" else _OTHER


def shortened(text: str, *, width: float, size: float) -> str:
    """Leave out the middle of a text that is too wide: names often differ at their ends."""
    if text_width(text, size) <= width:
        return text
    kept = len(text) - 1
    while kept > 2:
        short = f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"
        if text_width(short, size) <= width:
            return short
        # a long name is cut down in large steps first
        kept -= max(1, (kept - 60) // 2)
    return f"{text[:1]}…{text[-1:]}"
