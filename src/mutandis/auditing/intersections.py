"""Several protected attributes: each alone, and all ways to combine them."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from mutandis.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan

__all__ = ["audit_intersections"]

# with more, there are too many combinations to reconcile by eye (and most have no rows)
_MOST = 3


def audit_intersections(plan: Plan) -> dict[str, Audit]:
    """Audit each of two or three protected attributes, and every way to combine them.

    The audits are returned by name: a for one attribute, a + b for multiple discrimination on both,
    a × b for the intersection.

    Parameters
    ----------
    plan
        What `mutandis.plan` returns for a list of protections; whether it combines them as
        "multiple" or "intersectional" makes no difference here. An attribute that is intervened
        on takes no part in the distance, wherever it is listed.

    Examples
    --------
    Two attributes, each of which raises the refusals a little. Who is found by the intersection
    and by neither attribute alone?

    >>> import numpy as np
    >>> import mutandis as mm
    >>> rng = np.random.default_rng(0)
    >>> black, woman = rng.integers(0, 2, size=(2, 400))
    >>> score = rng.integers(0, 21, size=400) - 2 * black - 2 * woman
    >>> plan = mm.plan(
    ...     {"black": black, "woman": woman, "score": score, "granted": score >= 10},
    ...     outcome="granted",
    ...     negative=False,
    ...     protected=[
    ...         mm.Protection("black", value=1, reference=0),
    ...         mm.Protection("woman", value=1, reference=0),
    ...     ],
    ...     combine="multiple",
    ...     attributes={"score": "continuous"},
    ...     worldview=mm.Worldview({"score": mm.Linear("black", "woman")}),
    ...     decision="score >= 10",
    ...     ks=(15,),
    ...     evidence=mm.Evidence(primary=("cst_without", 15)),
    ... )
    >>> audits = mm.audit_intersections(plan)
    >>> tables = {name: each.findings() for name, each in audits.items()}
    >>> cases = {name: set(rows["id"][rows["delta_p"] > 0]) for name, rows in tables.items()}
    >>> {name: len(ids) for name, ids in cases.items()}
    {'black': 32, 'woman': 38, 'black + woman': 14, 'black × woman': 46}
    >>> len(cases["black × woman"] - cases["black"] - cases["woman"])
    28
    """
    if not 2 <= len(plan.protections) <= _MOST:
        raise PlanError(
            f"Intersections take two or three protections, not {len(plan.protections)}. "
            "Make the plan with a list of them, and combine='multiple'."
        )
    if plan.counterfactuals is not None:
        raise PlanError(
            "The plan was made with counterfactuals=, one table for one intervention. "
            "Intersections have several interventions: make it with worldview=."
        )
    return {name: each.run() for name, each in dict(_combined(plan)).items()}


def _combined(plan: Plan) -> Iterator[tuple[str, Plan]]:
    for each in plan.protections:
        yield each.attribute, plan.restricted_to([each], None)
    for size in range(2, len(plan.protections) + 1):
        for several in combinations(plan.protections, size):
            names = [each.attribute for each in several]
            yield " + ".join(names), plan.restricted_to(several, "multiple")
            yield " × ".join(names), plan.restricted_to(several, "intersectional")
