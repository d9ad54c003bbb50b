"""Pages as PDF, through WeasyPrint (the extra `pdf`)."""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mutandis.errors import MutandisError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["to_pdf", "write_pdf"]


def write_pdf(html: str, path: str | os.PathLike[str]) -> None:
    """Write a page as a PDF file: the whole file, or nothing.

    Parameters
    ----------
    html
        The page; it must not need any other file.
    path
        Where to write.
    """
    written = to_pdf(html)
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:60]}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(written)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp's files are for their owner alone; a case file is as open as any other file
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def to_pdf(html: str) -> bytes:
    """Give a page as PDF; the same page gives the same bytes, on the same fonts.

    Nothing is fetched, from the network or from the disk: a page that asks for it is refused.
    """
    try:
        import weasyprint
    except ImportError:
        raise MutandisError(
            "PDF files need WeasyPrint, which is not installed. "
            "Install it with: pip install 'mutandis[pdf]'. The HTML file says the same, and a "
            "browser prints it."
        ) from None
    except OSError:
        raise MutandisError(
            "WeasyPrint is installed, but the library Pango that it draws text with is not. "
            "Install it with the system's packages (on Debian: libpango-1.0-0 and "
            "libpangoft2-1.0-0)."
        ) from None
    refused: list[str] = []
    with _quiet("weasyprint"), _quiet("fontTools"):
        page = weasyprint.HTML(string=html, url_fetcher=_refusing(refused))
        written: Any = page.write_pdf(pdf_identifier=b"mutandis")
    if refused:
        raise MutandisError(
            f"The page asks for something outside itself ({refused[0]}). A page that is to become "
            "a PDF file holds everything it needs."
        )
    return bytes(written)


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
