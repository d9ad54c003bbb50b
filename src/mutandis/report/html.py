"""Pages: templates in which everything is escaped, pictures within them, and pages as PDF.

PDF files are made by WeasyPrint (the extra `pdf`).
"""

from __future__ import annotations

import logging
import os
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, NoReturn
from xml.sax.saxutils import quoteattr

from markupsafe import Markup

from mutandis.errors import MutandisError, printable
from mutandis.report import formatting
from mutandis.report.chart import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import jinja2

    from mutandis.report.chart import Picture

__all__ = ["CaptionedPicture", "pdf_unavailable", "render", "to_pdf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionedPicture:
    """A drawing with its words."""

    name: str  # its id in the page, and the stem of its file
    drawing: Picture
    title: str
    caption: str
    description: str  # for screen readers

    @property
    def svg(self) -> Markup:
        """The drawing for a page, which knows SVG without its namespace."""
        words = quoteattr(printable(f"{self.title}. {self.description}", keep=""))
        own = self.drawing.svg.replace(f' xmlns="{NAMESPACE}"', f" aria-label={words}", 1)
        return Markup(own)  # noqa: S704 - our own drawing, in which every text is escaped


@cache
def _environment(package: str = "mutandis.report") -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters |= formatting.FILTERS
    environment.filters["label"] = lambda name, labels: labels.column(name)
    environment.filters["said"] = lambda shown, words: words.value(shown)
    environment.filters["average"] = lambda number, words: words.average(number)
    environment.filters["difference"] = lambda number, words: words.difference(number)
    environment.globals["written"] = formatting.value  # for values that may have a label
    return environment


def _shown(value: object) -> object:
    """Replace control and direction characters in texts."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return printable(value, keep="\n")


def render(template: str, *, package: str = "mutandis.report", **context: Any) -> str:
    """Fill in a template of a package; what is missing from the context is an error, not a gap."""
    version = metadata.version("mutandis")
    return str(_environment(package).get_template(template).render(version=version, **context))


def to_pdf(html: str) -> bytes:
    """Convert a page to PDF; the same page gives the same bytes, on the same fonts.

    Nothing is fetched, from the network or from the disk: a page that asks for it is refused.
    """
    weasyprint = _weasyprint()
    refused: list[str] = []
    with _quiet("weasyprint"), _quiet("fontTools"), _fixed_time():
        page = weasyprint.HTML(string=html, url_fetcher=_refusing(refused))
        written: Any = page.write_pdf(pdf_identifier=b"mutandis")
    if refused:
        raise MutandisError(
            f"The page asks for something outside itself ({refused[0]}). A page that is to become "
            "a PDF file holds everything it needs."
        )
    return bytes(written)


def pdf_unavailable() -> str | None:
    """Explain why no PDF file can be made, and what to install; None where one can be made."""
    try:
        _weasyprint()
    except MutandisError as error:
        return str(error)
    return None


def _weasyprint() -> Any:
    try:
        with warnings.catch_warnings():
            # Without HarfBuzz-Subset, WeasyPrint announces that a later version will need it (then
            # an OSError, below). Until then fontTools does its work, and there is nothing to tell.
            warnings.filterwarnings("ignore", "HarfBuzz-Subset", DeprecationWarning)
            import weasyprint
    except ImportError:
        raise MutandisError(
            "PDF files need WeasyPrint, which is not installed. "
            "Install it with: pip install 'mutandis[pdf]'. The HTML file says the same, and a "
            "browser prints it."
        ) from None
    except OSError:
        raise MutandisError(
            "WeasyPrint is installed, but the libraries that it draws text with are not complete. "
            "Install Pango and HarfBuzz-Subset with the system's packages (on Debian: "
            "libpango-1.0-0, libpangoft2-1.0-0 and libharfbuzz-subset0)."
        ) from None
    return weasyprint


def _refusing(refused: list[str]) -> Any:
    """Make a fetcher that fetches nothing, and notes what kind of address it was asked for."""
    from weasyprint import urls

    # since version 68 a fetcher is an object with this base; before, any callable
    base: Any = getattr(urls, "URLFetcher", object)

    class Refusing(base):  # type: ignore[misc]
        def fetch(self, url: str, headers: object = None) -> NoReturn:  # noqa: ARG002
            refused.append(f"{url.partition(':')[0]}:")
            raise ValueError("nothing is fetched")

        __call__ = fetch

    return Refusing()


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Silence a library's remarks on style sheets; its errors still pass."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _fixed_time() -> Iterator[None]:
    """Keep the time of day out of embedded fonts, where fontTools would write it."""
    variable = "SOURCE_DATE_EPOCH"
    if variable in os.environ:
        yield
        return
    os.environ[variable] = "0"
    try:
        yield
    finally:
        del os.environ[variable]
