"""Choose the backend. All are exact: the choice changes the time and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.similarity.brute import BruteSearch
from mutandis.similarity.tree import TreeSearch, tree_dimensions

if TYPE_CHECKING:
    from mutandis.similarity.search import Search, Space

__all__ = ["choose_search"]

# beyond so many coordinates a KD-tree looks at nearly every point, and a scan is cheaper
_TREE_DIMENSIONS = 40


def choose_search(space: Space, *, threads: int = -1) -> Search:
    """Choose the backend that is likely to be fastest in this space."""
    if not 0 < tree_dimensions(space.points) <= _TREE_DIMENSIONS:
        return BruteSearch(space=space)
    return TreeSearch.build(space, threads=threads)
