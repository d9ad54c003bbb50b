"""Which groups of a redacted case file may be counted: no cell of fewer than five people.

See `redact` for the rules. A cell is the number of people with, or without, the unfavourable
outcome; it is small if it has one to four people in it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mutandis.report.case_changes import verdicts_of
from mutandis.results.share import Share
from mutandis.results.verdict import Verdict
from mutandis.situation.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mutandis.auditing import AuditResult
    from mutandis.results.case import Case, Members

__all__ = [
    "LEAST",
    "Cells",
    "Published",
    "choose_sizes",
    "is_small",
    "possible_counts",
    "published_groups",
]

LEAST = 5
"""Cells with fewer people are withheld."""

Role = Literal["control", "test"]


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
        if self.refused_sharing + self.granted_sharing:
            cells += [self.refused - self.refused_sharing, self.granted - self.granted_sharing]
        return not any(is_small(cell) for cell in cells)

    @property
    def people(self) -> int:
        """All of them."""
        return self.refused + self.granted

    def holds(self, smaller: Cells) -> bool:
        """Tell whether a smaller group can be a part of this one."""
        return self.refused >= smaller.refused and self.granted >= smaller.granted

    def is_safe_beside(self, larger: Cells) -> bool:
        """Tell whether the people between this group and a larger one make no small cell."""
        return not is_small(abs(larger.refused - self.refused)) and not is_small(
            abs(larger.granted - self.granted)
        )


def choose_sizes(cells: Mapping[int, Iterable[Cells]], *, first: int) -> frozenset[int]:
    """Choose the group sizes that may be shown together.

    Parameters
    ----------
    cells
        By group size: the cells of that group (several where methods draw it differently).
    first
        The size that matters most, considered before the others.

    Examples
    --------
    The groups of 20 and of 30 are safe by themselves, but between them stand 2 people who were
    refused:

    >>> groups = {10: [Cells(3, 7)], 20: [Cells(10, 10)], 30: [Cells(12, 18)]}
    >>> sorted(choose_sizes(groups, first=30))
    [30]
    """
    listed = {k: list(each) for k, each in cells.items()}
    order = sorted(listed, key=lambda k: (k != first, k))
    chosen: list[int] = []
    for k in order:
        safe = all(each.is_safe() for each in listed[k])
        beside = all(
            each.is_safe_beside(other)
            for size in chosen
            for each in listed[k]
            for other in listed[size]
        )
        if safe and beside:
            chosen.append(k)
    return frozenset(chosen)


@dataclass(frozen=True, slots=True)
class Published:
    """Which groups of one complainant may be counted.

    Parameters
    ----------
    sizes
        By what was searched ("control", or the kind of center of the test group): the sizes that
        may be shown.
    """

    sizes: Mapping[str, frozenset[int]]

    def shows(self, method: str, k: int, role: Role) -> bool:
        """Tell whether a group's counts and share may be shown."""
        return k in self.sizes.get(_searched(method, role), frozenset())


def _searched(method: str, role: Role) -> str:
    return "control" if role == "control" else METHODS[method].center.value


def published_groups(result: AuditResult, id: Any) -> Published:  # noqa: A002
    """Decide for one complainant which groups may be counted."""
    methods = [method for method in result.plan.methods if method.count_neighbours]
    sizes = result.plan.settings.ks
    found = {(method.name, k): result.findings(method, k) for method in methods for k in sizes}
    if not found:
        return Published({})
    case = result.case(id, found)
    cells: dict[str, dict[int, list[Cells]]] = defaultdict(lambda: defaultdict(list))
    for method, k in found:
        groups = case.groups(method, k=k)
        cells["control"][k].append(Cells.of(groups.control))
        cells[_searched(method, "test")][k].append(Cells.of(groups.test))
    first = result.plan.settings.primary[1]
    chosen = {what: choose_sizes(each, first=first) for what, each in cells.items()}
    return Published(_without_pinned(result, case, cells, chosen))


def _without_pinned(
    result: AuditResult,
    case: Case,
    cells: Mapping[str, Mapping[int, list[Cells]]],
    chosen: Mapping[str, frozenset[int]],
) -> dict[str, frozenset[int]]:
    """Withhold a group's numbers too where they and the verdict would tell the other group's."""
    kept = dict(chosen)
    for method, k in case.results:
        test = _searched(method, "test")
        if (k in kept["control"]) == (k in kept[test]):
            continue
        hidden: Role = "test" if k in kept["control"] else "control"
        what = test if hidden == "test" else "control"
        shown = {size: cells[what][size][0] for size in kept[what]}
        counts = possible_counts(k, shown, people=cells[what][k][0].people)
        if len(_agreeing(result, case, (method, k), hidden, counts)) == 1:
            kept["control"], kept[test] = kept["control"] - {k}, kept[test] - {k}
    return kept


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
    nested = all(
        tried.holds(each) if size < k else each.holds(tried) for size, each in shown.items()
    )
    allowed = tried.is_safe() and all(tried.is_safe_beside(each) for each in shown.values())
    return nested and not allowed


def _agreeing(
    result: AuditResult, case: Case, asked: tuple[str, int], hidden: Role, counts: Sequence[int]
) -> list[int]:
    """Keep the numbers of refusals in the hidden group under which the verdict is what it is."""
    method, k = asked
    found = result.findings(METHODS[method], k)
    place = int(np.flatnonzero(found.ids == case.id)[0])
    verdict = found.verdicts()[place]
    group, other = (found.test, found.control) if hidden == "test" else (found.control, found.test)
    if verdict == Verdict.INSUFFICIENT or not counts:
        return list(counts)
    size = int(group.share.size[place])
    negatives = np.array(counts, dtype=np.int64)
    if METHODS[method].count_centers:
        centre = case.outcome_cf if hidden == "test" else case.outcome
        negatives += centre == result.plan.outcome.negative
    tried = Share(
        negatives=np.minimum(negatives, size),
        size=np.full_like(negatives, size),
        split=np.ones_like(negatives),
    )
    known = other.share.take(np.full(len(counts), place, dtype=np.intp))
    control, test = (known, tried) if hidden == "test" else (tried, known)
    verdicts = verdicts_of(result, found, place, control, test)
    return [count for count, each in zip(counts, verdicts, strict=True) if each == verdict]
