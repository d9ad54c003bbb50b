"""How kernels are compiled: once per machine, then read from a cache.

numba looks at one source file to see whether machine code is still good, but a kernel is compiled
together with the kernels of other files that it calls. So the cache has a folder of its own, named
after the contents of all of them: what was compiled from other sources is never even looked at.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["inlined", "kernel", "summing_kernel"]

_Function = TypeVar("_Function", bound="Callable[..., object]")


def kernel(function: _Function) -> _Function:
    """Compile a function, and let other threads run meanwhile."""
    return _compiled(function)


def summing_kernel(function: _Function) -> _Function:
    """Compile a function whose sums may be taken in any order, as vector units like it.

    Only for sums that are exact, of numbers: there the order changes nothing.
    """
    return _compiled(function, fastmath={"nnan", "nsz", "reassoc"})


def inlined(function: _Function) -> _Function:
    """Compile a part of a kernel into the kernel itself.

    A call hands over every array of a tuple with a count of its owners: too much for an inner loop.
    """
    return cast("_Function", numba.njit(inline="always")(function))


def _compiled(function: _Function, **options: Any) -> _Function:
    try:
        with _own_cache():
            made = numba.njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:  # no folder can be written to: then every process compiles anew
        made = numba.njit(nogil=True, **options)(function)
    return cast("_Function", made)


@contextmanager
def _own_cache() -> Iterator[None]:
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = _cache_folder(before)
    try:
        yield
    finally:
        settings.CACHE_DIR = before


@cache
def _cache_folder(wanted: str) -> str:
    """Choose where machine code is kept: where numba is told to, by the package, or in the home."""
    here = Path(__file__).parent
    digest = sha256(numba.__version__.encode())
    for source in sorted(here.glob("*.py")):
        digest.update(source.read_bytes())
    folder = here
    if wanted:
        folder = Path(wanted)
    elif not os.access(here, os.W_OK):
        home = os.environ.get("XDG_CACHE_HOME", "")
        folder = (Path(home) if home else Path.home() / ".cache") / "mutandis"
    return str(folder / "__pycache__" / f"kernels-{digest.hexdigest()[:16]}")
