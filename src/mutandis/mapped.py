"""Large arrays that lie in files instead of memory.

Where an audit is given little memory, or is computed by workers, the arrays that it holds on to are
written to files and mapped. The system reads parts of them when they are looked at, and takes the
memory back when it is needed for something else. The numbers are the same.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import ContextVar
from mmap import mmap
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import DTypeLike


Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = NDArray[np.intp]

_T = TypeVar("_T", bound=np.generic)

# smaller arrays stay in memory
_LEAST_BYTES = 1 << 22
# bytes that are copied at a time
_BLOCK = 1 << 24

_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


@contextmanager
def arrays_in_files(folder: Path | None) -> Iterator[None]:
    """Keep large arrays in files of this folder while the block runs; None: in memory.

    The files have no names, so that none is left behind however the process ends; the room that
    one takes is given back when its array is no longer used.
    """
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def uses_files() -> bool:
    """Return whether large arrays are kept in files."""
    return _folder.get() is not None


def empty(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Make an array of zeros, to be kept."""
    kind, folder = np.dtype(dtype), _folder.get()
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    if folder is None or size < _LEAST_BYTES or kind.hasobject:
        return np.zeros(shape, dtype=kind)
    with TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):  # a full disk is an error here, and a signal later
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
        return np.ndarray(shape, dtype=kind, buffer=mmap(file.fileno(), size))


def in_file(array: NDArray[_T]) -> NDArray[_T]:
    """Return an array that is to be kept: a copy in a file if it is large and in memory."""
    is_small = array.nbytes < _LEAST_BYTES or 0 in array.strides
    if not uses_files() or is_small or array.dtype.hasobject or is_mapped(array):
        return array
    return copy(array)


def copy(array: NDArray[_T]) -> NDArray[_T]:
    """Copy an array that is to be kept."""
    copied = empty(array.shape, array.dtype)
    for rows in _blocks(copied):
        copied[rows] = array[rows]
    return copied


def take(array: NDArray[_T], rows: NDArray[Any] | slice) -> NDArray[_T]:
    """Return some rows of an array, to be kept; a slice of it is not copied."""
    if isinstance(rows, slice) or rows.dtype == np.bool_:
        return array[rows]
    if not uses_files():
        # of a table in one block, NumPy takes rows in a sixth of the time that an index needs
        whole = array.ndim > 1 and array.flags.c_contiguous
        return np.take(array, rows, axis=0) if whole else array[rows]
    taken = empty((len(rows), *array.shape[1:]), array.dtype)
    for block in _blocks(taken):
        taken[block] = array[rows[block]]
    return taken


def _blocks(array: NDArray[Any]) -> Iterator[slice]:
    size = max(1, _BLOCK * len(array) // max(1, array.nbytes))
    return (slice(start, start + size) for start in range(0, len(array), size))


def is_mapped(array: NDArray[Any]) -> bool:
    """Return whether an array lies in a file."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap)
