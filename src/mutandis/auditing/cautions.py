"""What makes the headline of an audit doubtful."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.auditing.sentences import list_reasons
from mutandis.data.columns import Numbers
from mutandis.scm.additive import AdditiveEquation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutandis.auditing.audit import Audit
    from mutandis.data.labels import Labels
    from mutandis.verdicts.findings import Findings

__all__ = ["caution_about", "caution_about_matches"]

# with smaller groups, few of those who are treated differently are found after adjustment
_LITTLE_POWER = 30
# the share of complainants who should be comparable
_MOST = 2 / 3
# how many reasons are named for which people cannot be compared
_REASONS = 3
# the part of an attribute's variation that one row may hold where least squares are relied on
_ONE_ROW = 0.15


def caution_about(audit: Audit) -> list[str]:
    """List what a reader of the headline has to know, in sentences."""
    method, _ = audit.plan.choose(None, None)
    matched = [*_of_sizes(audit), *_of_matches(audit)] if method.matched else []
    return [*matched, *_of_tails(audit), *_of_outcomes(audit)]


def _of_sizes(audit: Audit) -> Iterator[str]:
    """Check whether groups are still about people like the complainant, and large enough."""
    k = audit.plan.settings.primary[1]
    strata = [stratum for ground in audit.grounds for stratum in ground.study.strata]
    protected = min(len(stratum.control) for stratum in strata)
    reference = min(len(stratum.test) for stratum in strata)
    if k > protected // 3:
        yield (
            f"k = {k} is more than a third of the {protected:,} protected rows: such groups are "
            "hardly about people like the complainant."
        )
    if k > reference // 5:
        yield (
            f"k = {k} is more than a fifth of the {reference:,} reference rows: the same people "
            "stand for many."
        )
    if k < _LITTLE_POWER:
        yield (
            f"With k = {k} few cases are found after adjustment, even where there are many; from "
            f"k = {_LITTLE_POWER} on it is better."
        )


def _of_matches(audit: Audit) -> Iterator[str]:
    """Check whether test groups represent enough people, and enough complainants have one."""
    found, k = audit.results.headline, audit.plan.settings.primary[1]
    tested, matching = ~found.comparison.insufficient, found.test.matching
    if matching is not None and tested.any():
        effective = float(np.median(matching.n_effective[tested]))
        if effective < k:
            yield (
                f"Half of the test groups count as fewer than {effective:.0f} people: the same few "
                f"stand for the {k} of the control group."
            )
    yield from caution_about_matches(found, audit.plan.labels)


def caution_about_matches(found: Findings, labels: Labels) -> Iterator[str]:
    """Name the reasons for which people could not be compared, where they are many."""
    left_out = found.comparison.insufficient
    if left_out.mean() > 1 - _MOST:
        reasons = list_reasons(found.test.unfit()[left_out].tolist(), most=_REASONS, labels=labels)
        yield (
            f"{int(left_out.sum()):,} of {len(found):,} complainants could not be compared: "
            f"{reasons}."
        )


def _of_tails(audit: Audit) -> Iterator[str]:
    """Check whether single rows decide an estimated equation, which refits hardly show."""
    plan = audit.plan
    for name, equation in ({} if plan.worldview is None else plan.worldview.equations).items():
        column = plan.population.columns[name]
        is_estimated = getattr(equation, "coefficients", None) != ()
        if not isinstance(equation, AdditiveEquation) or not isinstance(column, Numbers):
            continue
        if equation.link != "identity" or not is_estimated:
            continue
        # sorted, so that the order of the rows has no effect on the last bit
        values = np.sort(column.values)
        squares = (values - values.mean()) ** 2
        if squares.max() > _ONE_ROW * squares.sum():
            yield (
                f"One row holds {squares.max() / squares.sum():.0%} of the variation of "
                f"{plan.labels.quoted(name)}: an equation that is fitted by least squares depends "
                "on it, more than refits show. A log link or a stated equation may be better."
            )


def _of_outcomes(audit: Audit) -> Iterator[str]:
    """Check whether the unfavourable outcome is the right one, and who the cases are."""
    words, found = audit.plan.words, audit.results.headline
    yield from words.cautions(audit.plan.outcome)
    cases = found.significant_adjusted
    granted = int((cases & ~found.is_negative).sum())
    if 2 * granted > int(cases.sum()):
        yield (
            f"{granted:,} of the {int(cases.sum()):,} complainants with a pattern "
            f"{words.not_themselves}: they are part of the pattern only."
        )
    if audit.disagreement == 0:
        yield (
            "b() decides every row as it is on record. If it was fitted to the record, what it "
            "says about counterfactuals is not a second opinion."
        )
