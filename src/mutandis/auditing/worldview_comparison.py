"""Competing worldviews: one audit under each, and whom they agree on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.doubt import DRAWS
from mutandis.auditing.protections import check_worldview
from mutandis.data.by_row import ByRow
from mutandis.data.population import Population
from mutandis.engine.methods import METHODS
from mutandis.errors import PlanError, printable
from mutandis.frames import columns_of, to_frame
from mutandis.verdicts.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.config.schema import MethodName, Settings
    from mutandis.engine.methods import Method
    from mutandis.report.chart import Picture
    from mutandis.scm import Worldview
    from mutandis.verdicts.findings import Findings

__all__ = [
    "WorldviewComparison",
    "WorldviewVerdicts",
    "compare_worldviews",
    "exchange_worldview",
]


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
        rows = []
        for name, breaks in self.verdicts().count_breaks().items():
            each = findings[name]
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
                    "breaks": breaks,
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
        audit, found = next(iter(self.audits.values())), self.verdicts()
        known = audit.graded(audit.evaluate(found.method, found.k)).robustness
        lines, number = np.full(len(found.ids), None, dtype=object), found.stays_under
        for place in np.flatnonzero(found.has_case).tolist():
            line = None if known is None else known.line[place]
            so_many = f"holds under {number[place]} of {len(found.names)} worldviews"
            lines[place] = f"{so_many}, {line.removeprefix('holds ')}" if line else so_many
        return {**found.columns(), "robustness": lines}

    def count_stays(self) -> dict[int, int]:
        """Count the verdicts of the first worldview by how many worldviews they stay under."""
        return self.verdicts().count_stays()

    def plot_matrix(self, id: Any = None) -> Picture:  # noqa: A002 - the public name
        """Draw worldviews against verdicts: how many complainants have each, or what one has.

        Parameters
        ----------
        id
            One complainant; default: all are counted.
        """
        place = None if id is None else next(iter(self.audits.values())).locate(id)[0]
        return self.verdicts().plot_matrix(place)

    def verdict_counts(self) -> dict[str, dict[str, int]]:
        """Count the verdicts under each worldview."""
        return self.verdicts().verdict_counts()

    def verdicts(self) -> WorldviewVerdicts:
        """Give everyone's verdict under each worldview in a compact form."""
        audit = next(iter(self.audits.values()))
        return WorldviewVerdicts.of(audit.plan, self._findings())

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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class WorldviewVerdicts(ByRow):
    """Everyone's verdict under each of several worldviews, the first of which is the audit's own.

    This is what an audit keeps of a comparison, and what its results folder holds.
    """

    names: tuple[str, ...]
    method: str
    k: int
    worse: bool  # whether worse treatment was looked for
    ids: NDArray[Any]
    # complainants × worldviews: how strong each verdict is, and -1 for "insufficient"
    strength: NDArray[np.int64]
    delta_p: NDArray[np.float64]  # likewise; missing where groups cannot be compared

    @classmethod
    def of(cls, plan: Plan, findings: Mapping[str, Findings]) -> WorldviewVerdicts:
        """Take the verdicts from findings under each worldview, of the same method and k."""
        first = next(iter(findings.values()))
        strength = [
            np.where(each.comparison.insufficient, -1, each.strength) for each in findings.values()
        ]
        return cls(
            names=tuple(findings),
            method=first.method,
            k=first.k,
            worse=plan.settings.evidence.direction == "negative",
            ids=first.ids,
            strength=np.stack(strength, axis=1),
            delta_p=np.stack([each.compared for each in findings.values()], axis=1),
        )

    @property
    def has_case(self) -> NDArray[np.bool_]:
        """Whether there is a verdict under the first worldview that could be weaker."""
        return self.strength[:, 0] > 0

    @property
    def stays(self) -> NDArray[np.bool_]:
        """Whether the first verdict is the same or stronger: complainants × worldviews."""
        known = np.maximum(self.strength, 0)
        return known >= known[:, :1]

    @property
    def stays_under(self) -> NDArray[np.int64]:
        """The number of worldviews under which each verdict is the same or stronger."""
        return np.where(self.has_case, self.stays.sum(axis=1), 0)

    @property
    def share(self) -> NDArray[np.float64]:
        """The share of worldviews under which it is; missing without a verdict."""
        return np.where(self.has_case, self.stays_under / len(self.names), np.nan)

    @property
    def breaks_under(self) -> NDArray[np.object_]:
        """The names of the worldviews under which it is weaker; None without a verdict."""
        breaks, falls = np.full(len(self.ids), None, dtype=object), ~self.stays
        names = np.array(self.names, dtype=object)
        for place in np.flatnonzero(self.has_case).tolist():
            breaks[place] = "; ".join(names[falls[place]])
        return breaks

    def columns(self) -> dict[str, NDArray[Any]]:
        """Give the table: one row per complainant."""
        return {
            "id": self.ids,
            "verdict": np.array(_VERDICTS, dtype=object)[self.strength[:, 0]],
            "stays_under": self.stays_under,
            "share": self.share,
            "least_delta_p": (np.min if self.worse else np.max)(self.delta_p, axis=1),
            "breaks_under": self.breaks_under,
        }

    def held_by(self, place: int) -> tuple[int, int]:
        """Give the number of worldviews under which one verdict stays, and that of all."""
        return int(self.stays[place].sum()), len(self.names)

    def verdicts_of(self, place: int) -> dict[str, str]:
        """Give one complainant's verdict under each worldview."""
        codes = self.strength[place].tolist()
        return {name: _VERDICTS[code] for name, code in zip(self.names, codes, strict=True)}

    def count_breaks(self) -> dict[str, int]:
        """Count, by worldview, the verdicts of the first one that are weaker under it."""
        broken = (self.has_case[:, None] & ~self.stays).sum(axis=0)
        return dict(zip(self.names, broken.tolist(), strict=True))

    def count_stays(self) -> dict[int, int]:
        """Count the verdicts of the first worldview by how many worldviews they stay under."""
        counts = Counter(self.stays_under[self.has_case].tolist())
        return dict(sorted(counts.items(), reverse=True))

    def verdict_counts(self) -> dict[str, dict[str, int]]:
        """Count the verdicts under each worldview."""
        return {
            name: {
                verdict: int((self.strength[:, column] == code).sum())
                for verdict, code in zip(_VERDICTS, (0, 1, 2, 3, -1), strict=True)
            }
            for column, name in enumerate(self.names)
        }

    def summary_records(self) -> list[dict[str, Any]]:
        """Give a record per worldview: its verdicts, and how many of the first's it weakens."""
        breaks = self.count_breaks()
        return [
            {"name": name, "verdicts": counts, "breaks": breaks[name]}
            for name, counts in self.verdict_counts().items()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Give the counts as plain data."""
        return {
            "worldviews": self.summary_records(),
            "stays_under": {str(number): count for number, count in self.count_stays().items()},
        }

    def plot_matrix(self, place: int | None = None) -> Picture:
        """Draw worldviews against verdicts: how many complainants have each, or what one has.

        Parameters
        ----------
        place
            The place of one complainant; default: all are counted.
        """
        from mutandis.report.plots import plot_verdict_matrix

        where = f"{METHODS[self.method].title}, k = {self.k}"
        if place is None:
            return plot_verdict_matrix(self.verdict_counts(), where)
        differences = self.delta_p[place].tolist()
        cells = {
            name: {verdict: difference}
            for (name, verdict), difference in zip(
                self.verdicts_of(place).items(), differences, strict=True
            )
        }
        return plot_verdict_matrix(cells, f"Δp of one complainant, {where}")


# by their strength; "insufficient" is the last, which -1 is the place of
_VERDICTS = tuple(each.value for each in Verdict)


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
    plan = replace(plan, settings=_settings_under(plan, worldview))
    known = plan.population.columns
    more = [name for name in worldview.names if name not in known]
    if not more:
        return replace(plan, worldview=worldview)
    read = Population.from_frame(plan.population.source, columns=more)
    population = replace(plan.population, columns=MappingProxyType({**known, **dict(read.columns)}))
    return replace(plan, worldview=worldview, population=population)


def _settings_under(plan: Plan, worldview: Worldview) -> Settings:
    """Draw where this worldview leaves counterfactuals open, and compare it with no others."""
    settings = plan.settings
    doubt = replace(settings.uncertainty, variants=None, worldviews=None)
    default = DRAWS if worldview.couplings else 0
    is_open = bool(worldview.couplings or worldview.latents)
    doubt = replace(doubt, draws=(doubt.draws or default) if is_open else 0)
    seed = 0 if settings.seed is None and doubt.draws else settings.seed
    return replace(settings, uncertainty=doubt, seed=seed)
