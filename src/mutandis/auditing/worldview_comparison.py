"""Competing worldviews: one audit under each, and whom they agree on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.protections import check_worldview
from mutandis.data.population import Population
from mutandis.errors import PlanError, printable
from mutandis.evidence.findings import Verdict
from mutandis.frames import columns_of, to_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.causal import Worldview
    from mutandis.evidence.findings import Findings
    from mutandis.evidence.methods import Method
    from mutandis.evidence.settings import MethodName
    from mutandis.pictures.picture import Picture

__all__ = ["WorldviewComparison", "compare_worldviews", "exchange_worldview"]


def compare_worldviews(
    plan: Plan,
    worldviews: Mapping[str, Worldview],
    *,
    method: MethodName | None = None,
    k: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
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
    progress
        Called with two numbers: the worldviews done, and all.

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
    >>> both = {"bank": bank, "regulator": regulator}
    >>> compared = mm.compare_worldviews(plan, both, method="cst_without")
    >>> print(compared.summary()[["worldview", "cases", "found_by_all"]].to_string(index=False))
    worldview  cases  found_by_all
         bank     83            83
    regulator    108            83
    """
    if len(worldviews) < 2:
        raise PlanError(
            f"{len(worldviews)} worldview cannot be compared. Give at least two, by name: "
            "{'bank': …, 'regulator': …}."
        )
    chosen, size = plan.choose(method, k)
    audits = {}
    for name, worldview in worldviews.items():
        audits[name] = exchange_worldview(plan, worldview).run()
        progress(len(audits), len(worldviews))
    return WorldviewComparison(method=chosen, k=size, audits=MappingProxyType(audits))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class WorldviewComparison:
    """One audit under several worldviews.

    Parameters
    ----------
    method, k
        Where verdicts are compared.
    audits
        The whole audit under each worldview, by name.
    """

    method: Method
    k: int
    audits: Mapping[str, Audit]

    def audit(self, name: str) -> Audit:
        """Give the whole audit under one of the worldviews.

        Parameters
        ----------
        name
            The worldview's name.
        """
        if name not in self.audits:
            known = ", ".join(map(repr, self.audits))
            raise PlanError(f"No worldview is called {name!r}. There are {known}.")
        return self.audits[name]

    def table(self) -> Any:
        """Give one row per complainant: her verdict under each worldview, and which find her."""
        findings = self._findings()
        first = next(iter(findings.values()))
        found = _count_found(findings)
        agreement = np.full(len(found), "some", dtype=object)
        agreement[found == 0] = "none"
        agreement[found == len(findings)] = "all"
        return self._frame(
            {
                "id": first.ids,
                "outcome": first.outcome,
                **{f"verdict_{name}": each.verdicts() for name, each in findings.items()},
                **{f"delta_p_{name}": each.comparison.delta_p for name, each in findings.items()},
                "found_under": found,
                "agreement": agreement,
            }
        )

    def summary(self) -> Any:
        """Give one row per worldview: its cases, and how many of them the others find too.

        `breaks` counts the verdicts of the first worldview that are weaker under this one.
        """
        return self._frame(columns_of(self.summary_records()))

    def summary_records(self) -> list[dict[str, Any]]:
        """Give the summary as plain records."""
        findings = self._findings()
        found = _count_found(findings)
        everyone = found == len(findings)
        first = next(iter(findings.values()))
        reference = first.comparison.evidence
        rows = []
        for name, each in findings.items():
            evidence = each.comparison.evidence
            rows.append(
                {
                    "worldview": name,
                    "complainants": len(each),
                    "cases": int(evidence.sum()),
                    "found_by_all": int((evidence & everyone).sum()),
                    "found_by_some": int((evidence & ~everyone & (found > 1)).sum()),
                    "found_by_it_alone": int((evidence & (found == 1)).sum()),
                    "significant": int(each.comparison.significant.sum()),
                    "breaks": int((reference & (each.strength < first.strength)).sum()),
                }
            )
        return rows

    def robustness(self) -> Any:
        """Give one row per complainant: how much of her verdict the worldviews agree on.

        The verdict is that under the first worldview. `stays_under` counts the worldviews under
        which it is the same or stronger, `least_delta_p` is the least difference in its direction
        (missing where groups cannot be compared under some), `breaks_under` names the others,
        and `robustness` says it in one line. No count is a probability: worldviews that were
        thought of are not a sample.
        """
        return self._frame(self.robustness_columns())

    def robustness_columns(self) -> dict[str, NDArray[Any]]:
        """Give that table, column by column."""
        findings = self._findings()
        first = next(iter(findings.values()))
        audit = next(iter(self.audits.values()))
        stays = {name: each.strength >= first.strength for name, each in findings.items()}
        number = np.sum(list(stays.values()), axis=0)
        differences = np.stack([each.compared for each in findings.values()])
        worse = audit.plan.settings.evidence.direction == "negative"
        known = audit.graded(first).robustness
        case = first.comparison.evidence
        breaks, lines = (np.full(len(first), None, dtype=object) for _ in range(2))
        for place in np.flatnonzero(case).tolist():
            breaks[place] = "; ".join(name for name, each in stays.items() if not each[place])
            line = None if known is None else known.line[place]
            so_many = f"under {number[place]} of {len(findings)} worldviews"
            lines[place] = f"{line or 'holds'}{',' if line else ''} {so_many}"
        return {
            "id": first.ids,
            "verdict": first.verdicts(),
            "stays_under": np.where(case, number, 0),
            "share": np.where(case, number / len(findings), np.nan),
            "least_delta_p": (np.min if worse else np.max)(differences, axis=0),
            "breaks_under": breaks,
            "robustness": lines,
        }

    def count_stays(self) -> dict[int, int]:
        """Count the verdicts of the first worldview by how many worldviews they stay under."""
        columns = self.robustness_columns()
        case = ~np.isnan(columns["share"])
        counts = Counter(columns["stays_under"][case].tolist())
        return dict(sorted(counts.items(), reverse=True))

    def plot_matrix(self, id: Any = None) -> Picture:  # noqa: A002 - the public name
        """Draw worldviews against verdicts: how many complainants have each, or what one has.

        Parameters
        ----------
        id
            One complainant; default: all are counted.
        """
        from mutandis.pictures.robustness import plot_verdict_matrix

        findings, where = self._findings(), f"{self.method.title}, k = {self.k}"
        if id is None:
            return plot_verdict_matrix(self.verdict_counts(), where)
        place, _ = next(iter(self.audits.values())).locate(id)
        cells = {
            name: {str(each.verdicts()[place]): float(each.compared[place])}
            for name, each in findings.items()
        }
        return plot_verdict_matrix(cells, f"Δp of one complainant, {where}")

    def verdict_counts(self) -> dict[str, dict[str, int]]:
        """Count the verdicts under each worldview."""
        given = {name: each.verdicts() for name, each in self._findings().items()}
        return {
            name: {each.value: int((verdicts == each.value).sum()) for each in Verdict}
            for name, verdicts in given.items()
        }

    def plot(self) -> Picture:
        """Draw how many cases each worldview finds and how many of them are shared."""
        from mutandis.pictures.findings import plot_worldviews

        return plot_worldviews(self.summary_records(), method=self.method.title, k=self.k)

    def _findings(self) -> dict[str, Findings]:
        return {name: each.evaluate(self.method.name, self.k) for name, each in self.audits.items()}

    def _frame(self, columns: Mapping[str, Any]) -> Any:
        return to_frame(columns, next(iter(self.audits.values())).plan.population.source)

    def __repr__(self) -> str:
        """Summarise in one line per worldview."""
        return "\n".join(
            f"{printable(row['worldview'])}: {row['cases']:,} cases, {row['found_by_all']:,} found "
            "by all"
            for row in self.summary_records()
        )


def _count_found(findings: Mapping[str, Findings]) -> NDArray[np.int64]:
    """Count the worldviews under which there is evidence for each complainant."""
    evidence = [each.comparison.evidence for each in findings.values()]
    return np.asarray(np.sum(evidence, axis=0, dtype=np.int64))


def exchange_worldview(plan: Plan, worldview: Worldview) -> Plan:
    """Give the plan with another worldview, which may need columns that were not read so far."""
    if plan.worldview is None:
        raise PlanError(
            "The plan has no worldview to exchange: it was made with counterfactuals=, or without "
            "either. Make it with worldview=."
        )
    check_worldview(worldview, plan.protections[0], outcome=plan.outcome.column)
    known = plan.population.columns
    more = [name for name in worldview.names if name not in known]
    if not more:
        return replace(plan, worldview=worldview)
    read = Population.from_frame(plan.population.source, columns=more)
    population = replace(plan.population, columns=MappingProxyType({**known, **dict(read.columns)}))
    return replace(plan, worldview=worldview, population=population)
