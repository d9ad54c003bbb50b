"""Findings: one row per complainant, columnar, under one method and one k."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mutandis.evidence.verdict import Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.evidence.interval import Interval
    from mutandis.search.share import Share

__all__ = ["COLUMNS", "Comparison", "Findings", "Group", "count_cases"]

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
)
"""The columns of a findings table, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One group (control or test) for each complainant.

    Parameters
    ----------
    share
        Its share of negative outcomes, exactly.
    rows
        How many rows hold its places, or share them.
    radius
        The distance of its farthest member; NaN where nobody but the centers is in it.
    """

    share: Share
    rows: NDArray[np.int64]
    radius: NDArray[np.float64]

    def take(self, complainants: NDArray[np.intp]) -> Group:
        """Give the chosen complainants' groups."""
        return Group(
            share=self.share.take(complainants),
            rows=self.rows[complainants],
            radius=self.radius[complainants],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Control against test group, for each complainant.

    Parameters
    ----------
    delta_p
        p_control - p_test.
    evidence
        Whether Δp > τ (Def. 5), decided exactly.
    significant
        Whether the one-sided test rejects at level α (Def. 6).
    interval
        The bounds and the p-value.
    """

    delta_p: NDArray[np.float64]
    evidence: NDArray[np.bool_]
    significant: NDArray[np.bool_]
    interval: Interval

    def take(self, complainants: NDArray[np.intp]) -> Comparison:
        """Give the chosen complainants' comparisons, repeated as often as asked for."""
        return Comparison(
            delta_p=self.delta_p[complainants],
            evidence=self.evidence[complainants],
            significant=self.significant[complainants],
            interval=self.interval.take(complainants),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All complainants under one method and one k.

    Parameters
    ----------
    method, k
        What was asked.
    ids
        The complainants.
    outcome, outcome_cf
        Their outcome values; the counterfactual ones are None throughout if nobody decided them.
    is_negative
        Whether the recorded outcome was negative.
    control, test
        The two groups.
    comparison
        What comparing them gives.
    q_value
        The p-value after adjustment for the number of complainants.
    alpha
        The level at which verdicts are given.
    draw_share
        The share of counterfactual draws under which Δp > τ; None where none were made.
    insufficient
        Who has too few people to be compared with, and is neither tested nor counted as a case;
        None where that cannot happen.
    """

    method: str
    k: int
    ids: NDArray[Any]
    outcome: NDArray[Any]
    outcome_cf: NDArray[Any] | None
    is_negative: NDArray[np.bool_]
    control: Group
    test: Group
    comparison: Comparison
    q_value: NDArray[np.float64]
    alpha: float
    draw_share: NDArray[np.float64] | None = None
    insufficient: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        """Count the complainants."""
        return len(self.ids)

    def take(self, complainants: NDArray[np.intp]) -> Self:
        """Give the chosen complainants' findings."""

        def some(column: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if column is None else column[complainants]

        return replace(
            self,
            ids=self.ids[complainants],
            outcome=self.outcome[complainants],
            outcome_cf=some(self.outcome_cf),
            is_negative=self.is_negative[complainants],
            control=self.control.take(complainants),
            test=self.test.take(complainants),
            comparison=self.comparison.take(complainants),
            q_value=self.q_value[complainants],
            draw_share=some(self.draw_share),
            insufficient=some(self.insufficient),
        )

    @property
    def significant_adjusted(self) -> NDArray[np.bool_]:
        """Whether the test still rejects after adjustment."""
        return np.asarray(
            self.comparison.significant & (self.q_value <= self.alpha), dtype=np.bool_
        )

    def verdicts(self) -> NDArray[np.object_]:
        """Give each complainant's verdict."""
        verdict = np.full(len(self), Verdict.NO_EVIDENCE.value, dtype=object)
        verdict[self.comparison.evidence] = Verdict.EVIDENCE.value
        verdict[self.comparison.significant] = Verdict.SIGNIFICANT.value
        verdict[self.significant_adjusted] = Verdict.SIGNIFICANT_ADJUSTED.value
        if self.insufficient is not None:
            verdict[self.insufficient] = Verdict.INSUFFICIENT.value
        return verdict

    def columns(self) -> dict[str, NDArray[Any]]:
        """Compute the findings table, in the order of `COLUMNS`; `draw_share` last, if known."""
        unknown = np.full(len(self), None, dtype=object)
        interval = self.comparison.interval
        values = (
            self.ids,
            self.outcome,
            unknown if self.outcome_cf is None else self.outcome_cf,
            self.control.share.values(),
            self.test.share.values(),
            self.comparison.delta_p,
            interval.low,
            interval.high,
            interval.p_value,
            self.q_value,
            self.verdicts(),
            self.control.share.size,
            self.test.share.size,
            self.control.rows,
            self.test.rows,
            self.control.radius,
            self.test.radius,
        )
        table = dict(zip(COLUMNS, values, strict=True))
        if self.draw_share is not None:
            table["draw_share"] = self.draw_share
        return table

    def counts(self) -> dict[str, Any]:
        """Count the cases: one row of the counts table."""
        counts = count_cases(
            self.comparison, self.q_value, alpha=self.alpha, is_negative=self.is_negative
        )
        return {"method": self.method, "k": self.k, **counts}


def count_cases(
    comparison: Comparison,
    q_value: NDArray[np.float64],
    *,
    alpha: float,
    is_negative: NDArray[np.bool_],
) -> dict[str, Any]:
    """Count whom a comparison finds.

    Parameters
    ----------
    comparison, q_value
        What comparing the groups gave, and the adjusted p-values.
    alpha
        The level.
    is_negative
        Whether each complainant's recorded outcome was negative.
    """
    complainants = len(q_value)
    cases = int(comparison.evidence.sum())
    significant = int(comparison.significant.sum())
    return {
        "complainants": complainants,
        "cases": cases,
        "share": cases / complainants,
        "cases_refused": int((comparison.evidence & is_negative).sum()),
        "significant": significant,
        "significant_share": significant / complainants,
        "significant_adjusted": int((comparison.significant & (q_value <= alpha)).sum()),
    }
