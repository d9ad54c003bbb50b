"""What a reader of a redacted case file could work out.

Kerckhoffs's rule: the reader has this program, and knows everything but the numbers that are
withheld. Groups around the same center are nested; a verdict says on which side of a line two
numbers lie; and a number is withheld for a reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from mutandis.evidence.findings import Verdict
from mutandis.evidence.methods import METHODS
from mutandis.search.share import Share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from mutandis.auditing.run import AuditResult
    from mutandis.evidence.case import Case
    from mutandis.evidence.findings import Findings
    from mutandis.evidence.groups import Members

__all__ = [
    "LEAST",
    "Cells",
    "Run",
    "is_small",
    "possible_by_group",
    "possible_counts",
    "searched_for",
]

Role = Literal["control", "test"]
Key = tuple[str, int]
# more pairs of numbers than these are not gone through: so large groups leave much open
_PAIRS = 1_000_000

LEAST: Final = 5
"""Cells with fewer people are withheld."""


def is_small(people: int) -> bool:
    """Tell whether a cell is too small to be shown; one with nobody in it hides nobody.

    Examples
    --------
    >>> [is_small(people) for people in (0, 1, 4, 5)]
    [False, True, True, False]
    """
    return 0 < people < LEAST


@dataclass(frozen=True, slots=True)
class Cells:
    """The people of one group, by outcome, apart from those who share the last places.

    Parameters
    ----------
    refused, granted
        With the unfavourable outcome, and without.
    refused_sharing, granted_sharing
        Those of them who share a place: the share of the group tells them from the others.
    """

    refused: int
    granted: int
    refused_sharing: int = 0
    granted_sharing: int = 0

    @classmethod
    def of(cls, members: Members) -> Cells:
        """Count a group; search centers are no people here."""
        people = ~members.is_center
        sharing = people & (members.place < 1)
        refused = members.is_negative
        return cls(
            int((people & refused).sum()),
            int((people & ~refused).sum()),
            int((sharing & refused).sum()),
            int((sharing & ~refused).sum()),
        )

    def is_safe(self) -> bool:
        """Tell whether no cell is small, nor any that the share would tell."""
        cells = [self.refused, self.granted, self.refused_sharing, self.granted_sharing]
        if self.is_shared:
            cells += [self.refused - self.refused_sharing, self.granted - self.granted_sharing]
        return not any(is_small(cell) for cell in cells)

    @property
    def people(self) -> int:
        """All of them."""
        return self.refused + self.granted

    @property
    def is_shared(self) -> bool:
        """Whether people share places."""
        return self.refused_sharing + self.granted_sharing > 0

    def unshared(self) -> Cells:
        """Give the same people, without saying who shares a place."""
        return Cells(self.refused, self.granted)

    def holds(self, smaller: Cells) -> bool:
        """Tell whether a smaller group can be a part of this one."""
        return self.refused >= smaller.refused and self.granted >= smaller.granted

    def is_safe_beside(self, larger: Cells) -> bool:
        """Tell whether the people between this group and a larger one make no small cell."""
        return not is_small(abs(larger.refused - self.refused)) and not is_small(
            abs(larger.granted - self.granted)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One audit, one complainant of it, and what it found about her by method and k."""

    result: AuditResult
    case: Case
    findings: Mapping[tuple[str, int], Findings]


def searched_for(method: str, role: Role) -> str:
    """Name what was searched for a group: methods share their control groups."""
    return "control" if role == "control" else METHODS[method].center.value


def possible_counts(k: int, shown: Mapping[int, Cells], *, people: int) -> list[int]:
    """Give the numbers of refusals that a withheld group may have, by what else is shown.

    A smaller group is a part of a larger one, and a group that could have been shown would have
    been.

    Examples
    --------
    >>> possible_counts(15, {}, people=15)
    [1, 2, 3, 4, 11, 12, 13, 14]
    >>> possible_counts(16, {15: Cells(15, 0)}, people=16)
    [15, 16]
    """
    return [
        refused
        for refused in range(people + 1)
        if _may_be(Cells(refused, people - refused), k, shown)
    ]


def _may_be(tried: Cells, k: int, shown: Mapping[int, Cells]) -> bool:
    allowed = tried.is_safe() and all(tried.is_safe_beside(each) for each in shown.values())
    return _is_nested(tried, k, shown) and not allowed


