"""The control and the test group of one complainant, person by person."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mutandis.data.columns import Numbers
from mutandis.evidence.methods import METHODS, Center
from mutandis.report.case_model import GroupList, Member, SupportCheck
from mutandis.report.case_movement import value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from mutandis.auditing.run import AuditResult
    from mutandis.evidence.case import Case
    from mutandis.evidence.groups import Members, Pair
    from mutandis.evidence.support import Support
    from mutandis.search.embedding import Axis

__all__ = ["group_lists", "rows_of", "support_checks"]

Role = Literal["control", "test"]


def group_lists(
    result: AuditResult, case: Case, place: int, *, method: str, k: int
) -> tuple[GroupList, GroupList] | None:
    """List both groups; None for a method that compares no people.

    Parameters
    ----------
    result, case
        The audit and the complainant.
    place
        Her place among the complainants.
    method, k
        Which groups.
    """
    if not METHODS[method].count_neighbours:
        return None
    groups = case.groups(method, k=k)
    row = case.result(method, k=k)
    lister = _Lister(result, groups, place, method)
    return lister.listed("control", row), lister.listed("test", row)


def rows_of(result: AuditResult, members: Members) -> NDArray[np.intp]:
    """Find the rows of a group's people in D."""
    ids = result.plan.population.ids
    rows = np.flatnonzero(np.isin(ids, members.ids))
    found = dict(zip(ids[rows].tolist(), rows.tolist(), strict=True))
    return np.array([found[each] for each in members.ids.tolist()], dtype=np.intp)


class _Lister:
    """One complainant's groups under one method: holds what both lists share."""

    def __init__(self, result: AuditResult, groups: Pair[Members], place: int, method: str) -> None:
        self._result, self._groups, self._place = result, groups, place
        self._method = METHODS[method]
        self._own = int(result.situation.complainants[place])

    def listed(self, role: Role, row: Mapping[str, Any]) -> GroupList:
        """List one group."""
        members: Members = getattr(self._groups, role)
        people = ~members.is_center
        # the share of a place; who holds a whole one shares with nobody
        sharing = people & (members.place < 1)
        return GroupList(
            role=role,
            around="the complainant's counterfactual"
            if role == "test" and self._method.center is Center.COUNTERFACTUAL
            else "the complainant",
            places=row[f"n_{role}"],
            people=int(people.sum()),
            shared=int(sharing.sum()),
            refused=int((members.is_negative & people).sum()),
            granted=int((~members.is_negative & people).sum()),
            share=_known(row[f"p_{role}"]),
            radius=_known(row[f"radius_{role}"]),
            members=self._members(role, members),
        )

    def _members(self, role: Role, members: Members) -> tuple[Member, ...]:
        result = self._result
        rows = rows_of(result, members)
        outcomes = result.plan.outcome.labels(members.is_negative).tolist()
        parts = self._parts(role, rows)
        listed = []
        for index, row in enumerate(rows.tolist()):
            centre = bool(members.is_center[index])
            counterfactual = centre and role == "test"
            world = result.situation.counterfactual if counterfactual else None
            share = Fraction(float(members.place[index])).limit_denominator(10**7)
            listed.append(
                Member(
                    person=_plain(members.ids[index]),
                    role=_role(centre=centre, counterfactual=counterfactual),
                    distance=float(members.distance[index]),
                    parts=None
                    if parts is None or centre
                    else {name: float(values[index]) for name, values in parts.items()},
                    values={
                        attribute.name: value_at(
                            world or result.plan.population, attribute.name, row
                        )
                        for attribute in result.plan.attributes
                    },
                    place=float(members.place[index]),
                    place_text=str(share),
                    outcome=_plain(outcomes[index]),
                )
            )
        return tuple(listed)

    def _parts(self, role: Role, rows: NDArray[np.intp]) -> dict[str, NDArray[np.float64]] | None:
        """Split each distance by attribute, in the exact units it was measured in."""
        embedding = self._result.grouping.embedding
        if embedding is None:
            return None
        nearest = self._result.grouping.nearest[
            "control" if role == "control" else self._method.center.value
        ]
        here, there = nearest.origins.take(np.array([self._place])), nearest.points.take(rows)
        unit = nearest.metric.unit
        parts = {}
        for index, axis in enumerate(embedding.axes):
            apart = np.abs(there.coordinates[:, index] - here.coordinates[0, index])
            parts[axis.name] = apart / unit + self._beyond(role, axis) / unit
        for index, name in enumerate(embedding.nominal):
            differs = there.codes[:, index] != here.codes[0, index]
            parts[name] = differs * (nearest.metric.mismatch[index] / unit)
        return {**parts, **{name: np.zeros(len(rows)) for name in embedding.constant}}

    def _beyond(self, role: Role, axis: Axis) -> float:
        """Give how much farther a center lies on one axis than the metric reaches: mostly 0."""
        counterfactual = role == "test" and self._method.center is Center.COUNTERFACTUAL
        world = self._result.situation.counterfactual if counterfactual else None
        column = (world or self._result.plan.population).columns[axis.name]
        values = column.values if isinstance(column, Numbers) else column.codes
        _, beyond = axis.place(np.asarray(values[[self._own]], dtype=np.float64))
        return float(beyond[0]) * axis.length


def _role(*, centre: bool, counterfactual: bool) -> Any:
    if not centre:
        return "person"
    return "counterfactual" if counterfactual else "complainant"


def support_checks(
    result: AuditResult, case: Case, place: int, *, method: str, k: int
) -> tuple[SupportCheck, ...]:
    """Tell how well her groups support the comparison; empty where that is not measured."""
    if not METHODS[method].count_neighbours or result.grouping.embedding is None:
        return ()
    measured = result.support(METHODS[method], k)
    balance = case.balance(method, k)
    return tuple(_support(measured, place, role, getattr(balance, role)) for role in _ROLES)


_ROLES: tuple[Role, Role] = ("control", "test")


def _support(
    measured: Support, place: int, role: Role, balance: Mapping[str, float]
) -> SupportCheck:
    reach = getattr(measured, role)
    outside = [name for name, marked in measured.outside.items() if marked[place]]
    return SupportCheck(
        role=role,
        radius=_known(float(reach.radius[place])),
        typical=_known(float(reach.typical[place])),
        limit=_known(float(reach.limit[place])),
        off_support=bool(reach.off_support[place]),
        # the range is that of the test space: the control group stands around her as she is
        outside=tuple(outside) if role == "test" else (),
        balance={name: _known(value) for name, value in balance.items()},
    )


def _known(value: float | None) -> Any:
    """Give a number, or None where it is missing."""
    return None if value is None or np.isnan(value) else _plain(value)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
