"""Findings: one row per complainant, columnar, under one method and one k."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.rows import ByRow
from mutandis.engine.tally import Group
from mutandis.outcomes.binary import REFUSED
from mutandis.outcomes.measures import RISK_DIFFERENCE
from mutandis.verdicts.compare import join

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.outcomes.measures import Measure
    from mutandis.outcomes.outcome import Comparison, Kind

__all__ = [
    "COLUMNS",
    "FIRM",
    "Findings",
    "Robustness",
    "Verdict",
    "join_findings",
    "weakest",
]

COLUMNS = (
    "id",
    "outcome",
    "outcome_cf",
    "p_control",
    "p_test",
    "delta_p",
    "ci_low",
    "ci_high",
    "p_value",
    "q_value",
    "verdict",
    "n_control",
    "n_test",
    "rows_control",
    "rows_test",
    "radius_control",
    "radius_test",
    "n_effective",
    "unfit",
    "p_own",
    "own_case",
)
"""The columns of a findings table, in this order."""

FIRM = 0.9
"""The share of draws and refits under which a verdict has to stay, or it is fragile."""


class Verdict(StrEnum):
    """Exactly one per complainant, method and k. None of them proves discrimination.

    Examples
    --------
    >>> Verdict("significant") is Verdict.SIGNIFICANT
    True
    """

    NO_EVIDENCE = "no-evidence"
    """The control group was not refused more often than the test group, by more than τ."""
    EVIDENCE = "evidence"
    """It was: prima facie evidence (Def. 5), which chance may explain."""
    SIGNIFICANT = "significant"
    """Evidence that chance hardly explains, taken on its own (Def. 6)."""
    SIGNIFICANT_ADJUSTED = "significant-adjusted"
    """Evidence that chance hardly explains, although many complainants were tested."""
    INSUFFICIENT = "insufficient"
    """There were too few people to compare with, or none who are comparable."""

    @property
    def strength(self) -> int:
        """How strong it is: 0 without evidence, and 3 if significant after adjustment."""
        order = (Verdict.EVIDENCE, Verdict.SIGNIFICANT, Verdict.SIGNIFICANT_ADJUSTED)
        return order.index(self) + 1 if self in order else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Robustness(ByRow):
    """How much of the effect must be real for each verdict to hold (docs/robustness.md)."""

    # the least part of the effect with which the verdict holds; missing without evidence
    tipping: NDArray[np.float64]
    grade: NDArray[np.object_]  # "robust", "sensitive" or "fragile"; None without evidence
    line: NDArray[np.object_]  # in words; None without evidence
    # `stays_under` so many worldviews it is the same or stronger, and `breaks_under` names the
    # others; empty where no worldviews were compared
    worldviews: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings(ByRow):
    """All complainants under one method and one k."""

    method: str
    k: int
    ids: NDArray[Any]  # the complainants
    # their outcome values; the counterfactual ones are None throughout if they were not decided
    outcome: NDArray[Any]
    outcome_cf: NDArray[Any] | None
    # whether the recorded outcome was negative; of a score, whether it was worse than the mean of
    # the test group by more than τ, and of an ordered one, whether θ of it alone was
    is_negative: NDArray[np.bool_]
    control: Group
    test: Group
    comparison: Comparison  # what comparing them gives
    q_value: NDArray[np.float64]  # the p-value after adjustment for the number of complainants
    alpha: float  # the level at which verdicts are given
    measure: Measure = RISK_DIFFERENCE  # by which they are given
    # the share of draws and refits under which the verdict is the same or stronger, missing where
    # there is no evidence; None where neither was made
    verdict_share: NDArray[np.float64] | None = None
    # the share refused among one's own matches, NaN without any; None unless people were matched
    p_own: NDArray[np.float64] | None = None
    robustness: Robustness | None = None  # None where that was not measured
    kind: Kind = REFUSED  # of the outcome
    # whether there is a case of one's own (`answer_own_case`), None where that is not known; None
    # throughout unless people were matched
    own_case: NDArray[np.object_] | None = None
    # the findings on each attribute, where several were audited one by one: the same complainants
    # in the same order. Groups and Δp are then those of the attribute with the weakest evidence,
    # complainant by complainant
    parts: Mapping[str, Findings] = field(default_factory=dict)

    def __len__(self) -> int:
        """Count the complainants."""
        return len(self.ids)

    @property
    def significant_adjusted(self) -> NDArray[np.bool_]:
        """Whether the test still rejects after adjustment."""
        return np.asarray(
            self.comparison.significant & (self.q_value <= self.alpha), dtype=np.bool_
        )

    @property
    def compared(self) -> NDArray[np.float64]:
        """Δp, missing where groups cannot be compared."""
        return np.where(self.comparison.insufficient, np.nan, self.comparison.delta_p)

    @property
    def against(self) -> NDArray[np.float64]:
        """The measure, larger where it speaks more against the decisions; missing as `compared`."""
        if not self.measure.is_ratio:
            return self.compared
        found = self.measure.values(self.control.share, self.test.share)
        found = np.where(np.isnan(found), 1.0, found)  # nothing was refused, or nothing granted
        oriented = found if self.measure.worse_above else -found
        return np.where(self.comparison.insufficient, np.nan, oriented)

    @property
    def has_pattern(self) -> NDArray[np.bool_]:
        """Whether the test rejects after adjustment, or without it where none was made."""
        unadjusted = np.isnan(self.q_value)
        return np.where(unadjusted, self.comparison.significant, self.significant_adjusted)

    @property
    def has_own_case(self) -> NDArray[np.bool_]:
        """Whether a case of one's own is known."""
        if self.own_case is None:
            return np.zeros(len(self), dtype=np.bool_)
        return self.own_case.astype(np.bool_)  # what is not known counts as no

    @property
    def fragile(self) -> NDArray[np.bool_]:
        """Whose verdict falls under too many draws and refits of the counterfactuals."""
        if self.verdict_share is None:
            return np.zeros(len(self), dtype=np.bool_)
        return np.asarray(self.verdict_share < FIRM, dtype=np.bool_)

    def p_value_bound(self) -> NDArray[np.float64]:
        """Return the largest p-value with which each verdict is the same.

        What it takes to remain after adjustment is as in the audit itself.
        """
        adjusted = self.significant_adjusted
        cutoff = np.max(self.comparison.interval.p_value, where=adjusted, initial=0.0)
        unadjusted = np.where(self.comparison.significant, self.alpha, np.inf)
        return np.where(adjusted, cutoff, unadjusted)

    @property
    def strength(self) -> NDArray[np.int64]:
        """How strong each verdict is: see `Verdict.strength`."""
        found = self.comparison
        steps = [found.evidence, found.significant, self.significant_adjusted]
        return np.asarray(np.sum(steps, axis=0, dtype=np.int64) * ~found.insufficient)

    def verdicts(self) -> NDArray[np.object_]:
        """Return each complainant's verdict."""
        return np.array([each.value for each in Verdict], dtype=object)[self.verdict_codes()]

    def verdict_codes(self) -> NDArray[np.int8]:
        """Return the place of each complainant's verdict among all verdicts."""
        codes = np.zeros(len(self), dtype=np.int8)
        found = self.comparison
        # each takes precedence over those before it
        for code, mask in enumerate(
            (found.evidence, found.significant, self.significant_adjusted, found.insufficient),
            start=1,
        ):
            codes[mask] = code
        return codes

    def named(self, column: str) -> str:
        """Return the name of a column for this kind of outcome."""
        return self.kind.renamed.get(column, column)

    def averages(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what is shown of control and test groups."""
        return self.kind.averages(self.control.share, self.test.share)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Compute the findings table, in the order of `COLUMNS`.

        After these, the measure with its bounds, if it is not the difference; `verdict_share` and
        `fragile`, `tipping`, `grade` and `robustness`, and `stays_under` and `breaks_under`, if
        they are known; and the columns of each attribute by itself.
        """
        unknown = np.full(len(self), None, dtype=object)
        interval = self.comparison.interval
        values = (
            self.ids,
            self.outcome,
            unknown if self.outcome_cf is None else self.outcome_cf,
            *self.averages(),
            self.comparison.delta_p,
            interval.low,
            interval.high,
            interval.p_value,
            self.q_value,
            self.verdicts(),
            self.control.share.places,
            self.test.share.places,
            self.control.rows,
            self.test.rows,
            self.control.radius,
            self.test.radius,
            self.test.share.weight,
            self.test.unfit(),
            np.full(len(self), np.nan) if self.p_own is None else self.p_own,
            unknown if self.own_case is None else self.own_case,
        )
        table = dict(zip(map(self.named, COLUMNS), values, strict=True)) | self.measured()
        if self.verdict_share is not None:
            table["verdict_share"] = self.verdict_share
            table["fragile"] = self.fragile
        if self.robustness is not None:
            table["tipping"] = self.robustness.tipping
            table["grade"] = self.robustness.grade
            table["robustness"] = self.robustness.line
            table |= self.robustness.worldviews
        for attribute, found in self.parts.items():
            table[f"{self.named('delta_p')}_{attribute}"] = found.comparison.delta_p
            table[f"p_value_{attribute}"] = found.comparison.interval.p_value
            table[f"verdict_{attribute}"] = found.verdicts()
            if found.verdict_share is not None:
                table[f"verdict_share_{attribute}"] = found.verdict_share
        return table

    def measured(self) -> dict[str, NDArray[Any]]:
        """Return the measure and its bounds in further columns, if it is not the difference."""
        measure, bounds = self.measure, self.comparison.interval.measured
        if not measure.is_ratio:
            return {}
        missing = np.full(len(self), np.nan)
        return {
            measure.column: measure.values(self.control.share, self.test.share),
            f"{measure.column}_low": missing if bounds is None else bounds.low,
            f"{measure.column}_high": missing if bounds is None else bounds.high,
        }

    def counts(self) -> dict[str, Any]:
        """Count the complainants with evidence: a row of the counts table."""
        complainants, found = len(self), self.comparison
        cases, significant = int(found.evidence.sum()), int(found.significant.sum())
        counts = {
            "method": self.method,
            "k": self.k,
            "complainants": complainants,
            "cases": cases,
            "share": cases / complainants,
            "cases_refused": int((found.evidence & self.is_negative).sum()),
            "significant": significant,
            "significant_share": significant / complainants,
            "significant_adjusted": int(self.significant_adjusted.sum()),
        }
        return {self.named(name): each for name, each in counts.items()}


def join_findings(
    parts: Mapping[str, Findings],
    *,
    worse: bool,
    outcome_cf: NDArray[Any] | None,
    q_values: Callable[[Comparison], NDArray[np.float64]],
) -> Findings:
    """Join the findings on each attribute (an intersection-union test).

    Groups and Δp are those of the attribute with the weakest evidence; a missing difference is
    none. `outcome_cf` is what would have been decided, whichever attribute is intervened on.
    """
    found = list(parts.values())
    chosen = weakest(np.stack([each.against for each in found]), worse=worse)
    comparison = join([each.comparison for each in found], chosen)
    return replace(
        found[0],
        outcome_cf=outcome_cf,
        control=_pick_groups([each.control for each in found], chosen),
        test=_pick_groups([each.test for each in found], chosen),
        comparison=comparison,
        q_value=q_values(comparison),
        verdict_share=None,
        **_join_own(found, worse=worse),
        parts=parts,
    )


def weakest(against: NDArray[np.float64], *, worse: bool) -> NDArray[np.intp]:
    """Return each complainant's ground with the weakest evidence (grounds x complainants)."""
    return np.asarray(np.argmin(against if worse else -against, axis=0), dtype=np.intp)


def _are(answers: NDArray[np.object_], *, answer: bool | None) -> NDArray[np.bool_]:
    return np.array([each is answer for each in answers.ravel().tolist()]).reshape(answers.shape)


def _join_own(found: Sequence[Findings], *, worse: bool) -> dict[str, Any]:
    """Join the own cases: one on every attribute; the share is that of the weakest."""
    shares = [each.p_own for each in found if each.p_own is not None]
    if not shares:
        return {}
    answers = np.stack([each.own_case for each in found if each.own_case is not None])
    answer = _are(answers, answer=True).all(axis=0).astype(object)
    answer[_are(answers, answer=None).any(axis=0) & ~_are(answers, answer=False).any(axis=0)] = None
    own = _pick(shares, weakest(found[0].kind.against(np.stack(shares)), worse=worse))
    return {"p_own": own, "own_case": answer}


def _pick(columns: Sequence[NDArray[Any]] | NDArray[Any], chosen: NDArray[np.intp]) -> NDArray[Any]:
    return np.stack(list(columns))[chosen, np.arange(len(chosen))]


def _pick_groups(groups: Sequence[Group], chosen: NDArray[np.intp]) -> Group:
    """Return the chosen group of each complainant."""
    size = len(chosen)
    return Group.join(groups).take(chosen * size + np.arange(size))
