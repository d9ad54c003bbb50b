"""The lattice of several protected attributes: who is found on which of them, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mutandis.auditing.audit import Audit
from mutandis.auditing.intersection_runs import run_lattice
from mutandis.errors import PlanError
from mutandis.evidence.methods import METHODS
from mutandis.frames import columns_of, to_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.auditing.intersection_runs import LatticeResult
    from mutandis.auditing.plan import MethodName, Plan
    from mutandis.evidence.agreement import Agreement

__all__ = ["AuditIntersections", "audit_intersections"]


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
    ... )
    >>> lattice = mm.audit_intersections(plan)
    >>> print(lattice.counts()[["audit", "complainants", "cases"]].to_string(index=False))
            audit  complainants  cases
            black           221     32
            woman           206     38
    black + woman           113     14
    black × woman           113     46
    >>> len(lattice.only_intersectional())
    28
    """
    return AuditIntersections(run_lattice(plan))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class AuditIntersections:
    """Audits of several protected attributes: each alone, and all ways to combine them."""

    result: LatticeResult
    _audits: dict[str, Audit] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The audits: a for one attribute, a + b for multiple, a × b for intersectional."""
        return tuple(self.result.nodes)

    def audit(self, name: str) -> Audit:
        """Give one of the audits."""
        if name not in self.result.results:
            known = ", ".join(map(repr, self.names))
            raise PlanError(f"The lattice has no audit {name!r}. It has {known}.")
        return self._audits.setdefault(name, Audit(self.result.results[name]))

    def counts(self, method: MethodName | None = None, *, k: int | None = None) -> Any:
        """Count the cases of every audit under one method and k; default: the primary ones."""
        rows = []
        for name, node in self.result.nodes.items():
            counts = self.result.results[name].count(*self._choose(method, k))
            rows.append({"audit": name, "kind": node.kind, **counts})
        return to_frame(columns_of(rows), self._like)

    def reconciliation(
        self, method: MethodName | None = None, *, k: int | None = None
    ) -> Agreement:
        """See which audits find the same people, of those who are protected on every attribute."""
        chosen, size = self._choose(method, k)
        return self.result.reconcile(self.result.findings(chosen, size), k=size)

    def only_intersectional(
        self, method: MethodName | None = None, *, k: int | None = None
    ) -> NDArray[Any]:
        """Give those whom some intersection finds, and none of its attributes by itself."""
        return self.result.only_intersectional(self.reconciliation(method, k=k))

    def _choose(self, method: str | None, k: int | None) -> tuple[Any, int]:
        plan = self.result.plan
        chosen = plan.settings.primary[0] if method is None else method
        size = plan.settings.primary[1] if k is None else k
        names = [each.name for each in plan.methods]
        if chosen not in names or size not in plan.settings.ks:
            raise PlanError(
                f"The lattice did not run method {chosen!r} at k={size}. "
                f"Methods: {', '.join(names)}; ks: {list(plan.settings.ks)}."
            )
        return METHODS[chosen], size

    @property
    def _like(self) -> Any:
        return self.result.plan.population.source
