"""The words in which a plan's cases are explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.evidence.methods import Center
from mutandis.evidence.sentences import MethodWords, Terms

if TYPE_CHECKING:
    from mutandis.auditing.plan import Plan
    from mutandis.evidence.methods import Method

__all__ = ["terms_of"]


def terms_of(plan: Plan) -> Terms:
    """Collect what sentences about a case need to know of its audit."""
    settings = plan.settings
    return Terms(
        ground=_ground(plan),
        negative=plan.outcome.negative,
        alpha=settings.alpha,
        tau=settings.tau,
        direction=settings.direction,
        max_distance=settings.max_distance,
        min_group=settings.min_group,
        primary=settings.primary,
        methods={method.name: _words(plan, method) for method in plan.methods},
        others="of the reference status"
        if settings.test_space == "reference"
        else "who are not protected on all of the grounds",
        note=", the figures being those of the attribute with the weakest evidence"
        if plan.combine == "multiple"
        else "",
    )


def _ground(plan: Plan) -> str:
    names = " and ".join(repr(each.attribute) for each in plan.protections)
    if plan.combine is None:
        return f"the ground of {names}"
    return (
        f"{'each of' if plan.combine == 'multiple' else 'the combination of'} the grounds {names}"
    )


def _words(plan: Plan, method: Method) -> MethodWords:
    counterfactual = method.center is Center.COUNTERFACTUAL
    given = "the worldview" if plan.worldview is not None else "the counterfactuals supplied"
    return MethodWords(
        title=method.title,
        around="the complainant's counterfactual" if counterfactual else "the complainant",
        given=given if counterfactual else "",
        counts_neighbours=method.count_neighbours,
        centers=int(method.count_centers and method.count_neighbours),
    )
