"""Templates that are compiled once per machine: reading one takes longer than filling it in."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from mutandis import errors
from mutandis.limits import cache_folder
from mutandis.report import formatting

if TYPE_CHECKING:
    from jinja2.bccache import Bucket

__all__ = ["TemplateCache"]


class TemplateCache(jinja2.FileSystemBytecodeCache):
    """Keeps compiled templates where Python keeps compiled modules.

    What a template becomes depends on its own text, on Jinja and Python, and on the settings and
    filters of the environment, by which constants are filled in already. Where nothing can be read
    or written, templates are compiled each time.
    """

    def __init__(self) -> None:
        here = Path(__file__).parent
        others = (Path(str(module.__file__)) for module in (errors, formatting))
        folder = cache_folder(
            "templates",
            [here / "html.py", Path(__file__), *others],
            beside=here,
            version=f"{jinja2.__version__} {sys.version}",
        )
        super().__init__(str(folder))

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                Path(self.directory).mkdir(parents=True, exist_ok=True)
                super().dump_bytecode(bucket)
