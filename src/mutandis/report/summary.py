"""The summary of a report, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.report.formatting import count, listed, percent, plural

if TYPE_CHECKING:
    from mutandis.report.context import Material

__all__ = ["Figure", "describe_methods", "key_figures", "summarise", "title_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number that matters, with its words."""

    number: str
    words: str
    main: bool = False


def title_of(material: Material) -> str:
    """Name the audit."""
    grounds = listed(f"“{each.attribute}”" for each in material.plan.protections)
    return f"Audit of “{material.plan.outcome.column}” on the ground of {grounds}"


def key_figures(material: Material) -> tuple[Figure, ...]:
    """Give the headline in four numbers, or fewer where no test applies."""
    method, _ = material.primary
    row = material.headline.counts()
    figures = [
        Figure(number=count(row["complainants"]), words=f"complainants ({material.complainants})"),
        Figure(
            number=count(row["cases"]),
            words=f"with prima facie evidence, {percent(row['share'])} of them ({material.where})",
            main=True,
        ),
    ]
    if method.count_neighbours:
        alpha = material.plan.settings.alpha
        figures.append(
            Figure(
                number=count(row["significant"]),
                words=f"that chance hardly explains, one by one (α = {alpha:g})",
            )
        )
        if material.plan.settings.adjust != "none":
            figures.append(
                Figure(
                    number=count(row["significant_adjusted"]),
                    words="that remain after adjustment for the number of complainants",
                )
            )
    return tuple(figures)


def summarise(material: Material) -> tuple[str, ...]:
    """Say in a few paragraphs what was asked and what was found."""
    return tuple(
        filter(
            None,
            (
                _asked(material),
                _rates(material),
                _found(material),
                _tested(material),
                _other_methods(material),
                _left_out(material),
            ),
        )
    )


def _asked(material: Material) -> str:
    plan = material.plan
    how = {
        None: "",
        "multiple": (
            " Multiple discrimination was looked for: each ground was examined by itself, and a "
            "complainant counts only if she is found on every one."
        ),
        "intersectional": (
            " Intersectional discrimination was looked for: the grounds were examined together, "
            "as one status."
        ),
    }[plan.combine]
    better = "" if material.worse else " Better treatment was looked for, not worse."
    return (
        f"{plural(len(plan.population), 'decision')} on {plan.outcome.column} were examined. "
        f"{plural(len(material.headline), 'person', 'people')} with {material.complainants} (the "
        f"complainants) {'was' if len(material.headline) == 1 else 'were each'} compared with "
        f"{material.others}. “Refused” means {material.refused}.{how}{better}"
    )


def _rates(material: Material) -> str:
    situation = material.result.situation
    rows = situation.complainants
    facts = situation.is_negative
    said = f"On record, {percent(float(facts[rows].mean()))} of the complainants were refused"
    if len(material.parts) > 1:
        return f"{said}."
    others = np.unique(np.concatenate([stratum.test for stratum in situation.strata]))
    said += f", against {percent(float(facts[others].mean()))} of those they are compared with."
    if situation.is_negative_cf is None:
        return said
    would_be = float(situation.is_negative_cf[rows].mean())
    return (
        f"{said} Had the complainants been {material.reference}, by "
        f"{material.source_of_counterfactuals}, {percent(would_be)} of them would have been."
    )


def _found(material: Material) -> str:
    row = material.headline.counts()
    claim = "discrimination" if material.worse else "favourable treatment"
    given = material.source_of_counterfactuals
    given = f", given {given}," if material.primary[0].needs_counterfactual else ""
    if not row["cases"]:
        return (
            f"{material.where}{given} provides no evidence for {claim}: not for any of the "
            f"{plural(row['complainants'], 'complainant')}. That does not rule it out."
        )
    return (
        f"{material.where}{given} provides prima facie evidence for {claim} of "
        f"{count(row['cases'])} of {plural(row['complainants'], 'complainant')} "
        f"({percent(row['share'])}); {count(row['cases_refused'])} of these were refused "
        "themselves."
    )


def _tested(material: Material) -> str:
    method, _ = material.primary
    row, settings = material.headline.counts(), material.plan.settings
    if not row["cases"] or not method.count_neighbours:
        return ""
    said = (
        f"For {count(row['significant'])} of them ({percent(row['significant_share'])} of the "
        "complainants) chance alone hardly explains the difference, each case taken by itself "
        f"(one-sided test at the level α = {settings.alpha:g})"
    )
    if settings.adjust == "none":
        return f"{said}; the number of complainants tested was not adjusted for."
    return (
        f"{said}; for {count(row['significant_adjusted'])} also after adjustment for the number of "
        f"complainants tested ({_named(settings.adjust)})."
    )


def _named(adjust: str) -> str:
    return "–".join(part.capitalize() for part in adjust.split("-"))


def _other_methods(material: Material) -> str:
    method, k = material.primary
    others = [each for each in material.methods if each is not method]
    if not others:
        return ""
    said = listed(
        f"{each.title} for {count(material.findings(each.name, k).counts()['cases'])}"
        for each in others
    )
    return f"The other methods find evidence at k = {k}: {said}."


def _left_out(material: Material) -> str:
    number = int(material.headline.comparison.insufficient.sum())
    if not number:
        return ""
    return (
        f"About {plural(number, 'complainant')} nothing can be said: there are too few comparable "
        "people. They are counted among the complainants and are no cases."
    )


def describe_methods(material: Material) -> tuple[tuple[str, str], ...]:
    """Say what each method that was run compares."""
    words = {
        "st": "Situation testing: people like the complainant, of her own status (control group), "
        "with people like her, of the other status (test group). All else equal.",
        "cst_without": "Counterfactual situation testing: the control group with people of the "
        "other status who are like her counterfactual (test group), the person she would have "
        "been. Changing what needs to be changed.",
        "cst_with": "The same, with her own outcome counted in the control group and her "
        "counterfactual's in the test group.",
        "cf": "Counterfactual fairness: her outcome with her counterfactual's. No groups, so "
        "nothing says whether it is a pattern or chance.",
    }
    return tuple((method.title, words[method.name]) for method in material.methods)
