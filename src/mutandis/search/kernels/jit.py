"""How kernels are compiled: once per machine, then read from a cache.

numba looks at one source file to see whether machine code is still good, but a kernel is compiled
together with the kernels of other files that it calls. So the cache has a folder of its own, named
after the contents of all of them: what was compiled from other sources is never even read.
"""

from __future__ import annotations

import os
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
from numba.core.options import DefaultOptions

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["kernel", "making_kernel", "part", "summing_part"]

# a private option of numba: without it, kernels are slower and just as right
_OWNS_NOTHING: dict[str, bool] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}

_Function = TypeVar("_Function", bound="Callable[..., object]")


def kernel(function: _Function) -> _Function:
    """Compile a function that works on what it is given, and let other threads run meanwhile.

    It allocates nothing, so the references to its arrays need not be counted, as numba otherwise
    does each time one is taken out of a tuple: in an inner loop that takes longer than the work.
    """
    return _compiled(function, **_OWNS_NOTHING)


def making_kernel(function: _Function) -> _Function:
    """Compile a function that makes arrays."""
    return _compiled(function)


def part(function: _Function) -> _Function:
    """Compile a function that is inlined into kernels."""
    return _compiled(function, forceinline=True, **_OWNS_NOTHING)


def summing_part(function: _Function) -> _Function:
    """Compile a part of kernels whose sums may be taken in any order, as vector units need it.

    Only for sums that are exact: there the order changes nothing.
    """
    return _compiled(
        function, forceinline=True, fastmath={"nnan", "nsz", "reassoc"}, **_OWNS_NOTHING
    )


def _compiled(function: _Function, **options: Any) -> _Function:
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = _cache_folder(before)
    try:
        made = numba.njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:  # no folder can be written to: then every process compiles anew
        made = numba.njit(nogil=True, **options)(function)
    finally:
        settings.CACHE_DIR = before
    return cast("_Function", made)


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
