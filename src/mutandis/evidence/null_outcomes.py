"""Outcomes as they would be if nothing but the counterfactual shift were left.

A model m of refusals is fitted on reference rows, where the protected status does no harm. Then
outcomes are drawn anew: m(x) for a reference row, m(x^CF) for a complainant, as if all were judged
as who they would be without the status. What CST still finds among such outcomes is noise, or the
geometry of the two spaces, but no discrimination.

The model is the share of refusals among the nearest reference rows, the row itself left out. It is
made of what the audit has anyway: the same distance, the same exact search, the same fair ties.
It assumes no shape, so it follows a sharp rule and a noisy one; a logistic curve has no finite fit
to a sharp rule, and none at all to one with corners. How many rows it looks at is chosen by
leave-one-out: the number whose shares predict the recorded outcomes with the least squared error
(the Brier score), a sharp rule asking for few rows and a noisy one for many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.engine.groups import sum_nearest
from mutandis.engine.study import mask
from mutandis.numeric.order import canonical_order
from mutandis.search.choose import choose_search
from mutandis.search.engine import Queries, Space, find_neighbourhoods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mutandis.data.population import Population
    from mutandis.engine.study import Study, World
    from mutandis.search.ties import Neighbourhoods

__all__ = ["NullOutcomes", "model_null_outcomes"]

_NEIGHBOURS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
"""The numbers of rows among which the model chooses; one search serves them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NullOutcomes:
    """The probability of a refusal, for all rows of any search space."""

    # the rows whose outcome is drawn: reference rows, then complainants, in an order that depends
    # on what they hold and not on the order of the table
    rows: NDArray[np.intp]
    # m(x) of the reference rows, m(x^CF) of the complainants; of an ordered outcome, for being
    # beyond each level: one row per level but the last
    probability: NDArray[np.float64]
    neighbours: int  # how many reference rows each probability looks at
    # of a score: how far those of the reference rows on record lie from the model, in steps
    residuals: NDArray[np.float64] | None = None

    def draw(self, is_negative: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        """Draw who is refused; rows that are in no space keep the outcome on record.

        A score is drawn as the mean of the model and the residual of some reference row, a level as
        the number of levels that it is beyond.
        """
        drawn = is_negative.copy()
        if self.probability.ndim > 1:
            drawn[self.rows] = (rng.random(len(self.rows)) < self.probability).sum(axis=0)
        elif self.residuals is None:
            drawn[self.rows] = rng.random(len(self.rows)) < self.probability
        else:
            chance = rng.choice(self.residuals, len(self.rows))
            drawn[self.rows] = np.rint(self.probability + chance)
        return drawn


def model_null_outcomes(study: Study, world: World) -> NullOutcomes:
    """Fit the model on the reference rows, and apply it to both worlds.

    An ordered outcome has a model for each level that people may be beyond.
    """
    marks = study.mark(study.outcomes)
    if marks.dtype == np.bool_ and marks.shape[1] > 1:
        models = [
            model_null_outcomes(replace(study, outcomes=beyond, mark=mask), world)
            for beyond in marks.T
        ]
        return replace(models[0], probability=np.stack([each.probability for each in models]))
    population, counterfactual = study.population, world.point
    if counterfactual is None:
        raise TypeError("null outcomes are drawn at the counterfactuals: there are none")
    # random numbers are handed out, and errors added up, in an order that the table has no part in
    order = canonical_order(
        population.columns,
        others={each.name: counterfactual.columns[each.name] for each in study.attributes},
        ids=population.ids,
    )
    reference = order[np.isin(order, np.concatenate([each.test for each in study.strata]))]
    complainants = order[np.isin(order, study.people)]
    is_negative = study.outcomes[reference]
    embedding = study.embed()
    points = embedding.apply(population, reference).points
    worlds: Sequence[Population] = world.draws or (counterfactual,)
    own_marks = is_negative[:, np.newaxis]
    space, standing = Space.of(points, own_marks, embedding.metric)
    search = choose_search(space)
    sizes = [k for k in _NEIGHBOURS if k < len(reference)]
    if not sizes:
        # a single reference row has no others beside it: its own outcome is all that is known
        only = np.full(len(reference) + len(complainants), float(is_negative.mean()))
        return NullOutcomes(
            rows=np.concatenate([reference, complainants]),
            probability=only,
            neighbours=1,
            residuals=None if is_negative.dtype == np.bool_ else np.zeros(1),
        )
    score = is_negative.dtype != np.bool_
    left_out = Queries(
        points=points,
        own=standing,
        own_negative=np.zeros(len(points), dtype=np.bool_) if score else is_negative,
        own_marks=own_marks if score else None,
    )
    among = find_neighbourhoods(search, left_out, sizes, marks=space.marks)
    column = _best(among, sizes, is_negative)
    around = []
    for each in worlds:
        centers = Queries.outside(embedding.apply(each, complainants).points)
        found = find_neighbourhoods(search, centers, sizes, marks=space.marks)
        around.append(_shares(found, column, sizes[column]))
    # where counterfactuals are open: the average over their draws
    probability = around[0] if len(around) == 1 else np.mean(around, axis=0)
    usual = _shares(among, column, sizes[column])
    return NullOutcomes(
        rows=np.concatenate([reference, complainants]),
        probability=np.concatenate([usual, probability]),
        neighbours=sizes[column],
        residuals=is_negative - usual if score else None,
    )


def _best(found: Neighbourhoods, sizes: list[int], is_negative: NDArray[Any]) -> int:
    """Find the size whose shares are nearest to the outcomes; of equals, the smallest."""
    errors = [
        float(np.mean((_shares(found, column, k) - is_negative) ** 2))
        for column, k in enumerate(sizes)
    ]
    return int(np.argmin(errors))


def _shares(found: Neighbourhoods, column: int, k: int) -> NDArray[np.float64]:
    return sum_nearest(found, column, k=k, ties="fair").mean()
