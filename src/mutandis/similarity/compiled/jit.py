"""How kernels are compiled: once per machine, then read from a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["inlined", "kernel", "summing_kernel"]

_Function = TypeVar("_Function", bound="Callable[..., object]")


def kernel(function: _Function) -> _Function:
    """Compile a function, and let other threads run meanwhile.

    Machine code is kept beside the module, or in the user's cache folder where the package cannot
    be written to. Where neither can, every process compiles anew.
    """
    return _compiled(function, frozenset())


def inlined(function: _Function) -> _Function:
    """Compile a part of a kernel into the kernel itself.

    A call hands over every array of a tuple with a count of its owners: too much for an inner loop.
    """
    return cast("_Function", numba.njit(inline="always")(function))


def summing_kernel(function: _Function) -> _Function:
    """Compile a function whose sums may be taken in any order, as vector units like it.

    Only for sums that are exact: there the order changes nothing.
    """
    return _compiled(function, frozenset({"reassoc", "nsz"}))


def _compiled(function: _Function, fastmath: frozenset[str]) -> _Function:
    try:
        made = numba.njit(nogil=True, cache=True, fastmath=set(fastmath))(function)
    except RuntimeError:  # numba found no folder that it can write its cache to
        made = numba.njit(nogil=True, fastmath=set(fastmath))(function)
    return cast("_Function", made)
