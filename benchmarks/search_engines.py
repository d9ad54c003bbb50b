"""Searches that are timed against each other: ours, and those a user could pick instead.

All answer the same question: how far away (as the mean over attributes) is the k-th nearest
reference row? The peers have the easier job: they may leave out any of the rows that tie for the
last place, and do not count outcomes. A nominal attribute is one-hot for them, times 0.5: then two
different levels are at distance 1 in L1.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mutandis.data.attribute import AttributeKind
from mutandis.data.population import Population
from mutandis.geometry.compiled import CompiledSearch
from mutandis.geometry.embedding import Embedding
from mutandis.geometry.index import Queries, Search, Space
from mutandis.geometry.index import find_neighbourhoods as find

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from search_data import Table

TOLERANCE = 1e-6
"""How far k-th distances may be apart: faiss works in float32."""

# the first queries, with which ours makes its index
_FIRST, _TYPICAL_K = 64, 100


class DisagreementError(Exception):
    """Two searches found different distances: at least one was called in a wrong way."""


class Engine(Protocol):
    """A search over the reference rows of one table, with the protected rows as queries."""

    @property
    def name(self) -> str: ...

    def build(self, rows: int | None = None) -> None:
        """Build the index, over the first rows only if so told: to foresee the whole time."""

    def search(self, queries: int, k: int) -> NDArray[np.float64]:
        """Find the distance of the k-th nearest for the first so many queries."""
        ...


@dataclass(slots=True)
class Ours:
    """The compiled kernels, also where an audit would leave a small table to SciPy."""

    table: Table
    order: NDArray[np.intp]
    name: str = "ours"
    embedding_seconds: float = 0.0
    _embedding: Embedding = field(init=False)
    _queries: Queries = field(init=False)
    _space: tuple[Any, NDArray[np.bool_]] = field(init=False)
    _search: Search = field(init=False)

    def __post_init__(self) -> None:
        population = Population.from_frame(self.table.frame, attributes=self.table.attributes)
        start = perf_counter()
        self._embedding = Embedding.fit(population, self.table.attributes)
        points = self._embedding.apply(population).points
        self.embedding_seconds = perf_counter() - start
        reference = np.flatnonzero(~self.table.is_protected)
        self._space = points.take(reference), self.table.is_negative[reference]
        self._queries = Queries.outside(points.take(self.order))

    @property
    def backend(self) -> str:
        return self._search.name

    def build(self, rows: int | None = None) -> None:
        points, is_negative = self._space
        if rows is not None:
            points, is_negative = points.take(np.arange(rows)), is_negative[:rows]
        space, _ = Space.of(points, is_negative, self._embedding.metric)
        self._search = CompiledSearch(space)
        # the kernel is chosen, and its data are laid out, by the first queries
        self.search(_FIRST, min(_TYPICAL_K, len(points)))

    def search(self, queries: int, k: int) -> NDArray[np.float64]:
        chosen = self._queries
        if queries < len(chosen):
            chosen = chosen.take(np.arange(queries))
        return self._embedding.metric.as_float(find(self._search, chosen, [k]).radius[:, 0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """A table in the form that peers search: the L1 distance is the mean over attributes."""

    reference: NDArray[np.float64]
    queries: NDArray[np.float64]

    @classmethod
    def of(cls, table: Table, order: NDArray[np.intp]) -> Vectors:
        """Scale and encode, without any of our own code: an independent check of it."""
        blocks: list[NDArray[np.float64]] = []
        for attribute in table.attributes:
            values = table.frame[attribute.name].to_numpy()
            if attribute.kind is AttributeKind.NOMINAL:
                blocks.append((values[:, None] == np.unique(values)) * 0.5)
            else:
                low, high = values.min(), values.max()
                blocks.append(((values - low) / (high - low))[:, None])
        every = np.concatenate(blocks, axis=1) / len(table.attributes)
        return cls(reference=every[~table.is_protected], queries=every[order])


@dataclass(slots=True)
class ScikitLearn:
    """One of scikit-learn's three algorithms, on all cores."""

    vectors: Vectors
    algorithm: str
    _index: Any = None

    @property
    def name(self) -> str:
        return self.algorithm

    def build(self, rows: int | None = None) -> None:
        neighbours = _imported("sklearn.neighbors").NearestNeighbors
        index = neighbours(algorithm=self.algorithm, metric="manhattan", n_jobs=-1)
        self._index = index.fit(self.vectors.reference[:rows])

    def search(self, queries: int, k: int) -> NDArray[np.float64]:
        distances, _ = self._index.kneighbors(self.vectors.queries[:queries], n_neighbors=k)
        return np.asarray(distances[:, -1])


@dataclass(slots=True)
class SciPy:
    """SciPy's KD-tree, on all cores."""

    vectors: Vectors
    name: str = "cKDTree"
    _index: Any = None

    def build(self, rows: int | None = None) -> None:
        self._index = _imported("scipy.spatial").cKDTree(self.vectors.reference[:rows])

    def search(self, queries: int, k: int) -> NDArray[np.float64]:
        distances, _ = self._index.query(self.vectors.queries[:queries], k=k, p=1, workers=-1)
        return np.asarray(distances).reshape(-1, k)[:, -1]


@dataclass(slots=True)
class Faiss:
    """The flat L1 index of faiss, on all cores; it works in float32."""

    vectors: Vectors
    name: str = "flat L1"
    _index: Any = None
    _queries: NDArray[np.float32] = field(init=False)

    def __post_init__(self) -> None:
        self._queries = np.ascontiguousarray(self.vectors.queries, dtype=np.float32)

    def build(self, rows: int | None = None) -> None:
        faiss = _imported("faiss")
        self._index = faiss.IndexFlat(self.vectors.reference.shape[1], faiss.METRIC_L1)
        self._index.add(np.ascontiguousarray(self.vectors.reference[:rows], dtype=np.float32))

    def search(self, queries: int, k: int) -> NDArray[np.float64]:
        distances, _ = self._index.search(self._queries[:queries], k)
        return np.asarray(distances[:, -1], dtype=np.float64)


PEERS = ("scikit-learn", "scipy", "faiss")


def peers_of(vectors: Vectors) -> dict[str, list[Engine]]:
    """Give the engines that stand for each peer; the fastest of them counts."""
    algorithms = ("kd_tree", "ball_tree", "brute")
    return {
        "scikit-learn": [ScikitLearn(vectors, algorithm) for algorithm in algorithms],
        "scipy": [SciPy(vectors)],
        "faiss": [Faiss(vectors)],
    }


def is_installed(peer: str) -> bool:
    """Tell whether a peer can be imported."""
    try:
        _imported({"scikit-learn": "sklearn.neighbors", "scipy": "scipy.spatial"}.get(peer, peer))
    except ImportError:
        return False
    return True


def check_agreement(ours: NDArray[np.float64], theirs: NDArray[np.float64], name: str) -> None:
    """Refuse k-th distances that are not the same: a broken call must not look fast."""
    shared = min(len(ours), len(theirs))
    if not shared or not np.isfinite(theirs[:shared]).all():
        raise DisagreementError(f"{name} answered no queries, or not with numbers.")
    apart = float(np.max(np.abs(ours[:shared] - theirs[:shared])))
    if apart > TOLERANCE:
        raise DisagreementError(
            f"{name} finds k-th distances that are up to {apart:.2g} from ours; "
            f"{TOLERANCE:.0e} is allowed. One of the two searches is called in a wrong way."
        )


def _imported(module: str) -> Any:
    with warnings.catch_warnings():
        # what faiss was generated with speaks of its own deprecations
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_module(module)
