"""Agreement of b() with the outcomes on record."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.outcomes.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAgreement:
    """Outcomes on record, and what b() decides on the same rows.

    Parameters
    ----------
    rows, better, worse
        All rows, and those to which b() gives a better outcome than is on record, or a worse one.
    refused
        Rows that are refused on record; None where outcomes are not refusals or approvals.
    unexplained
        Of scores: the sum of squared differences between both, as a share of that between the
        record and its mean; 0 where they are the same, and 1 or more where the mean would do as
        well. None for outcomes without distances.

    Examples
    --------
    >>> found = RecordAgreement(rows=100, better=4, worse=6, refused=34)
    >>> found.counts_of_sides()
    ((30, 4), (6, 60))
    >>> found.disagreement
    0.1
    """

    rows: int
    better: int
    worse: int
    refused: int | None = None
    unexplained: float | None = None

    @property
    def differing(self) -> int:
        """The rows on which record and b() differ."""
        return self.better + self.worse

    @property
    def disagreement(self) -> float:
        """The share of rows on which both differ; of scores, of the variation not explained."""
        return self.differing / self.rows if self.unexplained is None else self.unexplained

    def counts(self) -> dict[str, Any]:
        """Return all known numbers by name."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def counts_of_sides(self) -> tuple[tuple[int, int], ...]:
        """Return the 2 × 2 table: refused and approved on record, by refused and approved by b().

        It is empty where outcomes are not refusals or approvals.
        """
        if self.refused is None:
            return ()
        refused, approved = self.refused, self.rows - self.refused
        return (refused - self.better, self.better), (self.worse, approved - self.worse)


def compare_with_record(outcome: Outcome, decided: NDArray[Any]) -> RecordAgreement:
    """Count how recorded outcomes and b(X) agree; `decided` are codes as `decide` returns them."""
    recorded, kind = outcome.codes, outcome.kind
    return RecordAgreement(
        rows=len(recorded),
        better=int(np.count_nonzero(decided < recorded)),
        worse=int(np.count_nonzero(decided > recorded)),
        refused=int(np.count_nonzero(recorded)) if kind.two_sided else None,
        unexplained=kind.unexplained(recorded, decided),
    )
