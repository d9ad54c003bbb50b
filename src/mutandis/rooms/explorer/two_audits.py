"""Two audits side by side: whose verdict differs, and what differs between the audits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import Categories, Numbers, plain_value
from mutandis.errors import PlanError
from mutandis.report.formatting import count
from mutandis.rooms.explorer.people import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.audit import Audit
    from mutandis.data.columns import Column
    from mutandis.data.population import Population
    from mutandis.outcomes.words import Words
    from mutandis.rooms.explorer.view import Lens, View
    from mutandis.verdicts.findings import Findings

__all__ = ["CHANGES", "ChangedPerson", "Reason", "TwoAudits"]

CHANGES = {
    "changed": "another verdict",
    "gained": "a pattern in the second only",
    "lost": "a pattern in the first only",
}
"""Whom to list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One thing that differs between the audits: its kind, its name, and both values."""

    kind: str  # "data", "b()", "worldview" or "settings"
    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPerson:
    """Someone whose verdict differs, by her place in each audit."""

    id: Any
    first: int
    second: int
    verdicts: tuple[str, str]
    delta_p: tuple[float, float]
    because: tuple[str, ...]


class TwoAudits:
    """The people whom two audits have in common, under one method and k."""

    def __init__(self, first: Lens, second: Lens, view: View) -> None:
        self._audits = (first.audit, second.audit)
        self._levels = (view, second.base)
        other = second.base
        if view.method not in second.audit.methods or view.k not in second.audit.ks:
            raise PlanError(
                f"The second audit did not run {view.method} at k = {view.k}. It ran "
                f"{', '.join(second.audit.methods)} at k = {', '.join(map(str, second.audit.ks))}."
            )
        # each with its own levels
        theirs = type(view)(method=view.method, k=view.k, alpha=other.alpha, tau=other.tau)
        self._found: tuple[Findings, Findings] = (first.findings(view), second.findings(theirs))
        one, two = (found.ids.astype(np.str_) for found in self._found)
        _, here, there = np.intersect1d(one, two, assume_unique=True, return_indices=True)
        order = np.argsort(here)
        self._places = (here[order], there[order])

    @property
    def common(self) -> int:
        """How many complainants both audits have."""
        return len(self._places[0])

    @property
    def alone(self) -> tuple[int, int]:
        """How many complainants the one audit has and the other has not."""
        first, second = (len(found) - self.common for found in self._found)
        return first, second

    @cached_property
    def _verdicts(self) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
        first, second = (
            found.verdicts()[places]
            for found, places in zip(self._found, self._places, strict=True)
        )
        return first, second

    @cached_property
    def masks(self) -> dict[str, NDArray[np.bool_]]:
        """Mark the changes among the common people."""
        before, after = (
            found.has_pattern[places].astype(np.bool_)
            for found, places in zip(self._found, self._places, strict=True)
        )
        first, second = self._verdicts
        return {"changed": first != second, "gained": after & ~before, "lost": before & ~after}

    @property
    def words(self) -> Words:
        """How differences are written."""
        return self._audits[0].plan.words

    def matrix(self) -> list[tuple[str, list[int]]]:
        """Count people by both verdicts: a row per verdict of the first."""
        first, second = self._verdicts
        return [
            (one, [int(((first == one) & (second == two)).sum()) for two in VERDICTS])
            for one in VERDICTS
        ]

    def people(self, change: str, start: int, number: int) -> list[ChangedPerson]:
        """List some of the people with a change, those with the largest change of Δp first."""
        chosen = np.flatnonzero(self.masks[change])
        one, two = (
            found.compared[places[chosen]]
            for found, places in zip(self._found, self._places, strict=True)
        )
        apart = np.nan_to_num(np.abs(two - one), nan=2.0)
        chosen = chosen[np.argsort(-apart, kind="stable")][start : start + number]
        reasons = self._reasons(chosen)
        first, second = self._places
        return [
            ChangedPerson(
                id=plain_value(self._found[0].ids[first[each]]),
                first=int(first[each]),
                second=int(second[each]),
                verdicts=(self._verdicts[0][each], self._verdicts[1][each]),
                delta_p=(
                    float(self._found[0].comparison.delta_p[first[each]]),
                    float(self._found[1].comparison.delta_p[second[each]]),
                ),
                because=tuple(name for name, mask in reasons.items() if mask[at]) or ("levels",),
            )
            for at, each in enumerate(chosen.tolist())
        ]

    def _reasons(self, chosen: NDArray[np.intp]) -> Mapping[str, NDArray[np.bool_]]:
        """Tell what differs about each of some people."""
        first, second = (places[chosen] for places in self._places)
        one, two = self._found
        return {
            "her record": self._differ(
                [audit.plan.population for audit in self._audits], first, second
            )
            | (one.is_negative[first] != two.is_negative[second]),
            "her counterfactual": self._differ(
                [audit.world.point for audit in self._audits], first, second
            ),
            "people like her": one.control.share.mean()[first] != two.control.share.mean()[second],
            "people she is compared with": one.test.share.mean()[first]
            != two.test.share.mean()[second],
        }

    def _differ(
        self,
        worlds: Sequence[Population | None],
        first: NDArray[np.intp],
        second: NDArray[np.intp],
    ) -> NDArray[np.bool_]:
        differs, (one, two) = np.zeros(len(first), dtype=np.bool_), worlds
        if one is None or two is None:
            return differs
        rows = [
            audit.study.people[places]
            for audit, places in zip(self._audits, (first, second), strict=True)
        ]
        names = [{each.name for each in audit.plan.attributes} for audit in self._audits]
        for name in sorted(names[0] & names[1]):
            differs |= _unequal(one.part(name, rows[0]), two.part(name, rows[1]))
        return differs

    def reasons(self) -> list[Reason]:
        """List what differs between the audits: data, b(), worldview, settings."""
        # each with the levels at which it is looked at
        settings = [
            {**audit.provenance.settings, "alpha": view.alpha, "tau": view.tau}
            for audit, view in zip(self._audits, self._levels, strict=True)
        ]
        return [*_of_data(*self._audits), *_of_settings(*settings)]


def _unequal(one: Column, two: Column) -> NDArray[np.bool_]:
    if isinstance(one, Numbers) and isinstance(two, Numbers):
        return np.asarray(one.values != two.values)
    return np.asarray(_texts(one) != _texts(two))


def _texts(column: Column) -> NDArray[np.str_]:
    if isinstance(column, Categories):
        return np.array([*map(str, column.levels), ""])[column.codes]
    return column.values.astype(np.str_)


def _of_data(first: Audit, second: Audit) -> Iterator[Reason]:
    one, two = (audit.provenance.data for audit in (first, second))
    if one["sha256"] != two["sha256"]:
        rows = [
            f"{count(data['rows'])} rows, SHA-256 {data['sha256'][:12]}…" for data in (one, two)
        ]
        yield Reason(kind="data", name="the columns that were used", first=rows[0], second=rows[1])
    if one["sha256_counterfactuals"] != two["sha256_counterfactuals"]:
        yield Reason(
            kind="worldview",
            name="the counterfactuals supplied",
            first=str(one["sha256_counterfactuals"])[:12],
            second=str(two["sha256_counterfactuals"])[:12],
        )


def _of_settings(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[Reason]:
    one, two = dict(_flat(first)), dict(_flat(second))
    for name in dict.fromkeys([*one, *two]):
        if one.get(name) != two.get(name):
            kind = {"worldview": "worldview", "decision": "b()"}.get(name.partition(".")[0])
            yield Reason(
                kind=kind or "settings",
                name=name,
                first=str(one.get(name, "–")),
                second=str(two.get(name, "–")),
            )


def _flat(settings: Mapping[str, Any], start: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{start}{name}.")
        else:
            yield f"{start}{name}", value
