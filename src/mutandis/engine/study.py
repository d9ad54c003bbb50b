"""What is counted: who is compared with whom, and in which worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mutandis.geometry.distances import Sample, distance_named
from mutandis.geometry.embedding import Embedding

if TYPE_CHECKING:
    from mutandis.data.attribute import Attribute
    from mutandis.data.population import Population
    from mutandis.data.protection import Stratum
    from mutandis.geometry.embedding import Scaling
    from mutandis.geometry.index import Ties
    from mutandis.mapped import Rows

Mark = Callable[[NDArray[Any]], NDArray[Any]]
"""Returns what is summed over groups, of outcomes: a column for each mark."""


def mask(refused: NDArray[Any]) -> NDArray[Any]:
    """Return refusals as the one column of marks."""
    return refused[:, np.newaxis]


def columns(marks: NDArray[Any]) -> NDArray[Any]:
    """Return marks, which are columns already."""
    return marks.reshape(len(marks), -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One protection's settled question: who is compared with whom, on what, and how."""

    population: Population  # the table, D
    strata: tuple[Stratum, ...]  # complainants and their search spaces, which are always whole
    attributes: tuple[Attribute, ...]  # what people are compared on
    outcomes: NDArray[Any]  # whether rows were refused; or the steps from the best value
    ks: tuple[int, ...]
    mark: Mark = mask  # makes columns of marks of outcomes; all that searches see of these
    distance: str = "gower"
    scaling: Scaling = "range"
    ties: Ties = "fair"
    max_distance: float | None = None
    finer: int = 1  # parts of a step from one value to the next in which distances are exact

    @property
    def people(self) -> Rows:
        """The complainants' rows, in the order of the table."""
        if len(self.strata) == 1:
            return self.strata[0].complainants
        return np.sort(np.concatenate([stratum.complainants for stratum in self.strata]))

    @property
    def protected(self) -> Rows:
        """The rows of all control spaces, in the order of the table."""
        if len(self.strata) == 1:
            return self.strata[0].control
        return np.unique(np.concatenate([stratum.control for stratum in self.strata]))

    @property
    def reference(self) -> Rows:
        """The rows of all test spaces, in the order of the table."""
        first = self.strata[0].test
        if all(stratum.test is first for stratum in self.strata):
            return first
        return np.unique(np.concatenate([stratum.test for stratum in self.strata]))

    def marks(self, rows: Rows) -> NDArray[Any]:
        """Return the marks of some rows, by column."""
        return self.mark(self.outcomes[rows])

    @property
    def width(self) -> int:
        """Number of columns of marks."""
        return int(self.mark(self.outcomes[:1]).shape[1])

    def embed(self) -> Embedding:
        """Fit the distance on D."""
        embedding = Embedding.fit(
            self.population, self.attributes, scaling=self.scaling, parts=self.finer
        )
        learn = partial(self._sample, embedding)
        return distance_named(self.distance).fit(embedding, self.attributes, learn)

    def _sample(self, embedding: Embedding) -> Sample:
        """Return what a distance may learn from."""
        protected, reference = (np.zeros(len(self.population), dtype=np.bool_) for _ in range(2))
        for stratum in self.strata:
            protected[stratum.control] = True
            reference[stratum.test] = True
        names = (self.population.categories(name) for name in embedding.nominal)
        return Sample(
            points=embedding.apply(self.population).points,
            is_protected=protected,
            is_reference=reference & ~protected,
            is_negative=self.outcomes,
            levels=tuple(len(each.levels) for each in names),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A counterfactual world, which may be a mixture of several."""

    # the counterfactual table, D^CF; of a mixture, the one that is shown. None: people are compared
    # as they are
    point: Population | None = None
    # the worlds of a mixture, each with a whole number as its weight; empty: `point` alone
    parts: Sequence[tuple[Population, int]] = ()
    # whether the parts are draws of what the facts leave open. Only where nothing is drawn is a
    # counterfactual between two values that rows have moved to both of them in turn
    drawn: bool = False
    decided: NDArray[Any] | None = field(default=None, repr=False)  # outcomes of rows in `point`
    # outcomes of the complainants in each part
    decided_parts: NDArray[Any] | None = field(default=None, repr=False)

    @property
    def draws(self) -> tuple[Population, ...]:
        """The draws of an open counterfactual."""
        return tuple(part for part, _ in self.parts) if self.drawn else ()

    @property
    def weight(self) -> int:
        """The sum of the weights of the parts; 1 without any."""
        return sum(weight for _, weight in self.parts) or 1

    def alone(self) -> Iterator[World]:
        """Iterate over the parts as worlds of their own."""
        for number, (part, _) in enumerate(self.parts):
            decided = None if self.decided_parts is None else self.decided_parts[[number]]
            yield World(point=part, decided_parts=decided)

    def decided_on(self, people: Rows) -> NDArray[Any] | None:
        """Return the outcomes of complainants in this world, where it is no mixture."""
        if self.decided is not None:
            return self.decided[people]
        return None if self.decided_parts is None or self.parts else self.decided_parts[0]
