"""The people of one complainant's groups, with their ids and outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.engine.members import Lister, Members
from mutandis.engine.tally import Pair
from mutandis.numeric.order import rank_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.auditing.results import Ground
    from mutandis.engine.members import Listed
    from mutandis.engine.methods import Method

__all__ = ["list_members"]


def list_members(ground: Ground, place: int, method: Method, index: int) -> Pair[Members]:
    """List both groups of one complainant; a center that is counted comes first."""
    row = int(ground.study.people[place])
    lister = Lister(engine=ground.engine, world=ground.world, links=ground.tally.links)
    control, test = [], []
    if method.count_centers:
        control.append(_centers(ground, row, ground.study.outcomes[[row]], np.ones(1)))
        test.append(_counterfactual_centers(ground, lister, place, method, index))
    if method.count_neighbours:
        people = lister.people(row, method, index)
        control.append(_named(ground, people.control))
        test.append(_named(ground, people.test))
    return Pair(control=Members.join(control), test=Members.join(test))


def _named(ground: Ground, listed: Listed) -> Members:
    """Sort people by distance, those at the same distance by their ids."""
    ids = ground.plan.population.ids
    listed = listed.take(np.lexsort((rank_ids(ids[listed.rows]), listed.distance)))
    return Members(
        ids=ids[listed.rows],
        distance=listed.distance,
        place=listed.place,
        is_negative=ground.study.outcomes[listed.rows],
        is_center=np.zeros(len(listed.rows), dtype=np.bool_),
    )


def _counterfactual_centers(
    ground: Ground, lister: Lister, place: int, method: Method, index: int
) -> Members:
    """List a counterfactual once for each outcome, with its part of the draws that have it."""
    row, world = int(ground.study.people[place]), ground.world
    if world.decided_parts is None:
        if world.decided is None:
            raise TypeError("the plan admits no method that needs an outcome that was not decided")
        return _centers(ground, row, world.decided[[row]], np.ones(1))
    decided = world.decided_parts[:, place]
    weight = np.ones(len(decided))
    if method.count_neighbours:
        weight = lister.part_weights(row, index)
    values = np.unique(decided)[::-1]  # the refused first; of a score, the worst
    places = np.array([weight[decided == each].sum() for each in values]) / len(decided)
    return _centers(ground, row, values[places > 0], places[places > 0])


def _centers(
    ground: Ground, row: int, outcomes: NDArray[Any], place: NDArray[np.float64]
) -> Members:
    return Members(
        ids=ground.plan.population.ids[np.full(len(outcomes), row)],
        distance=np.zeros(len(outcomes)),
        place=place,
        is_negative=outcomes,
        is_center=np.ones(len(outcomes), dtype=np.bool_),
    )
