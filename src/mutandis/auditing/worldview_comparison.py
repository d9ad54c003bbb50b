"""Competing worldviews: one audit under each, and whom they agree on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mutandis.auditing.audit import Audit
from mutandis.auditing.competing import run_competing
from mutandis.errors import PlanError
from mutandis.evidence.methods import METHODS
from mutandis.frames import columns_of, to_frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutandis.auditing.competing import CompetingWorldviews
    from mutandis.auditing.plan import MethodName, Plan
    from mutandis.causal import Worldview
    from mutandis.pictures.picture import Picture

__all__ = ["WorldviewComparison", "compare_worldviews"]


def compare_worldviews(
    plan: Plan,
    worldviews: Mapping[str, Worldview],
    *,
    method: MethodName | None = None,
    k: int | None = None,
) -> WorldviewComparison:
    """Run one audit under several worldviews, and see whom they agree on.

    Parameters
    ----------
    plan
        What `mutandis.plan` gives; its own worldview is one among those compared only if it is
        listed too.
    worldviews
        The worldviews by name.
    method, k
        Where verdicts are compared; default: the plan's primary ones.

    Examples
    --------
    >>> import mutandis as mm
    >>> bank = mm.Worldview({"AnnualSalary": mm.Linear("Gender")})
    >>> regulator = mm.Worldview(
    ...     {
    ...         "AnnualSalary": mm.Linear("Gender"),
    ...         "AccountBalance": mm.Linear("AnnualSalary", "Gender"),
    ...     }
    ... )
    >>> plan = mm.plan(
    ...     mm.datasets.loan(n=1000, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
    ...     worldview=bank,
    ...     ks=(15,),
    ... )
    >>> compared = mm.compare_worldviews(plan, {"bank": bank, "regulator": regulator})
    >>> print(compared.summary()[["worldview", "cases", "found_by_all"]].to_string(index=False))
    worldview  cases  found_by_all
         bank     83            83
    regulator    108            83
    """
    return WorldviewComparison(run_competing(plan, worldviews, method=method, k=k))


@dataclass(frozen=True, slots=True)
class WorldviewComparison:
    """One audit under several worldviews."""

    result: CompetingWorldviews

    def table(self) -> Any:
        """Give one row per complainant: her verdict under each worldview, and who finds her."""
        return to_frame(self.result.columns(), self._like)

    def summary(self) -> Any:
        """Give one row per worldview: its cases, and how many of them the others find too."""
        return to_frame(columns_of(self.result.summary()), self._like)

    def audit(self, name: str) -> Audit:
        """Give the whole audit under one of the worldviews."""
        if name not in self.result.results:
            known = ", ".join(map(repr, self.result.results))
            raise PlanError(f"No worldview is called {name!r}. There are {known}.")
        return Audit(self.result.results[name])

    def plot(self) -> Picture:
        """Draw how many cases each worldview finds and how many of them are shared."""
        from mutandis.pictures.findings import plot_worldviews

        return plot_worldviews(
            self.result.summary(), method=METHODS[self.result.method].title, k=self.result.k
        )

    @property
    def _like(self) -> Any:
        return next(iter(self.result.results.values())).plan.population.source
