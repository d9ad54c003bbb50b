"""Several protected attributes: each alone, and all ways to combine them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.errors import PlanError, printable
from mutandis.frames import columns_of, to_frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.config.schema import MethodName
    from mutandis.data.protection import Protection

__all__ = ["Intersections", "audit_intersections"]

# with more, there are too many combinations to reconcile by eye (and most have no rows)
_MOST = 3


def audit_intersections(plan: Plan) -> Intersections:
    """Audit each of two or three protected attributes, and every way to combine them.

    Parameters
    ----------
    plan
        What `mutandis.plan` returns for a list of protections; whether it combines them as
        "multiple" or "intersectional" makes no difference here. An attribute that is intervened
        on takes no part in the distance, wherever it is listed.

    Examples
    --------
    Two attributes, each of which raises the refusals a little:

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
    >>> found = mm.audit_intersections(plan)
    >>> print(found.counts()[["audit", "complainants", "cases"]].to_string(index=False))
            audit  complainants  cases
            black           221     32
            woman           206     38
    black + woman           113     14
    black × woman           113     46
    >>> len(found.only_intersectional())
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
    plans = {name: each for size in _sizes(plan) for name, each in _combined(plan, size)}
    return Intersections(audits={name: each.run() for name, each in plans.items()})


def _sizes(plan: Plan) -> range:
    return range(1, len(plan.protections) + 1)


def _combined(plan: Plan, size: int) -> Iterator[tuple[str, Plan]]:
    """Yield the plans of so many attributes: a, a + b (multiple) and a × b (intersectional)."""
    several: Sequence[Protection]
    for several in combinations(plan.protections, size):
        names = [each.attribute for each in several]
        if size == 1:
            yield names[0], plan.restricted_to(several, None)
        else:
            yield " + ".join(names), plan.restricted_to(several, "multiple")
            yield " × ".join(names), plan.restricted_to(several, "intersectional")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Intersections:
    """Audits of several protected attributes: each alone, and all ways to combine them.

    Parameters
    ----------
    audits
        The audits by name: a for one attribute, a + b for multiple, a × b for intersectional.
    """

    audits: Mapping[str, Audit]

    def counts(self, method: MethodName | None = None, *, k: int | None = None) -> Any:
        """Count the cases of every audit under one method and k.

        Parameters
        ----------
        method, k
            Default: the primary ones.
        """
        rows = []
        for name, each in self.audits.items():
            chosen, size = each.plan.choose(method, k)
            counts = each.results.summaries[chosen.name, size].counts
            rows.append({"audit": name, "kind": _kind(each), **counts})
        return self._frame(columns_of(rows))

    def reconciliation(self, method: MethodName | None = None, *, k: int | None = None) -> Any:
        """Show which audits find each person who is protected on every attribute.

        The table has a row per person and a column per audit: whether it finds evidence.

        Parameters
        ----------
        method, k
            Default: the primary ones.
        """
        ids, found = self._found(method, k)
        return self._frame({"id": ids, **found})

    def only_intersectional(
        self, method: MethodName | None = None, *, k: int | None = None
    ) -> NDArray[Any]:
        """Return the ids of people whom some intersection finds, and no single attribute.

        Parameters
        ----------
        method, k
            Default: the primary ones.
        """
        ids, found = self._found(method, k)
        together, alone = (
            np.any([found[n] for n, each in self.audits.items() if _kind(each) == kind], axis=0)
            for kind in ("intersectional", "single")
        )
        return np.asarray(ids[together & ~alone])

    def _found(
        self, method: MethodName | None, k: int | None
    ) -> tuple[NDArray[Any], dict[str, NDArray[np.bool_]]]:
        *_, last = self.audits.values()
        rows = last.study.people
        found = {}
        for name, each in self.audits.items():
            places = np.searchsorted(each.study.people, rows)
            chosen, size = each.plan.choose(method, k)
            found[name] = each.results.summaries[chosen.name, size].strength[places] > 0
        return last.plan.population.ids[rows], found

    def _frame(self, columns: Mapping[str, Any]) -> Any:
        *_, last = self.audits.values()
        return to_frame(columns, last.plan.population.source)

    def __repr__(self) -> str:
        """Name the audits."""
        return printable(f"Audits of {', '.join(self.audits)}")


def _kind(audit: Audit) -> str:
    return audit.plan.combine or "single"
