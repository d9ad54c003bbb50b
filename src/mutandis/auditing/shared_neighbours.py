"""How far the tests of many complainants are one test: neighbours who stand in many groups.

Complainants who are alike have nearly the same control group, and their tests succeed or fail
together. Adjusted p-values keep their meaning (Benjamini–Hochberg allows for tests that lean the
same way), but "40 significant complainants" may be one finding told forty times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.errors import PlanError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.auditing.run import AuditResult

__all__ = ["SharedNeighbours", "measure_shared_neighbours"]

# pairs among so many complainants: 19,900 of them, enough for two digits
_SAMPLE = 200
_STRONG = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNeighbours:
    """How much control groups overlap.

    Parameters
    ----------
    k, complainants
        What was asked.
    mean_overlap
        The part of its places that a control group shares with another complainant's, on average
        over pairs.
    effective
        How many tests without any overlap would carry as much information: n / (1 + (n - 1) ρ),
        the design effect of survey sampling with the mean overlap as correlation.
    """

    k: int
    complainants: int
    mean_overlap: float
    effective: float

    @property
    def strong(self) -> bool:
        """Whether the tests depend on each other so much that it must be said."""
        return self.mean_overlap > _STRONG

    def sentence(self) -> str:
        """Say it in words."""
        start = (
            f"At k = {self.k}, the control groups of two complainants share "
            f"{self.mean_overlap:.1%} of their places on average"
        )
        if not self.strong:
            return f"{start}: their tests depend on each other little."
        return (
            f"{start}: their tests depend on each other strongly. The {self.complainants:,} tests "
            f"carry about as much information as {self.effective:,.0f} independent ones; counts of "
            "cases are no counts of independent findings."
        )


def measure_shared_neighbours(result: AuditResult, k: int) -> SharedNeighbours:
    """Measure the overlap of control groups, on a sample of complainants if there are many."""
    if result.parts:
        raise PlanError(
            "Multiple discrimination is audited on each attribute by itself, with groups of its "
            f"own: audit.part({next(iter(result.parts))!r}).shared_neighbours()."
        )
    control = result.grouping.control
    if control is None:
        raise PlanError(
            "This audit has no control groups of neighbours that could overlap: it ran 'cf' alone, "
            "or the preset."
        )
    index = result.plan.settings.ks.index(k)
    complainants = len(result.situation.complainants)
    chosen = _spread(complainants, result)
    places = [control.members(int(one), index) for one in chosen]
    members = [dict(zip(each.ids.tolist(), each.place.tolist(), strict=True)) for each in places]
    overlaps = [
        sum(min(place, other[who]) for who, place in one.items() if who in other)
        / max(sum(one.values()), 1)
        for first, one in enumerate(members)
        for other in members[first + 1 :]
    ]
    mean = float(np.mean(overlaps)) if overlaps else 0.0
    return SharedNeighbours(
        k=k,
        complainants=complainants,
        mean_overlap=mean,
        effective=complainants / (1 + (complainants - 1) * mean),
    )


def _spread(complainants: int, result: AuditResult) -> NDArray[np.intp]:
    """Choose complainants evenly over the table, by their radius and not by their row."""
    order = np.arange(complainants)
    control = result.grouping.control
    if complainants > _SAMPLE and control is not None:
        radius = control.at(len(result.plan.settings.ks) - 1).radius
        order = np.argsort(radius, kind="stable")
    return order[np.linspace(0, complainants - 1, min(_SAMPLE, complainants)).astype(np.intp)]
