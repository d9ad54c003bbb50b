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
    from mutandis.data.protection import Combine, Protection

__all__ = ["AuditIntersections", "audit_intersections"]

# with more, there are too many combinations to reconcile by eye (and most have no rows)
_MOST = 3


def audit_intersections(plan: Plan) -> AuditIntersections:
    """Audit each of two or three protected attributes, and every way to combine them.

    Parameters
    ----------
    plan
        What `mutandis.plan` gives for a list of protections; whether it combines them as
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
    audits = {
        _label(several, combine): plan.restricted_to(several, combine).run()
        for several, combine in _combinations(plan.protections)
    }
    return AuditIntersections(plan=plan, audits=audits)


def _combinations(
    protections: Sequence[Protection],
) -> Iterator[tuple[tuple[Protection, ...], Combine | None]]:
    """Give each protection alone, then every two or more of them in both ways."""
    for size in range(1, len(protections) + 1):
        ways: tuple[Combine | None, ...] = ("multiple", "intersectional") if size > 1 else (None,)
        for several in combinations(protections, size):
            for way in ways:
                yield several, way


def _label(several: Sequence[Protection], combine: Combine | None) -> str:
    """Write race, race + sex (multiple) or race × sex (intersectional)."""
    sign = " × " if combine == "intersectional" else " + "
    return sign.join(each.attribute for each in several)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class AuditIntersections:
    """Audits of several protected attributes: each alone, and all ways to combine them.

    Parameters
    ----------
    plan
        What they have in common.
    audits
        The audits by name: a for one attribute, a + b for multiple, a × b for intersectional.
    """

    plan: Plan
    audits: Mapping[str, Audit]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the audits."""
        return tuple(self.audits)

    def audit(self, name: str) -> Audit:
        """Give one of the audits.

        Parameters
        ----------
        name
            One of `names`.
        """
        if name not in self.audits:
            known = ", ".join(map(repr, self.names))
            raise PlanError(f"There is no audit {name!r}. There are {known}.")
        return self.audits[name]

    def counts(self, method: MethodName | None = None, *, k: int | None = None) -> Any:
        """Count the cases of every audit under one method and k.

        Parameters
        ----------
        method, k
            Default: the primary ones.
        """
        chosen, size = self.plan.choose(method, k)
        rows = [
            {"audit": name, "kind": _kind(each), **each.count(chosen.name, size)}
            for name, each in self.audits.items()
        ]
        return to_frame(columns_of(rows), self.plan.population.source)

    def reconciliation(self, method: MethodName | None = None, *, k: int | None = None) -> Any:
        """Show which audits find each person who is protected on every attribute.

        The table has a row per person and a column per audit: whether it finds evidence.

        Parameters
        ----------
        method, k
            Default: the primary ones.
        """
        ids, found = self._found(method, k)
        return to_frame({"id": ids, **found}, self.plan.population.source)

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
            np.logical_or.reduce([found[n] for n in self.names if _kind(self.audits[n]) == kind])
            for kind in ("intersectional", "single")
        )
        return np.asarray(ids[together & ~alone])

    def _found(
        self, method: MethodName | None, k: int | None
    ) -> tuple[NDArray[Any], dict[str, NDArray[np.bool_]]]:
        chosen, size = self.plan.choose(method, k)
        rows = self.audits[self.names[-1]].study.people
        found = {}
        for name, each in self.audits.items():
            places = np.searchsorted(each.study.people, rows)
            found[name] = each.evaluate(chosen.name, size).comparison.evidence[places]
        return self.plan.population.ids[rows], found

    def __repr__(self) -> str:
        """Name the audits."""
        return printable(f"Audits of {', '.join(self.names)}")


def _kind(audit: Audit) -> str:
    return audit.plan.combine or "single"
