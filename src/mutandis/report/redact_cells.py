"""Which groups of a redacted case file may be counted: no cell of fewer than five people.

See `redact` for the rules. A cell is the number of people with, or without, the unfavourable
outcome; it is small if it has one to four people in it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mutandis.evidence.methods import METHODS
from mutandis.report.redact_inference import Cells, possible_by_group, searched_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mutandis.report.redact_inference import Run

__all__ = ["Published", "choose_sizes", "published_groups"]

Role = Literal["control", "test"]


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
    told
        Whether the verdicts, which stay, tell a number although everything else is withheld: with
        groups of one or two people they may.
    """

    sizes: Mapping[str, frozenset[int]]
    told: bool = False

    def shows(self, method: str, k: int, role: Role) -> bool:
        """Tell whether a group's counts and share may be shown."""
        return k in self.sizes.get(searched_for(method, role), frozenset())


def published_groups(run: Run) -> Published:
    """Decide for one complainant which groups may be counted."""
    cells: dict[str, dict[int, list[Cells]]] = defaultdict(lambda: defaultdict(list))
    for method, k in run.findings:
        if METHODS[method].count_neighbours:
            groups = run.case.groups(method, k=k)
            cells["control"][k].append(Cells.of(groups.control))
            cells[searched_for(method, "test")][k].append(Cells.of(groups.test))
    first = run.result.plan.settings.primary[1]
    kept = {what: choose_sizes(each, first=first) for what, each in cells.items()}
    while pinned := _pinned(run, cells, kept):
        fewer = _withhold(pinned, kept)
        if fewer == kept:
            return Published(kept, told=True)
        kept = fewer
    return Published(kept)


def _pinned(
    run: Run, cells: Mapping[str, Mapping[int, list[Cells]]], kept: Mapping[str, frozenset[int]]
) -> list[tuple[str, int]]:
    """List the withheld groups whose one possible number would tell a small cell."""
    possible = possible_by_group(run, cells, kept)
    return [
        (what, k)
        for (what, k), counts in possible.items()
        if k not in kept[what] and len(counts) == 1 and _tells(k, cells[what], kept[what])
    ]


def _tells(k: int, cells: Mapping[int, list[Cells]], shown: frozenset[int]) -> bool:
    """Tell whether a group's number of refusals would tell a small cell, alone or beside others."""
    own = cells[k][0].unshared()
    return not (own.is_safe() and all(own.is_safe_beside(cells[size][0]) for size in shown))


def _withhold(
    pinned: Iterable[tuple[str, int]], kept: Mapping[str, frozenset[int]]
) -> dict[str, frozenset[int]]:
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
