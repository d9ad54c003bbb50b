"""Other worldviews: verdicts under each of several, and plausible variants of one.

A variant differs from a worldview in one choice that experts dispute. Worldviews with the same
counterfactuals are one, under all their names.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.doubt import DRAWS
from mutandis.auditing.settle import check_worldview
from mutandis.config.schema import AS_GIVEN
from mutandis.data.attribute import AttributeKind
from mutandis.data.population import Population
from mutandis.data.rows import ByRow
from mutandis.engine.tally import METHODS
from mutandis.errors import MutandisError, MutandisWarning, PlanError, printable
from mutandis.scm.additive import Linear
from mutandis.scm.categorical import Categorical
from mutandis.scm.ordinal import Ordinal
from mutandis.scm.worldview import Worldview
from mutandis.verdicts.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.report.chart import Picture
    from mutandis.scm.family import Equation
    from mutandis.verdicts.findings import Findings

__all__ = [
    "WorldviewVerdicts",
    "find_worldview_verdicts",
    "vary_worldview",
]

# by their strength; "insufficient" is the last, at place -1
_VERDICTS = tuple(each.value for each in Verdict)
_FAMILIES = {
    AttributeKind.CONTINUOUS: Linear,
    AttributeKind.ORDINAL: Ordinal,
    AttributeKind.NOMINAL: Categorical,
}
# how far apart counterfactuals may be, as a part of an attribute's range, and count as equal
_EQUAL = 1e-9


def find_worldview_verdicts(
    audit: Audit,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> WorldviewVerdicts:
    """Compare the headline's verdicts under the worldviews that the settings of an audit name."""
    plan, doubt = audit.plan, audit.plan.settings.uncertainty
    own = plan.worldview
    if own is None:
        raise PlanError("The audit has no worldview to compare with others.")
    from mutandis.auditing.run import find_headlines

    variants = _variants(plan, own) if doubt.variants else ()
    worldviews = _merge(plan, {AS_GIVEN: own, **(doubt.worldviews or {})}, variants)
    others = (_headline(plan, each) for each in worldviews.values() if each is not own)
    trials = find_headlines(audit, others)
    findings: list[Findings] = []
    for worldview in worldviews.values():
        findings.append(audit.results.headline if worldview is own else next(trials))
        progress(len(findings), len(worldviews))
    first = findings[0]
    strength = [np.where(each.comparison.insufficient, -1, each.strength) for each in findings]
    return WorldviewVerdicts(
        names=tuple(worldviews),
        method=first.method,
        k=first.k,
        worse=plan.rule.worse,
        ids=first.ids,
        strength=np.stack(strength, axis=1),
        delta_p=np.stack([each.compared for each in findings], axis=1),
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class WorldviewVerdicts(ByRow):
    """Everyone's verdict under each of several worldviews.

    No count is a probability: worldviews that were thought of are not a sample.
    """

    names: tuple[str, ...]  # the first is that of the audit
    method: str
    k: int
    worse: bool  # whether worse treatment is looked for
    ids: NDArray[Any]
    strength: NDArray[np.int64]  # complainants × worldviews; -1 for "insufficient"
    delta_p: NDArray[np.float64]  # likewise; missing where groups cannot be compared

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
        """Return a row per complainant: how much of the first verdict the worldviews agree on."""
        return {
            "id": self.ids,
            "verdict": np.array(_VERDICTS, dtype=object)[self.strength[:, 0]],
            "stays_under": self.stays_under,
            "share": self.share,
            "least_delta_p": (np.min if self.worse else np.max)(self.delta_p, axis=1),
            "breaks_under": self.breaks_under,
        }

    def table(self) -> pd.DataFrame:
        """Return these columns, and the verdict and the difference under each worldview."""
        import pandas as pd

        verdicts = np.array(_VERDICTS, dtype=object)[self.strength]
        each: dict[str, Any] = {}
        for place, name in enumerate(self.names):
            each[f"verdict_{name}"] = verdicts[:, place]
            each[f"delta_p_{name}"] = self.delta_p[:, place]
        return pd.DataFrame({**self.columns(), **each})

    def summary(self) -> pd.DataFrame:
        """Return one row per worldview: its cases, and how many of the first's it weakens."""
        import pandas as pd

        cases, significant, adjusted = ((self.strength > each).sum(axis=0) for each in range(3))
        return pd.DataFrame(
            {
                "worldview": self.names,
                "cases": cases,
                "significant": significant,
                "significant_adjusted": adjusted,
                "breaks": [each["breaks"] for each in self.summary_records()],
            }
        )

    def summary_records(self) -> list[dict[str, Any]]:
        """Return a record per worldview: its verdicts, and how many of the first's it weakens."""
        breaks = (self.has_case[:, None] & ~self.stays).sum(axis=0).tolist()
        return [
            {"name": name, "verdicts": verdicts, "breaks": number}
            for (name, verdicts), number in zip(self._counts().items(), breaks, strict=True)
        ]

    def _counts(self) -> dict[str, dict[str, int]]:
        """Count the complainants with each verdict, by worldview."""
        return {
            name: {
                verdict: int((found == code).sum())
                for verdict, code in zip(_VERDICTS, (0, 1, 2, 3, -1), strict=True)
            }
            for name, found in zip(self.names, self.strength.T, strict=True)
        }

    def count_stays(self) -> dict[int, int]:
        """Return the number of first verdicts by the number of worldviews that they stay under."""
        counts = Counter(self.stays_under[self.has_case].tolist())
        return dict(sorted(counts.items(), reverse=True))

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {
            "worldviews": self.summary_records(),
            "stays_under": {str(number): count for number, count in self.count_stays().items()},
        }

    def verdicts_of(self, place: int) -> dict[str, str]:
        """Return one complainant's verdict under each worldview."""
        codes = self.strength[place].tolist()
        return {name: _VERDICTS[code] for name, code in zip(self.names, codes, strict=True)}

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
            return plot_verdict_matrix(self._counts(), where)
        each = zip(self.verdicts_of(place).items(), self.delta_p[place].tolist(), strict=True)
        cells = {name: {verdict: delta} for (name, verdict), delta in each}
        return plot_verdict_matrix(cells, f"Δp of one complainant, {where}")

    def __repr__(self) -> str:
        """Summarise in one line per worldview."""
        cases = (self.strength > 0).sum(axis=0).tolist()
        lines = (f"{n}: {found:,} cases" for n, found in zip(self.names, cases, strict=True))
        return printable("\n".join(lines))


def _headline(plan: Plan, worldview: Worldview) -> Plan:
    """Plan the headline's method and k alone under another worldview: neither asks b()."""
    method, k = plan.choose(None, None)
    plan = _exchange(plan, worldview)
    doubt = replace(plan.settings.uncertainty, tipping=False)
    settings = replace(plan.settings, methods=(method.name,), ks=(k,), uncertainty=doubt)
    return replace(plan, methods=(method,), decision=None, settings=settings, origin=None)


def _exchange(plan: Plan, worldview: Worldview) -> Plan:
    """Exchange the worldview of a plan; draws are made where the new one leaves values open."""
    check_worldview(worldview, plan.protections[0], outcome=plan.outcome.column)
    doubt = replace(plan.settings.uncertainty, variants=None, worldviews=None)
    is_open = bool(worldview.couplings or worldview.latents)
    default = DRAWS if worldview.couplings else 0
    doubt = replace(doubt, draws=(doubt.draws or default) if is_open else 0)
    seed = 0 if plan.settings.seed is None and doubt.draws else plan.settings.seed
    settings = replace(plan.settings, uncertainty=doubt, seed=seed)
    population, known = plan.population, plan.population.columns
    more = [name for name in worldview.names if name not in known]
    if more:
        read = Population.from_frame(population.source, columns=more)
        population = replace(population, columns=MappingProxyType({**known, **read.columns}))
    return replace(plan, worldview=worldview, population=population, settings=settings)


# --- variants ------------------------------------------------------------------------------------


def vary_worldview(plan: Plan) -> dict[str, Worldview]:
    """List the plausible variants of a plan's worldview: one other choice each.

    An attribute that the status changes may be no effect of it (a root), may be resolving or not,
    may depend on its causes by factors instead of straight lines, or on two of them together; one
    that has no causes may be an effect of the status. Variants that cannot be fitted to the table
    are left out, and those with the same counterfactuals are one, with all their names.

    Parameters
    ----------
    plan
        What `mutandis.plan` returns, with a worldview. It comes first, as "as given".

    Examples
    --------
    >>> import mutandis as mm
    >>> plan = mm.plan(
    ...     mm.datasets.loan(n=300, seed=1),
    ...     outcome="LoanApproval",
    ...     negative=-1,
    ...     protected=mm.Protection("Gender", value=1, reference=0),
    ...     attributes={"AnnualSalary": "continuous", "AccountBalance": "continuous"},
    ...     worldview=mm.Worldview({"AnnualSalary": mm.Linear("Gender")}),
    ...     ks=(15,),
    ... )
    >>> for name in mm.vary_worldview(plan):
    ...     print(name)
    as given
    AnnualSalary is a root = AnnualSalary is resolving
    AnnualSalary by factors
    AccountBalance is an effect of Gender
    """
    if plan.worldview is None:
        raise PlanError("The plan has no worldview to vary. Make it with worldview=.")
    if plan.worldview.latents:
        raise PlanError("Worldviews with hidden causes are not varied. Write the variants down.")
    return _merge(plan, {AS_GIVEN: plan.worldview}, _variants(plan, plan.worldview))


def _variants(plan: Plan, given: Worldview) -> Iterator[tuple[str, Worldview]]:
    status = [each.attribute for each in plan.protections]
    equations, resolving = dict(given.equations), given.resolving

    def changed(name: str, equation: Equation) -> Worldview:
        return Worldview({**equations, name: equation}, resolving=resolving)

    moved = {name: equations[name] for name in given.graph.descendants(status)}
    for name, equation in moved.items():
        others = {child: each for child, each in equations.items() if child != name}
        kept = [each for each in resolving if each != name]
        yield f"{name} is a root", Worldview(others, resolving=kept)
        if name in resolving:
            yield f"{name} is not resolving", Worldview(equations, resolving=kept)
        else:
            yield f"{name} is resolving", Worldview(equations, resolving=[*resolving, name])
        if isinstance(equation, Linear):
            for words, each in _other_lines(equation):
                yield f"{name} {words}", changed(name, each)
    for attribute in plan.attributes:
        name = attribute.name
        if name not in equations and name not in status:
            effect = _FAMILIES[attribute.kind](*status)
            yield f"{name} is an effect of {' and '.join(status)}", changed(name, effect)


def _other_lines(equation: Linear) -> Iterator[tuple[str, Linear]]:
    options = {**equation.output, "interactions": equation.interactions}
    by_factors, together = equation.link == "log", not equation.interactions
    other = {**options, "link": "identity" if by_factors else "log"}
    yield "by straight lines" if by_factors else "by factors", Linear(*equation.parents, **other)
    if len(equation.parents) > 1:
        words = "with interactions" if together else "without interactions"
        yield words, Linear(*equation.parents, **{**options, "interactions": together})


def _merge(
    plan: Plan,
    worldviews: Mapping[str, Worldview],
    variants: Iterable[tuple[str, Worldview]] = (),
) -> dict[str, Worldview]:
    """Merge worldviews with the same counterfactuals, under all their names.

    `variants` follow those that were given, and are left out where they cannot be fitted.
    """
    known: list[tuple[list[str], Worldview, list[Population]]] = []
    more = [(name, each) for name, each in variants if name not in worldviews]
    for name, worldview in [*worldviews.items(), *more]:
        try:
            worlds = _counterfactuals(_exchange(plan, worldview), worldview)
        except MutandisError:
            if name in worldviews:
                raise
            continue
        same = next((names for names, _, each in known if _are_equal(plan, each, worlds)), None)
        if same is None:
            known.append(([name], worldview, worlds))
        else:
            same.append(name)
    return {" = ".join(names): worldview for names, worldview, _ in known}


def _counterfactuals(plan: Plan, worldview: Worldview) -> list[Population]:
    # on several grounds, one intervention each
    does = [plan.do] if plan.combine != "multiple" else [{n: v} for n, v in plan.do.items()]
    draws = (plan.settings.uncertainty.draws or 0) if worldview.couplings else 0
    worlds: list[Population] = []
    for do in does:
        rng = np.random.default_rng(plan.settings.seed) if draws else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MutandisWarning)
            made = worldview.counterfactuals(plan.population, do=do, draws=draws, rng=rng)
        worlds += [made.population, *made.draws]
    return worlds


def _are_equal(plan: Plan, first: Sequence[Population], second: Sequence[Population]) -> bool:
    if len(first) != len(second):
        return False
    rows = np.unique(np.concatenate([stratum.control for stratum in plan.strata]))
    for attribute in plan.attributes:
        whole = plan.population.columns[attribute.name].data
        span = float(np.ptp(whole)) if attribute.kind is AttributeKind.CONTINUOUS else 0.0
        for one, other in zip(first, second, strict=True):
            here, there = (each.part(attribute.name, rows).data for each in (one, other))
            if not (np.abs(here - there) <= _EQUAL * span).all():
                return False
    return True
