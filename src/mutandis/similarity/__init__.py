"""Who is like whom: exact distances, fair ties, exact search."""

from mutandis.similarity.brute import BruteSearch
from mutandis.similarity.choose import choose_search
from mutandis.similarity.distance import Metric, Points
from mutandis.similarity.embedding import Axis, Embedded, Embedding, Scaling
from mutandis.similarity.search import Queries, Search, Space, find_neighbourhoods
from mutandis.similarity.ties import Neighbourhoods, Ties, share_of
from mutandis.similarity.tree import TreeSearch

__all__ = [
    "Axis",
    "BruteSearch",
    "Embedded",
    "Embedding",
    "Metric",
    "Neighbourhoods",
    "Points",
    "Queries",
    "Scaling",
    "Search",
    "Space",
    "Ties",
    "TreeSearch",
    "choose_search",
    "find_neighbourhoods",
    "share_of",
]
