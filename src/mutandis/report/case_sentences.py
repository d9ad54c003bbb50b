"""The assumptions and the limits of a case, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mutandis.auditing.shared_neighbours import measure_shared_neighbours
from mutandis.data.attribute import AttributeKind
from mutandis.errors import PlanError
from mutandis.evidence.findings import Verdict
from mutandis.evidence.methods import METHODS
from mutandis.report.formatting import by_value, listed, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.auditing.plan import Plan
    from mutandis.auditing.run import AuditResult
    from mutandis.report.case_model import Part

__all__ = ["assumptions_of", "limits_of", "shared_neighbours_of"]

_INTERVALS = {
    "miettinen-nurminen": "Miettinen and Nurminen's score method",
    "agresti-caffo": "Agresti and Caffo's method",
    "newcombe": "Newcombe's method",
    "wald": "Wald's method, which has no width where a group was treated alike",
    "fisher": "Fisher's exact test",
}
_ADJUSTMENTS = {
    "benjamini-hochberg": "Benjamini and Hochberg's method",
    "benjamini-yekutieli": "Benjamini and Yekutieli's method",
    "holm": "Holm's method",
}


_NO_PROOF = (
    "No verdict proves discrimination. Evidence here is prima facie evidence: a reason for the "
    "decision maker to explain, and the explanation may be a good one."
)
_NO_CLEARANCE = (
    "The absence of evidence is no finding of equal treatment: groups of this size can miss even "
    "large differences."
)


def assumptions_of(result: AuditResult, *, least: int = 0) -> tuple[str, ...]:
    """Say what the answer takes for granted; numbers below `least` people are not said."""
    plan = result.plan
    return (
        *_on_counterfactuals(result),
        _on_likeness(plan),
        *_on_decisions(result, least=least),
        *_on_chance(plan, len(result.situation.complainants), least=least),
    )


def _on_counterfactuals(result: AuditResult) -> Iterator[str]:
    plan = result.plan
    ground = listed([repr(each.attribute) for each in plan.protections])
    if plan.worldview is None:
        if plan.counterfactuals is None:
            yield (
                "Nobody said how the complainant's attributes depend on her status, so she is "
                "compared with people who have the same attributes as they are on record: all "
                "else equal. Attributes that her status has held down already are taken as they "
                "stand."
            )
        else:
            yield (
                "The counterfactuals were supplied as a ready table. This file can show them, but "
                "not how they came about: whoever made them has to explain them."
            )
        return
    yield (
        f"Had {ground} been different, her attributes would have changed in the way that the "
        "worldview says, and in no other: " + "; ".join(_equations(plan)) + ". Whoever disagrees "
        "with the worldview should change it and audit again."
    )
    yield (
        "Whatever moves two of these attributes at the same time is part of the worldview. A "
        "common cause that it leaves out would distort the counterfactual, and the data need not "
        "show it."
    )
    couplings = result.provenance.computed["couplings"]
    for coupling, names in by_value(couplings).items():
        yield (
            f"For {listed(map(repr, names))} the facts do not determine how chance carries over to "
            "the other world. "
            f"What is assumed about it, {coupling}, no data can test."
        )
    held = {name: None for part in _runs(result) for name in part.provenance.computed["held"]}
    if held:
        yield (
            f"{listed(map(repr, held))} {'is' if len(held) == 1 else 'are'} held as on record: the "
            "worldview says that the decision maker may rightly use "
            f"{'it as it stands' if len(held) == 1 else 'them as they stand'} (business necessity)."
        )


def _equations(plan: Plan) -> Iterator[str]:
    if plan.worldview is None:
        return
    hidden = {child: latent.name for latent in plan.worldview.latents for child in latent.equations}
    for child, parents in plan.worldview.graph.parents.items():
        if parents or child in hidden:
            also = [f"the hidden cause {hidden[child]!r}"] if child in hidden else []
            causes = listed([*map(repr, parents), *also])
            equation = plan.worldview.equations.get(child)
            family = f" ({type(equation).__name__})" if equation is not None else ""
            yield f"{child!r} follows from {causes}{family}"


def _on_likeness(plan: Plan) -> str:
    names = listed([_weighted(attribute) for attribute in plan.attributes])
    if plan.semantics.likeness:
        return f"People are alike if they are near in {names}, {plan.semantics.likeness}"
    scale = (
        "each difference divided by its range in the table"
        if plan.settings.scaling == "range"
        else "numbers taken as they are"
    )
    ties = (
        "people at the same distance share the last places"
        if plan.settings.ties == "fair"
        else "everybody at the distance of the last place is counted in"
    )
    return (
        f"People are alike if they are near in {names} ({scale}, then averaged), and nothing else "
        f"matters for the decision. The order of the table has no part in it: {ties}."
    )


def _weighted(attribute: Any) -> str:
    kind = "" if attribute.kind is AttributeKind.CONTINUOUS else f", {attribute.kind.value}"
    weight = "" if attribute.weight == 1 else f", weight {attribute.weight:g}"
    aside = (kind + weight).removeprefix(", ")
    return f"{attribute.name!r}" + (f" ({aside})" if aside else "")


def _on_decisions(result: AuditResult, *, least: int) -> Iterator[str]:
    plan = result.plan
    if plan.decision is None:
        decided = plan.counterfactuals is not None and plan.counterfactuals.is_negative is not None
        yield "The outcomes compared are those on record. " + (
            "Those of counterfactuals came with the table that was supplied."
            if decided
            else "Nobody was asked to decide on a counterfactual."
        )
        return
    if result.disagreement is None:
        return
    rows = len(plan.population)
    differing = round(result.disagreement * rows)
    few = 0 < differing < least or 0 < rows - differing < least
    how_often = "some" if few else percent(result.disagreement)
    yield (
        "The outcomes of groups are those on record. The decision on a counterfactual comes from "
        f"a decision maker that differs from the record in {how_often} of the rows."
    )


def _on_chance(plan: Plan, complainants: int, *, least: int) -> Iterator[str]:
    settings = plan.settings
    many = "complainants" if complainants < least else plural(complainants, "complainant")
    if not any(method.count_neighbours for method in plan.methods):
        return
    yield (
        f"Intervals are {1 - 2 * settings.alpha:.0%} intervals with {settings.alpha:.0%} on each "
        f"side, by {_INTERVALS[settings.interval]}. They say how far chance in who was decided "
        "upon could explain the difference"
        + (
            ", given the counterfactual; they say nothing about doubt in the counterfactual itself."
            if any(method.needs_counterfactual for method in plan.methods)
            else "."
        )
    )
    if settings.adjust != "none":
        yield (
            f"All {many} in the table were tested; q-values take that "
            f" into account by {_ADJUSTMENTS[settings.adjust]}."
        )
    else:
        yield (
            f"All {many} in the table were tested, and p-values are not adjusted for "
            "that: some cases are significant by chance alone."
        )


def limits_of(
    result: AuditResult, parts: tuple[Part, ...], verdict: str, *, least: int = 0
) -> tuple[str, ...]:
    """Say what the answer cannot carry, for this audit and this complainant."""
    return (
        _NO_PROOF,
        *((_NO_CLEARANCE,) if verdict in {Verdict.NO_EVIDENCE, Verdict.INSUFFICIENT} else ()),
        *_on_support(parts),
        *_on_table(result, least=least),
        *_on_draws(result),
    )


def _on_support(parts: tuple[Part, ...]) -> Iterator[str]:
    for part in parts:
        on = f" on the ground of {listed(map(repr, part.ground))}" if len(parts) > 1 else ""
        for check in part.support:
            if check.off_support:
                yield (
                    f"Her {check.role} group{on} reaches farther than 99 of 100 groups in the same "
                    "part of the table: its people are not much like her."
                )
            if check.outside:
                yield (
                    f"In {listed(map(repr, check.outside))} the person compared with the test "
                    f"group{on} stands outside the range of everybody there: the comparison "
                    "extrapolates."
                )


def _runs(result: AuditResult) -> list[AuditResult]:
    return [*result.parts.values()] or [result]


def _on_table(result: AuditResult, *, least: int) -> Iterator[str]:
    dropped = result.plan.population.dropped
    few = any(rows < least for rows in dropped.values())
    for name, rows in dropped.items():
        some = "Some rows" if few else plural(rows, "row")
        yield f"{some} without a value in {name!r} took no part."
    for part in _runs(result):
        for name, number in part.clipped.items():
            if number:
                some = "some" if number < least else f"{number:,}"
                yield (
                    f"The worldview's bounds cut off {some} of the counterfactual values of "
                    f"{name!r} in the table."
                )


def _on_draws(result: AuditResult) -> Iterator[str]:
    draws = result.plan.settings.draws
    if draws:
        doubt = " and in the estimated equations" if result.plan.settings.bootstrap else ""
        yield (
            f"{plural(draws, 'further table')} of counterfactuals {'was' if draws == 1 else 'were'}"
            f" drawn to show the doubt in the noise{doubt}. The share of draws with evidence is no "
            "probability of discrimination."
        )
    method, _ = result.plan.settings.primary
    if METHODS[method].count_centers and not METHODS[method].count_neighbours:
        yield "Counterfactual fairness compares two decisions on one person: no test applies."


def shared_neighbours_of(result: AuditResult, *, least: int = 0) -> tuple[str, ...]:
    """Say how far the tests of all complainants are one test; empty where that has no meaning."""
    k = result.plan.settings.primary[1]
    if len(result.situation.complainants) < max(least, 2):
        return ()
    found = []
    for name, part in (result.parts or {"": result}).items():
        try:
            sentence = measure_shared_neighbours(part, k).sentence()
        except PlanError:  # no groups of neighbours that could overlap
            continue
        found.append(f"On the ground of {name!r}: {sentence}" if name else sentence)
    return tuple(found)
