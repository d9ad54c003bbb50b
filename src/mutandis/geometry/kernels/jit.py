"""How kernels are compiled: once per machine, then read from a cache.

numba looks at one source file to see whether machine code is still good, but a kernel is compiled
together with the parts in other files that it calls. So the cache has a folder of its own, named
after the contents of all of them: what was compiled from other sources is never even read.

The first search on a machine waits for the compiler, so kernels are written to be compiled quickly
(`benchmarks/first_search.py` measures it). A part is pasted into each kernel that calls it before
types are inferred: compiled by itself, it would be optimized, translated and stored by itself, and
then once more with each caller. Kernels allocate nothing, and fill arrays in loops: `array[:] = 0`
takes numba ten times as long.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
from numba.core import event
from numba.core.options import DefaultOptions

if TYPE_CHECKING:
    from collections.abc import Callable


# Kernels allocate nothing, so references to arrays need not be counted, as numba otherwise does
# each time one is taken out of a tuple: in an inner loop that takes longer than the work. This is a
# private option of numba: without it, kernels are slower and just as right.
_OWNS_NOTHING: dict[str, bool] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}

_Function = TypeVar("_Function", bound="Callable[..., object]")


def kernel(function: _Function) -> _Function:
    """Compile a function that works on what it is given, and let other threads run meanwhile."""
    return _compiled(function, no_cfunc_wrapper=True, **_OWNS_NOTHING)


def part(function: _Function) -> _Function:
    """Make a part of kernels: what calls it is compiled as if it were written there."""
    return _compiled(function, inline="always", **_OWNS_NOTHING)


def repeated_part(function: _Function) -> _Function:
    """Compile a small part that is called in many places, and is quicker compiled by itself."""
    return _compiled(function, forceinline=True, no_cfunc_wrapper=True, **_OWNS_NOTHING)


def summing_part(function: _Function) -> _Function:
    """Compile a part whose sums are exact and so may be taken in any order, as vector units do."""
    return _compiled(
        function,
        forceinline=True,
        no_cfunc_wrapper=True,
        fastmath={"nnan", "nsz", "reassoc"},
        **_OWNS_NOTHING,
    )


def _compiled(function: _Function, **options: Any) -> _Function:
    # rewrites look for expressions of whole arrays, of which there are none here
    options |= {"nogil": True, "no_rewrites": True}
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = _cache_folder(before)
    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder can be written to: then every process compiles anew
        made = numba.njit(**options)(function)
    finally:
        settings.CACHE_DIR = before
    return cast("_Function", made)


@cache
def _cache_folder(wanted: str) -> str:
    """Choose where machine code is kept: where numba is told to, by the package, or in the home.

    The folder is named after the contents of the sources and the compiler's version: what was
    compiled from others is never even read.
    """
    here = Path(__file__).parent
    digest = sha256(numba.__version__.encode())
    for source in sorted(here.glob("*.py")):
        digest.update(source.read_bytes())
    folder = Path(wanted) if wanted else here
    if not wanted and not os.access(here, os.W_OK):
        home = os.environ.get("XDG_CACHE_HOME", "")
        folder = (Path(home) if home else Path.home() / ".cache") / "mutandis"
    return str(folder / "__pycache__" / f"kernels-{digest.hexdigest()[:16]}")


class _FirstUse(event.Listener):
    """Print a note on a terminal when kernels are compiled."""

    said = False

    def on_start(self, started: Any) -> None:
        function = started.data["dispatcher"].py_func
        if self.said or not str(function.__module__).startswith("mutandis."):
            return
        self.said = True
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("compiling the search once for this machine (about 15 s)\n")
            sys.stderr.flush()

    def on_end(self, ended: Any) -> None:
        """Do nothing."""


# numba compiles under a lock, so that no two threads are heard at the same time
cast("Any", event).register("numba:compile", _FirstUse())
