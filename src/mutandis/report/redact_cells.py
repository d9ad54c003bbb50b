"""Which groups of a redacted case file may be counted, and what its reader could work out.

See `redact` for the rules. A cell is the number of people with, or without, the unfavourable
outcome; it is small if it has one to four people in it.

Kerckhoffs's rule: the reader has this program, and knows everything but the numbers that are
withheld. Groups around the same center are nested; a verdict says on which side of a line two
numbers lie; and a number is withheld for a reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

from mutandis.evidence.findings import Verdict
from mutandis.evidence.methods import METHODS
from mutandis.search.share import Share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from mutandis.auditing.case import Case
    from mutandis.evidence.groups import Members
    from mutandis.report.case_model import Role

__all__ = [
    "LEAST",
    "Cells",
    "Published",
    "choose_sizes",
    "is_small",
    "possible_counts",
    "published_groups",
]

Key = tuple[str, int]
# more pairs of numbers than these are not gone through: so large groups leave much open
_PAIRS = 1_000_000

LEAST: Final = 5
"""Cells with fewer people are withheld."""


def is_small(people: int) -> bool:
    """Tell whether a cell is too small to be shown; an empty one has nothing to hide."""
    return 0 < people < LEAST


@dataclass(frozen=True, slots=True)
class Cells:
    """The people of one group by outcome, and those of them who share the last places.

    The share of the group tells people who share a place from the others.
    """

    refused: int
    granted: int
    refused_sharing: int = 0
    granted_sharing: int = 0

    @classmethod
    def of(cls, members: Members) -> Cells:
        """Count a group without its search centers."""
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
        return self.refused + self.granted

    @property
    def is_shared(self) -> bool:
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


# by what was searched ("control", or the kind of center of the test group): the cells by size, and
# the sizes that are shown
_GroupCells = Mapping[str, Mapping[int, list[Cells]]]
_Sizes = Mapping[str, frozenset[int]]


def searched_for(method: str, role: Role) -> str:
    """Name what was searched for a group: methods share their control groups."""
    return "control" if role == "control" else METHODS[method].center.value


def choose_sizes(cells: Mapping[int, Iterable[Cells]], *, first: int) -> frozenset[int]:
    """Choose the group sizes that may be shown together, beginning with `first`.

    `cells` has the cells of each group by its size: several where methods draw it differently.

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

    `sizes` are those that may be shown, by what was searched ("control", or the kind of center of
    the test group). `told`: the verdicts, which stay, tell a number although everything else is
    withheld; with groups of one or two people they may.
    """

    sizes: _Sizes
    told: bool = False

    def shows(self, method: str, k: int, role: Role) -> bool:
        """Tell whether a group's counts and share may be shown."""
        return k in self.sizes.get(searched_for(method, role), frozenset())


def published_groups(case: Case) -> Published:
    """Decide for one complainant which groups may be counted."""
    cells: dict[str, dict[int, list[Cells]]] = defaultdict(lambda: defaultdict(list))
    for method, k in case.results:
        if METHODS[method].count_neighbours:
            groups = case.groups(method, k=k)
            cells["control"][k].append(Cells.of(groups.control))
            cells[searched_for(method, "test")][k].append(Cells.of(groups.test))
    first = case.audit.plan.settings.primary[1]
    kept = {what: choose_sizes(each, first=first) for what, each in cells.items()}
    while pinned := _pinned(case, cells, kept):
        fewer = _withhold(pinned, kept)
        if fewer == kept:
            return Published(kept, told=True)
        kept = fewer
    return Published(kept)


def _pinned(
    case: Case,
    cells: _GroupCells,
    kept: _Sizes,
) -> list[tuple[str, int]]:
    """List the withheld groups whose one possible number would tell a small cell."""
    possible = possible_by_group(case, cells, kept)
    return [
        (what, k)
        for (what, k), counts in possible.items()
        if k not in kept[what] and len(counts) == 1 and _tells(k, cells[what], kept[what])
    ]


def _tells(k: int, cells: Mapping[int, list[Cells]], shown: frozenset[int]) -> bool:
    """Tell whether a group's number of refusals would tell a small cell, alone or beside others."""
    own = cells[k][0].unshared()
    return not (own.is_safe() and all(own.is_safe_beside(cells[size][0]) for size in shown))


def _withhold(pinned: Iterable[tuple[str, int]], kept: _Sizes) -> dict[str, frozenset[int]]:
    """Withhold more: first what stands beside the pinned groups, at last everything."""
    named = list(pinned)
    ks = frozenset(k for _, k in named)
    chains = {what for what, _ in named}
    none: frozenset[int] = frozenset()
    steps = (
        {what: sizes - ks for what, sizes in kept.items()},
        {what: none if what in chains else sizes for what, sizes in kept.items()},
        dict.fromkeys(kept, none),
    )
    return next((step for step in steps if step != kept), steps[-1])


def possible_counts(k: int, shown: Mapping[int, Cells], *, people: int) -> list[int]:
    """Give the numbers of refusals that a withheld group may have, by what else is shown.

    A smaller group is a part of a larger one, and a group that could have been shown would have
    been.
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
    case: Case,
    cells: _GroupCells,
    shown: _Sizes,
) -> dict[Key, set[int]]:
    """Give, for each group, the numbers of refusals that a reader cannot rule out."""
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
    verdicts = _Verdicts(case, cells)
    before = None
    while before != possible:
        before = {key: set(counts) for key, counts in possible.items()}
        for key in case.results:
            verdicts.narrow(key, possible)
    return possible


class _Verdicts:
    """The verdicts of one complainant, as a reader can use them."""

    def __init__(self, case: Case, cells: _GroupCells) -> None:
        self._case, self._cells = case, cells

    def narrow(self, key: Key, possible: dict[Key, set[int]]) -> None:
        """Rule out numbers with which the verdict of a method at one k would be another."""
        method, k = key
        verdict = self._case.result(method, k=k)["verdict"]
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
        kept = pairs[self._classes(key, pairs) == _class_of(verdict)]
        possible[keys[0]] &= set(kept[:, 0].tolist())
        possible[keys[1]] &= set(kept[:, 1].tolist())

    def _classes(self, key: Key, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Judge pairs of numbers: 0 for no evidence, 1 for evidence, 2 if the test rejects."""
        case, plan, settings = self._case, self._case.audit.plan, self._case.audit.plan.settings
        found = case.audit.evaluate(*key)
        negative, centered = plan.outcome.negative, METHODS[found.method].count_centers
        own = (case.outcome == negative, case.outcome_cf == negative)
        control, test = (
            Share(
                negatives=pairs[:, side] + int(centered and own[side]),
                size=np.full(len(pairs), int(group.share.size[case.place])),
                split=np.ones(len(pairs), dtype=np.int64),
            )
            for side, group in enumerate((found.control, found.test))
        )
        if settings.evidence.direction == "positive":
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
