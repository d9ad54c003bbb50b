"""Findings: one row per complainant, columnar, under one method and one k."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from math import fsum
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
    "Digest",
    "Findings",
    "Robustness",
    "Verdict",
    "combine_findings",
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

# numbers that are added up at a time
_BLOCK = 1 << 15

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
    """How much must be believed for each verdict to stand (docs/robustness.md)."""

    # the least part of the effect with which the verdict stands; missing without evidence
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
    # the share refused among her own matches, NaN where she has none; None unless people were
    # matched
    p_own: NDArray[np.float64] | None = None
    robustness: Robustness | None = None  # None where that was not measured
    kind: Kind = REFUSED  # of the outcome
    # whether she has a case of her own (`answer_own_case`), None where that is not known; None
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
        """Whether she is known to have a case of her own."""
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
        """Give the largest p-value with which each verdict is the same.

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

    def at_level(self, alpha: float) -> Findings:
        """Give the same tests at another level, if their p-values do not depend on it.

        There are no bounds, and it is not known in how many draws and refits verdicts stay.
        """
        found, share = self.comparison, self.verdict_share
        missing = np.full(len(self), np.nan)
        return replace(
            self,
            alpha=alpha,
            comparison=replace(
                found,
                significant=found.evidence & (found.interval.p_value <= alpha),
                interval=replace(found.interval, low=missing, high=missing, measured=None),
            ),
            verdict_share=None if share is None else np.full_like(share, np.nan),
        )

    def verdicts(self) -> NDArray[np.object_]:
        """Give each complainant's verdict."""
        return np.array([each.value for each in Verdict], dtype=object)[self.verdict_codes()]

    def verdict_codes(self) -> NDArray[np.int8]:
        """Give each complainant's verdict as its place among all verdicts."""
        return _verdict_codes(self.comparison, self.q_value, self.alpha)

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
        """Give the measure and its bounds in columns of their own, if it is not the difference."""
        measure, bounds = self.measure, self.comparison.interval.measured
        if not measure.is_ratio:
            return {}
        missing = np.full(len(self), np.nan)
        return {
            measure.column: measure.values(self.control.share, self.test.share),
            f"{measure.column}_low": missing if bounds is None else bounds.low,
            f"{measure.column}_high": missing if bounds is None else bounds.high,
        }

    def digest(self, *, whole: bool) -> Digest:
        """Say in short what was found; on the `whole`, with everyone's difference."""
        return Digest.of(
            self.comparison,
            self.q_value,
            method=self.method,
            k=self.k,
            alpha=self.alpha,
            is_negative=self.is_negative,
            kind=self.kind,
            whole=whole,
        )

    def counts(self) -> dict[str, Any]:
        """Count the cases: one row of the counts table."""
        return _count_cases(
            self.comparison,
            self.q_value,
            method=self.method,
            k=self.k,
            alpha=self.alpha,
            is_negative=self.is_negative,
            kind=self.kind,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What a report says about all complainants under one method and k."""

    counts: Mapping[str, Any]  # a row of the counts table
    verdicts: Mapping[Verdict, int]
    mean: float  # of Δp over those who can be compared
    # as `Comparison` has them, of everyone or of no one
    delta_p: NDArray[np.float64]
    evidence: NDArray[np.bool_]
    insufficient: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        found: Comparison,
        q_value: NDArray[np.float64],
        *,
        method: str,
        k: int,
        alpha: float,
        is_negative: NDArray[np.bool_],
        kind: Kind,
        whole: bool,
    ) -> Digest:
        """Say in short what was found; on the `whole`, with everyone's difference."""
        counts = _count_cases(
            found,
            q_value,
            method=method,
            k=k,
            alpha=alpha,
            is_negative=is_negative,
            kind=kind,
        )
        verdicts = np.bincount(_verdict_codes(found, q_value, alpha), minlength=len(Verdict))
        compared, kept = found.delta_p[~found.insufficient], slice(None if whole else 0)
        # some at a time: as objects, numbers take four times the memory
        blocks = (compared[start : start + _BLOCK] for start in range(0, len(compared), _BLOCK))
        total = fsum(chain.from_iterable(block.tolist() for block in blocks))
        return cls(
            counts=counts,
            verdicts=dict(zip(Verdict, verdicts.tolist(), strict=True)),
            mean=total / len(compared) if len(compared) else float("nan"),
            # copies: a part of an array would keep the whole of it
            delta_p=found.delta_p[kept].copy(),
            evidence=found.evidence[kept].copy(),
            insufficient=found.insufficient[kept].copy(),
        )


def _verdict_codes(
    found: Comparison, q_value: NDArray[np.float64], alpha: float
) -> NDArray[np.int8]:
    """Give each complainant's verdict as its place among all verdicts."""
    codes = np.zeros(len(q_value), dtype=np.int8)
    adjusted = found.significant & (q_value <= alpha)
    # each takes precedence over those before it
    for code, mask in enumerate(
        (found.evidence, found.significant, adjusted, found.insufficient), start=1
    ):
        codes[mask] = code
    return codes


def _count_cases(
    comparison: Comparison,
    q_value: NDArray[np.float64],
    *,
    method: str,
    k: int,
    alpha: float,
    is_negative: NDArray[np.bool_],
    kind: Kind,
) -> dict[str, Any]:
    """Count the complainants for whom a comparison finds evidence: a row of the counts table."""
    complainants = len(q_value)
    cases = int(comparison.evidence.sum())
    significant = int(comparison.significant.sum())
    counts = {
        "method": method,
        "k": k,
        "complainants": complainants,
        "cases": cases,
        "share": cases / complainants,
        "cases_refused": int((comparison.evidence & is_negative).sum()),
        "significant": significant,
        "significant_share": significant / complainants,
        "significant_adjusted": int((comparison.significant & (q_value <= alpha)).sum()),
    }
    return {kind.renamed.get(name, name): each for name, each in counts.items()}


def combine_findings(
    parts: Mapping[str, Findings],
    *,
    outcome_cf: NDArray[Any] | None,
    weakest: Callable[[NDArray[np.float64]], NDArray[np.intp]],
    adjust: Callable[[Comparison], NDArray[np.float64]],
) -> Findings:
    """Put the findings on each attribute together (an intersection-union test).

    `outcome_cf` is what would have been decided, whichever attribute is intervened on. `weakest`
    finds, among the differences (attributes × complainants), each one's weakest evidence, which is
    none where it is missing.
    """
    found = list(parts.values())
    first = found[0]
    chosen = weakest(np.stack([each.against for each in found]))
    comparison = join([each.comparison for each in found], chosen)
    return Findings(
        method=first.method,
        k=first.k,
        ids=first.ids,
        outcome=first.outcome,
        outcome_cf=outcome_cf,
        is_negative=first.is_negative,
        control=_pick_groups([each.control for each in found], chosen),
        test=_pick_groups([each.test for each in found], chosen),
        comparison=comparison,
        q_value=adjust(comparison),
        alpha=first.alpha,
        measure=first.measure,
        kind=first.kind,
        **_combine_own(found, weakest),
        parts=parts,
    )


def _are(answers: NDArray[np.object_], *, answer: bool | None) -> NDArray[np.bool_]:
    return np.array([each is answer for each in answers.ravel().tolist()]).reshape(answers.shape)


def _combine_own(
    found: Sequence[Findings], weakest: Callable[[NDArray[np.float64]], NDArray[np.intp]]
) -> dict[str, Any]:
    """Her own case is one on every attribute; the share is that of the weakest."""
    shares = [each.p_own for each in found if each.p_own is not None]
    if not shares:
        return {}
    answers = np.stack([each.own_case for each in found if each.own_case is not None])
    answer = _are(answers, answer=True).all(axis=0).astype(object)
    answer[_are(answers, answer=None).any(axis=0) & ~_are(answers, answer=False).any(axis=0)] = None
    own = _pick(shares, weakest(found[0].kind.against(np.stack(shares))))
    return {"p_own": own, "own_case": answer}


def _pick(columns: Sequence[NDArray[Any]] | NDArray[Any], chosen: NDArray[np.intp]) -> NDArray[Any]:
    return np.stack(list(columns))[chosen, np.arange(len(chosen))]


def _pick_groups(groups: Sequence[Group], chosen: NDArray[np.intp]) -> Group:
    """Give each complainant the group that was chosen for her."""
    size = len(chosen)
    return Group.join(groups).take(chosen * size + np.arange(size))
