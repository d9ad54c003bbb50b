"""Whether b() is who decided: its answers beside the outcomes on record."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.data.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAgreement:
    """The 2 × 2 counts of recorded outcomes and of what b() decides on the same rows.

    Parameters
    ----------
    negative, positive
        The outcome's two values.
    both_negative, both_positive
        Rows on which record and b() agree.
    only_recorded_negative
        Rows that were refused and that b() would grant.
    only_decided_negative
        Rows that were granted and that b() would refuse.

    Examples
    --------
    >>> found = RecordAgreement(
    ...     negative="no",
    ...     positive="yes",
    ...     both_negative=30,
    ...     both_positive=60,
    ...     only_recorded_negative=4,
    ...     only_decided_negative=6,
    ... )
    >>> found.records()[0]
    {'recorded': 'no', 'decided_negative': 30, 'decided_positive': 4, 'rows': 34}
    >>> found.disagreement
    0.1
    """

    negative: Any
    positive: Any
    both_negative: int
    both_positive: int
    only_recorded_negative: int
    only_decided_negative: int

    @property
    def rows(self) -> int:
        """All rows."""
        return self.both_negative + self.both_positive + self.differing

    @property
    def differing(self) -> int:
        """The rows on which record and b() differ."""
        return self.only_recorded_negative + self.only_decided_negative

    @property
    def disagreement(self) -> float:
        """The share of rows on which record and b() differ."""
        return self.differing / self.rows

    def records(self) -> list[dict[str, Any]]:
        """Give a table: one row for each recorded outcome, one column for each answer of b()."""
        counts = [
            (self.negative, self.both_negative, self.only_recorded_negative),
            (self.positive, self.only_decided_negative, self.both_positive),
        ]
        return [
            {
                "recorded": recorded,
                "decided_negative": refused,
                "decided_positive": granted,
                "rows": refused + granted,
            }
            for recorded, refused, granted in counts
        ]

    def counts(self) -> dict[str, int]:
        """Give the four counts by name."""
        return {
            each.name: getattr(self, each.name) for each in fields(self)[2:]
        }  # after the values


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledAgreement:
    """Scores or levels on record, beside those that b() gives to the same rows.

    Parameters
    ----------
    rows, better, worse
        All rows, and those to which b() gives a better outcome than is on record, or a worse one.
    unexplained
        Of scores: the sum of squared differences between both, as a share of that between the
        record and its mean; 0 where they are the same, and 1 or more where the mean would do as
        well. None for levels, which have no distances.

    Examples
    --------
    >>> ScaledAgreement(rows=200, better=6, worse=4, unexplained=None).disagreement
    0.05
    """

    rows: int
    better: int
    worse: int
    unexplained: float | None

    @property
    def differing(self) -> int:
        """The rows on which record and b() differ."""
        return self.better + self.worse

    @property
    def disagreement(self) -> float:
        """The share of rows on which both differ; of scores, of the variation not explained."""
        return self.differing / self.rows if self.unexplained is None else self.unexplained

    def counts(self) -> dict[str, Any]:
        """Give all of it by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def compare_scaled_with_record(outcome: Outcome, decided: NDArray[np.int64]) -> ScaledAgreement:
    """Count how recorded scores or levels and b(X) go together, in steps as `decide` gives them."""
    recorded = outcome.is_negative
    return ScaledAgreement(
        rows=len(recorded),
        better=int(np.count_nonzero(decided < recorded)),
        worse=int(np.count_nonzero(decided > recorded)),
        unexplained=_unexplained(recorded, decided) if outcome.scores is not None else None,
    )


def compare_with_record(outcome: Outcome, decided: NDArray[np.bool_]) -> RecordAgreement:
    """Count how recorded outcomes and b(X) go together; `decided` is as `decide` gives it."""
    recorded = outcome.is_negative
    return RecordAgreement(
        negative=outcome.negative,
        positive=outcome.positive,
        both_negative=int(np.count_nonzero(recorded & decided)),
        both_positive=int(np.count_nonzero(~recorded & ~decided)),
        only_recorded_negative=int(np.count_nonzero(recorded & ~decided)),
        only_decided_negative=int(np.count_nonzero(~recorded & decided)),
    )


def _unexplained(recorded: NDArray[np.int64], decided: NDArray[np.int64]) -> float:
    """Give Σ(b - y)² / Σ(y - ȳ)² in whole steps: no order of rows can change it."""
    steps = recorded.astype(object)
    number, total = len(steps), int(steps.sum())
    spread = number * int((steps * steps).sum()) - total * total
    apart = decided.astype(object) - steps
    return number * int((apart * apart).sum()) / spread
