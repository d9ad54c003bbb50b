"""Pages: templates in which everything is escaped, and pictures that can share a page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from markupsafe import Markup

from mutandis.errors import printable
from mutandis.report.formatting import (
    capitalised,
    count,
    distance,
    listed,
    p_value,
    percent,
    plural,
    signed,
    value,
)

if TYPE_CHECKING:
    import jinja2

    from mutandis.pictures.picture import Picture

__all__ = ["CaptionedPicture", "inline_svg", "render"]

_SANS = "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
_FONT = re.compile(r"(font(?:-family)?:\s*(?:[\w.]+(?:px|pt)\s+)?)'[^;]*(?=;|$)")
_LOCAL = re.compile(r"url\(#([^)]*)\)")
_IDS = ("aria-labelledby", "aria-describedby")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionedPicture:
    """A drawing with its words: what it shows, how to read it, and what a screen reader says.

    The name is its id in the page and the stem of its file.
    """

    name: str
    drawing: Picture
    title: str
    caption: str
    description: str

    @property
    def svg(self) -> Markup:
        """The drawing for a page."""
        return inline_svg(
            self.drawing.svg, name=self.name, title=self.title, description=self.description
        )


def inline_svg(drawing: str, *, name: str, title: str, description: str) -> Markup:
    """Prepare a drawing for a page: ids of its own, words for screen readers, nothing to load.

    The name is what its ids begin with: unique in the page.
    """
    root = ET.fromstring(drawing)  # noqa: S314 - our own drawing, not a stranger's
    for parent in list(root.iter()):
        for child in list(parent):
            # `style` would reach out of the drawing to the page; `metadata` names schemas by URL
            if _local(child.tag) in {"metadata", "style", "title", "desc"}:
                parent.remove(child)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {
            _local(key): _own(_local(key), value, name)
            for key, value in element.attrib.items()
            if _local(key) not in {"version", *_IDS}
        }
    width, height = (float(part) for part in root.attrib["viewBox"].split()[2:])
    points = 4 / 3 if root.attrib.get("width", "").endswith("pt") else 1.0
    root.attrib |= {
        "role": "img",
        "aria-labelledby": f"{name}-title {name}-desc",
        "style": "stroke-linejoin:round;stroke-linecap:butt",
        "width": f"{width * points:.0f}",
        "height": f"{height * points:.0f}",
    }
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        words = ET.Element(tag, {"id": f"{name}-{tag}"})
        words.text = printable(text, keep="")
        root.insert(place, words)
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704 - written by us


def _local(name: str) -> str:
    """Leave out the namespace: within a page, the parser knows that this is SVG."""
    return name.rpartition("}")[2]


def _own(key: str, value: str, name: str) -> str:
    """Give an attribute whose ids are this drawing's own, and whose font is the page's."""
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        return f"#{name}-{value.removeprefix('#')}"
    if key == "style":
        value = _FONT.sub(lambda found: f"{found[1]}{_SANS}", value)
    return _LOCAL.sub(lambda found: f"url(#{name}-{found[1]})", value)


@cache
def _environment(package: str = "mutandis.report") -> jinja2.Environment:
    import jinja2

    from mutandis.report.template_cache import TemplateCache

    environment = jinja2.Environment(
        bytecode_cache=TemplateCache(),
        loader=jinja2.PackageLoader(package, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    writers = (capitalised, count, distance, listed, p_value, percent, plural, signed, value)
    environment.filters |= {write.__name__: write for write in writers}
    environment.filters["label"] = lambda name, labels: labels.column(name)
    environment.filters["said"] = lambda shown, words: words.value(shown)
    environment.globals["written"] = value  # for values that may have a label
    environment.filters["average"] = lambda number, words: words.average(number)
    environment.filters["difference"] = lambda number, words: words.difference(number)
    return environment


def _shown(value: object) -> object:
    """Replace, in texts, what would not stay in its place: control and direction characters."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return printable(value, keep="\n")


def render(template: str, *, package: str = "mutandis.report", **context: Any) -> str:
    """Fill in a template of a package; what is missing from the context is an error, not a gap."""
    version = metadata.version("mutandis")
    return str(_environment(package).get_template(template).render(version=version, **context))
