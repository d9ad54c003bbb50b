"""Variants of a worldview that experts dispute, each of which differs from it in one choice."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mutandis.auditing.worldview_comparison import WorldviewVerdicts, exchange_worldview
from mutandis.config.schema import AS_GIVEN
from mutandis.data.attribute import AttributeKind
from mutandis.errors import MutandisError, MutandisWarning, PlanError
from mutandis.scm.additive import Linear
from mutandis.scm.categorical import Categorical
from mutandis.scm.ordinal import Ordinal
from mutandis.scm.worldview import Worldview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mutandis.auditing.audit import Audit
    from mutandis.auditing.plan import Plan
    from mutandis.data.population import Population
    from mutandis.scm.family import Equation

__all__ = ["find_worldview_verdicts", "merge_worldviews", "vary_worldview"]

_FAMILIES = {
    AttributeKind.CONTINUOUS: Linear,
    AttributeKind.ORDINAL: Ordinal,
    AttributeKind.NOMINAL: Categorical,
}
# how far apart counterfactuals may be, as a part of an attribute's range, and count as equal
_EQUAL = 1e-9


def vary_worldview(plan: Plan) -> dict[str, Worldview]:
    """List the plausible variants of a plan's worldview: one other choice each.

    An attribute that the status changes may be no effect of it (a root), may be resolving or not,
    may depend on its causes by factors instead of straight lines, or on two of them together; one
    that has no causes may be an effect of the status. Variants that cannot be fitted to the table
    are left out, and those with the same counterfactuals are one, with all their names.

    Parameters
    ----------
    plan
        What `mutandis.plan` gives, with a worldview. It comes first, as "as given".

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
    return merge_worldviews(plan, {AS_GIVEN: plan.worldview}, _variants(plan, plan.worldview))


def find_worldview_verdicts(
    audit: Audit,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> WorldviewVerdicts:
    """Give the headline's verdicts under the worldviews that the settings of an audit ask for."""
    plan, doubt = audit.plan, audit.plan.settings.uncertainty
    own = plan.worldview
    if own is None:
        raise PlanError("The audit has no worldview to compare with others.")
    others = _variants(plan, own) if doubt.variants else ()
    worldviews = merge_worldviews(plan, {AS_GIVEN: own, **(doubt.worldviews or {})}, others)
    from mutandis.auditing.run import run_headlines

    trials = run_headlines(
        audit, (_headline(plan, each) for each in worldviews.values() if each is not own)
    )
    findings = {}
    for name, worldview in worldviews.items():
        findings[name] = (audit if worldview is own else next(trials)).test_everyone()
        progress(len(findings), len(worldviews))
    return WorldviewVerdicts.of(plan, findings)


def _headline(plan: Plan, worldview: Worldview) -> Plan:
    """Plan the headline's method and k alone under a worldview: neither asks b()."""
    plan = exchange_worldview(plan, worldview)
    method, k = plan.choose(None, None)
    settings = replace(
        plan.settings,
        methods=(method.name,),
        ks=(k,),
        uncertainty=replace(plan.settings.uncertainty, tipping=False),
    )
    return replace(plan, methods=(method,), decision=None, settings=settings, origin=None)


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
            yield from (
                (f"{name} {words}", changed(name, each)) for words, each in _families(equation)
            )
    for attribute in plan.attributes:
        name = attribute.name
        if name not in equations and name not in status:
            effect = _FAMILIES[attribute.kind](*status)
            yield f"{name} is an effect of {' and '.join(status)}", changed(name, effect)


def _families(equation: Linear) -> Iterator[tuple[str, Linear]]:
    options = {**equation.output, "interactions": equation.interactions}
    by_factors = equation.link == "log"
    other = {**options, "link": "identity" if by_factors else "log"}
    yield "by straight lines" if by_factors else "by factors", Linear(*equation.parents, **other)
    if len(equation.parents) > 1:
        together = not equation.interactions
        words = "with interactions" if together else "without interactions"
        yield words, Linear(*equation.parents, **{**options, "interactions": together})


def merge_worldviews(
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
            worlds = _counterfactuals(exchange_worldview(plan, worldview))
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


def _counterfactuals(plan: Plan) -> list[Population]:
    doubt, worldview = plan.settings.uncertainty, plan.worldview
    if worldview is None:
        return []
    # on several grounds, one intervention each
    does = [plan.do] if plan.combine != "multiple" else [{n: v} for n, v in plan.do.items()]
    draws = (doubt.draws or 0) if worldview.couplings else 0
    worlds: list[Population] = []
    for do in does:
        rng = np.random.default_rng(plan.settings.seed) if draws else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MutandisWarning)
            made = worldview.counterfactuals(plan.population, do=do, draws=draws, rng=rng)
        worlds += [made.population, *made.draws]
    return worlds


def _are_equal(plan: Plan, first: list[Population], second: list[Population]) -> bool:
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