def _is_nested(tried: Cells, k: int, shown: Mapping[int, Cells]) -> bool:
    return all(tried.holds(each) if size < k else each.holds(tried) for size, each in shown.items())


def possible_by_group(
    run: Run, cells: Mapping[str, Mapping[int, list[Cells]]], shown: Mapping[str, frozenset[int]]
) -> dict[Key, set[int]]:
    """Give, for each group, the numbers of refusals that a reader cannot rule out.

    Parameters
    ----------
    run
        The audit and the complainant.
    cells
        By what was searched and k: the groups as they are.
    shown
        By what was searched: the sizes whose numbers are shown.
    """
    possible: dict[Key, set[int]] = {}
    for what, groups in cells.items():
        known = {k: groups[k][0] for k in shown[what]}
        for k, (first, *_) in groups.items():
            if k in known:
                possible[what, k] = {first.refused}
                continue
            partners = [other for other in cells if "control" in (what, other) and other != what]
            for_itself = all(k in shown[partner] for partner in partners)
            possible[what, k] = {
                refused
                for refused in range(first.people + 1)
                if _is_nested(Cells(refused, first.people - refused), k, known)
            }
            if for_itself:
                possible[what, k] &= set(possible_counts(k, known, people=first.people))
    verdicts = _Verdicts(run, cells)
    before = None
    while before != possible:
        before = {key: set(counts) for key, counts in possible.items()}
        for key in run.findings:
            verdicts.narrow(key, possible)
    return possible


class _Verdicts:
    """The verdicts of one complainant, as a reader can use them."""

    def __init__(self, run: Run, cells: Mapping[str, Mapping[int, list[Cells]]]) -> None:
        self._run, self._cells = run, cells
        first = next(iter(run.findings.values()))
        self._place = int(np.flatnonzero(first.ids == run.case.id)[0])

    def narrow(self, key: Key, possible: dict[Key, set[int]]) -> None:
        """Rule out numbers with which the verdict of a method at one k would be another."""
        method, k = key
        found = self._run.findings[key]
        verdict = found.verdicts()[self._place]
        if not METHODS[method].count_neighbours or verdict == Verdict.INSUFFICIENT:
            return
        keys = [(searched_for(method, role), k) for role in ("control", "test")]
        # shared places leave so much open that nothing follows
        if any(self._cells[what][k][0].is_shared for what, _ in keys):
            return
        if len(possible[keys[0]]) * len(possible[keys[1]]) > _PAIRS:
            return
        pairs = np.array(list(product(*(sorted(possible[each]) for each in keys))), dtype=np.int64)
        if not len(pairs):
            return
        kept = pairs[self._classes(found, pairs) == _class_of(verdict)]
        possible[keys[0]] &= set(kept[:, 0].tolist())
        possible[keys[1]] &= set(kept[:, 1].tolist())

    def _classes(self, found: Findings, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Judge pairs of numbers: 0 for no evidence, 1 for evidence, 2 if the test rejects."""
        plan, settings = self._run.result.plan, self._run.result.plan.settings
        negative = plan.outcome.negative
        case, centered = self._run.case, METHODS[found.method].count_centers
        own = (case.outcome == negative, case.outcome_cf == negative)
        control, test = (
            Share(
                negatives=pairs[:, side] + int(centered and own[side]),
                size=np.full(len(pairs), int(group.share.size[self._place])),
                split=np.ones(len(pairs), dtype=np.int64),
            )
            for side, group in enumerate((found.control, found.test))
        )
        if settings.direction == "positive":
            control, test = test, control
        compared = plan.semantics.compare(
            control,
            test,
            tau=settings.tau,
            alpha=settings.alpha,
            interval=plan.semantics.interval(settings.interval, "significance"),
        )
        evidence, rejects = compared.evidence, compared.significant
        return np.asarray(evidence.astype(np.int64) * (1 + rejects), dtype=np.int64)


def _class_of(verdict: str) -> int:
    """Leave out what depends on all other complainants, whom the reader does not know."""
    return {Verdict.NO_EVIDENCE: 0, Verdict.EVIDENCE: 1}.get(Verdict(verdict), 2)
