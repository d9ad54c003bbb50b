"""What the tests of populations share: a small table, and how a frame's columns are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mutandis.frames import open_frame

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def applicants() -> dict[str, list[Any]]:
    """Give three people whose notes nobody else may read."""
    return {
        "salary": [30.5, 10.0, 20.25],
        "job": ["cook", "clerk", "cook"],
        "gender": [1, 0, 1],
        "note": ["SECRET-NAME", "b", "c"],
    }


@pytest.fixture(scope="session")
def columns_of() -> Callable[[Any], dict[str, list[Any]]]:
    """Give the columns of a frame of any type as lists."""

    def read(native: Any) -> dict[str, list[Any]]:
        frame = open_frame(native)
        return {name: frame[name].to_list() for name in frame.columns}

    return read
