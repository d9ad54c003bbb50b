"""Pages as PDF, through WeasyPrint (the extra `pdf`)."""

from __future__ import annotations

import logging
import os
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from mutandis.errors import MutandisError
from mutandis.store.text_files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["pdf_unavailable", "to_pdf", "write_pdf"]


def write_pdf(html: str, path: str | os.PathLike[str]) -> None:
    """Write a page that needs no other file as a PDF file: the whole file, or nothing."""
    write_atomically(path, to_pdf(html))


def to_pdf(html: str) -> bytes:
    """Give a page as PDF; the same page gives the same bytes, on the same fonts.

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
    """Say why no PDF file can be made here, and what to install; None where one can be made."""
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
    """Keep a library's remarks on style sheets to itself; its errors still pass."""
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
