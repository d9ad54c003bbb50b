"""How far a search has come, for somebody who waits."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "silent"]

Progress = Callable[[int], None]
"""Is told, again and again, for how many more complainants a search is done."""


def silent(more: int) -> None:
    """Tell nobody."""
