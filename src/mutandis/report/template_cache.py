"""Templates that are compiled once per machine: reading one takes longer than filling it in."""

from __future__ import annotations

import marshal
import os
import sys
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

import jinja2

from mutandis import errors
from mutandis.limits import cache_folder
from mutandis.report import formatting

if TYPE_CHECKING:
    from jinja2.bccache import Bucket

__all__ = ["TemplateCache"]


class TemplateCache(jinja2.BytecodeCache):
    """Keeps compiled templates as Python keeps compiled modules, and where.

    What a template becomes depends on its own text, on Jinja and Python, and on the settings and
    filters of the environment, by which constants are filled in already.
    """

    def __init__(self) -> None:
        here = Path(__file__).parent
        others = (Path(str(module.__file__)) for module in (errors, formatting))
        self._folder = cache_folder(
            "templates",
            [here / "html.py", Path(__file__), *others],
            beside=here,
            version=f"{jinja2.__version__} {sys.version}",
        )

    def load_bytecode(self, bucket: Bucket) -> None:
        """Read what was compiled from the same text, if it is there and whole."""
        with suppress(OSError, ValueError, TypeError, EOFError):
            code = marshal.loads(self._path(bucket).read_bytes())  # noqa: S302 - written by us
            bucket.code = code if isinstance(code, CodeType) else None

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled; where that cannot be written, it is compiled each time."""
        if sys.dont_write_bytecode:
            return
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            part = self._folder / f"{bucket.key}.{os.getpid()}"  # whole, or not there
            part.write_bytes(marshal.dumps(bucket.code))
            part.replace(self._path(bucket))

    def _path(self, bucket: Bucket) -> Path:
        return self._folder / f"{bucket.key}-{bucket.checksum}"
