"""What sentences about the cases of a plan need to know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutandis.evidence.sentences import ExplanationContext

if TYPE_CHECKING:
    from mutandis.auditing.plan import Plan

__all__ = ["explanation_context"]


def explanation_context(plan: Plan) -> ExplanationContext:
    """Collect what sentences about a case need to know of its audit."""
    settings = plan.settings
    return ExplanationContext(
        ground=_ground(plan),
        alpha=settings.alpha,
        tau=settings.tau,
        measure=settings.measure,
        direction=settings.evidence.direction,
        max_distance=settings.similarity.max_distance,
        min_group=settings.similarity.min_group,
        primary=settings.primary,
        given="the worldview" if plan.worldview is not None else "the counterfactuals supplied",
        others="of the reference status"
        if settings.similarity.test_space == "reference"
        else "who are not protected on all of the grounds",
        note=", the figures being those of the attribute with the weakest evidence"
        if plan.combine == "multiple"
        else "",
        labels=plan.labels,
        words=plan.words,
    )


def _ground(plan: Plan) -> str:
    names = " and ".join(plan.labels.quoted(each.attribute) for each in plan.protections)
    if plan.combine is None:
        return f"the ground of {names}"
    return (
        f"{'each of' if plan.combine == 'multiple' else 'the combination of'} the grounds {names}"
    )
