"""How robust a verdict is to the worldview: tipping points, hidden causes, draws and refits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.doubt import REFITS, doubt_verdict
from mutandis.auditing.tipping import (
    describe_verdict,
    find_curve,
    name_worlds,
    rules_of,
    tipping_of,
)
from mutandis.engine.methods import METHODS
from mutandis.report.case_model import VerdictRobustness
from mutandis.report.formatting import known
from mutandis.verdicts.findings import FIRM, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutandis.auditing.case import Case
    from mutandis.auditing.tipping import CurvePoint
    from mutandis.report.case_model import Part

__all__ = ["curve_of", "doubt_of", "robustness_of"]


def doubt_of(case: Case) -> tuple[int, float | None]:
    """Return the number of draws and refits, and the share of them under which the verdict stays.

    Where the audit has none, some refits are made for this person.
    """
    worlds = case.audit.plan.settings.uncertainty.worlds
    if not worlds:
        return REFITS, doubt_verdict(case.audit, case.place)
    method, k = case.audit.plan.settings.primary
    return worlds, known(case.result(method, k=k).get("verdict_share"))


def curve_of(case: Case) -> tuple[CurvePoint, ...]:
    """Compute the comparison with each part of the effect; empty where there is no effect."""
    plan = case.audit.plan
    if case.result(plan.settings.primary[0], k=plan.settings.primary[1])["verdict"] == (
        Verdict.INSUFFICIENT
    ):
        return ()
    if not METHODS[plan.settings.primary[0]].has_tipping:
        return ()
    return find_curve(case.audit, case.place)


def robustness_of(case: Case, parts: Sequence[Part]) -> VerdictRobustness | None:
    """Measure how wrong the worldview may be before the headline falls."""
    plan, found = case.audit.plan, tipping_of(case.audit, case.place)
    if found is None:
        return None
    method, k = plan.settings.primary
    share = known(case.result(method, k=k).get("verdict_share"))
    worlds = name_worlds(plan)
    if not worlds and len(parts) == 1:  # made for her alone
        share, worlds = parts[0].verdict_share, "refits"
    found = replace(found, fragile=np.array([share is not None and share < FIRM]))
    point, grade = known(found.point[0]), found.grade[0]
    verdicts = {size: Verdict(case.result(method, k=size)["verdict"]) for size in plan.settings.ks}
    stays = [size for size, each in verdicts.items() if each.strength >= verdicts[k].strength]
    without = {name: bool(stands[0]) for name, stands in found.without.items()}
    compared = case.audit.results.worldviews
    line = (
        "there is no verdict that could fall"
        if point is None
        else describe_verdict(
            plan,
            point,
            share=share,
            worlds=worlds,
            ks=stays,
            worldviews=None
            if compared is None
            else (int(compared.stays[case.place].sum()), len(compared.names)),
        )
    )
    return VerdictRobustness(
        tipping=point,
        grade=grade,
        rule="" if grade is None else rules_of(case.audit)[grade],
        sentence=line,
        appears=known(found.appears[0]),
        **_hidden_cause(case, point),
        stands_without={} if point is None else without,
        worldviews={} if compared is None else compared.verdicts_of(case.place),
    )


def _hidden_cause(case: Case, point: float | None) -> dict[str, Any]:
    if point is None or case.audit.plan.worldview is None:
        return {}
    cause = case.audit.hidden_cause()
    return {
        "robustness_value": cause.at(case.place, point).get("robustness_value"),
        "hidden_cause": cause.sentence(case.place, point),
    }
