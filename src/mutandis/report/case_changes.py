"""What would change the verdict: computed with the rules that gave it, never guessed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import isnan, lcm
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mutandis.evidence.comparison import compare
from mutandis.evidence.findings import Verdict
from mutandis.evidence.intervals import INTERVALS
from mutandis.evidence.methods import METHODS
from mutandis.evidence.multiplicity import adjust
from mutandis.report.case_model import Change, Changes, Step
from mutandis.search.share import Share
from mutandis.search.ties import select, share_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.run import AuditResult
    from mutandis.evidence.case import Case
    from mutandis.evidence.comparison import Comparison
    from mutandis.evidence.findings import Findings
    from mutandis.evidence.groups import Members

__all__ = ["changes_of", "ranges"]

Role = Literal["control", "test"]
_LARGEST = 10**7  # no group of people is larger, and places are fractions of its size


def changes_of(result: AuditResult, case: Case, found: Findings, place: int) -> Changes:
    """Compute what would change one complainant's verdict.

    Parameters
    ----------
    result, case
        The audit and the complainant.
    found
        The findings at the method and k in question.
    place
        Her place among the complainants.
    """
    method, k = found.method, found.k
    row = case.result(method, k=k)
    settings = result.plan.settings
    shared: dict[str, Any] = {
        "by_k": {size: case.result(method, k=size)["verdict"] for size in settings.ks},
        "draws": settings.draws,
        "draw_share": _number(row.get("draw_share")),
        "herself_counted": METHODS[method].count_centers,
    }
    if not METHODS[method].count_neighbours:
        return Changes(**shared)
    if row["verdict"] == Verdict.INSUFFICIENT:
        return Changes(sufficient_distance=_sufficient(result, method, place), **shared)
    asked = _Asked(result=result, found=found, place=place)
    groups = case.groups(method, k=k)
    control, test = _Weights.of(groups.control), _Weights.of(groups.test)
    evidence_ks, significant_ks = _over_ks(result, found, place)
    return Changes(
        outcomes=tuple(asked.flips(control, test)),
        **asked.thresholds(row),
        evidence_ks=evidence_ks,
        significant_ks=significant_ks,
        searched_ks=None if evidence_ks is None else max(settings.ks),
        herself=_herself(result, case, asked, control, test),
        **shared,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weights:
    """One group as it stands: the exact part of all places that each member holds."""

    place: tuple[Fraction, ...]
    is_negative: NDArray[np.bool_]
    is_center: NDArray[np.bool_]

    @classmethod
    def of(cls, members: Members) -> _Weights:
        places = [Fraction(float(each)).limit_denominator(_LARGEST) for each in members.place]
        return cls(
            place=tuple(places), is_negative=members.is_negative, is_center=members.is_center
        )

    def flipped(self, *, to_negative: bool) -> list[Fraction]:
        """Give the group's negatives (in places) after 0, 1, 2, … other outcomes.

        People with the largest part of a place go first: fewer cannot do it. Search centers are
        not asked to change.
        """
        total = sum((p for p, bad in zip(self.place, self.is_negative, strict=True) if bad), _ZERO)
        movable = (self.is_negative != to_negative) & ~self.is_center
        steps = sorted((self.place[i] for i in np.flatnonzero(movable)), reverse=True)
        sign = 1 if to_negative else -1
        found = [total]
        for step in steps:
            found.append(found[-1] + sign * step)
        return found

    def share(self, negatives: Sequence[Fraction], *, size: int) -> Share:
        """Write shares of this group as one integer over another."""
        places = sum(self.place, _ZERO)
        unit = lcm(*(n.denominator for n in negatives), places.denominator)
        whole = int(places * unit)
        return Share(
            negatives=_whole([int(n * unit) * size for n in negatives]),
            size=_whole([size] * len(negatives)),
            split=_whole([whole] * len(negatives)),
        )


_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One complainant's comparison, to be made again under other circumstances."""

    result: AuditResult
    found: Findings
    place: int

    def verdicts(self, control: Share, test: Share) -> list[str]:
        """Compare again, everybody else's p-values as they are."""
        compared = self.compare(control, test)
        return [
            self._verdict(bool(e), bool(s), float(p))
            for e, s, p in zip(
                compared.evidence,
                compared.significant,
                compared.interval.p_value,
                strict=True,
            )
        ]

    def compare(self, control: Share, test: Share) -> Comparison:
        """Compare by the rules of the audit."""
        plan, settings = self.result.plan, self.result.plan.settings
        rule = partial(
            plan.semantics.compare,
            tau=settings.tau,
            alpha=settings.alpha,
            interval=INTERVALS[settings.interval],
        )
        return compare(control, test, rule, direction=settings.direction)

    def _verdict(self, evidence: bool, significant: bool, p_value: float) -> str:  # noqa: FBT001
        if not evidence:
            return Verdict.NO_EVIDENCE.value
        if not significant:
            return Verdict.EVIDENCE.value
        adjusted = self._q_value(p_value) <= self.found.alpha
        return (Verdict.SIGNIFICANT_ADJUSTED if adjusted else Verdict.SIGNIFICANT).value

    def _q_value(self, p_value: float) -> float:
        method = self.result.plan.settings.adjust
        if method == "none":
            return float("nan")
        p_values = self.found.comparison.interval.p_value.copy()
        p_values[self.place] = p_value
        return float(adjust(p_values, method=method)[self.place])

    def flips(self, control: _Weights, test: _Weights) -> list[Change]:
        """Find, for each group and each outcome, how many people decide the verdict."""
        outcome = self.result.plan.outcome
        sizes: dict[Role, int] = {
            "control": int(self.found.control.share.size[self.place]),
            "test": int(self.found.test.share.size[self.place]),
        }
        groups: dict[Role, _Weights] = {"control": control, "test": test}
        changes = []
        for role, group in groups.items():
            for to_negative in (False, True):
                counts = group.flipped(to_negative=to_negative)
                shares = {
                    name: each.share(
                        counts
                        if name == role
                        else [each.flipped(to_negative=True)[0]] * len(counts),
                        size=sizes[name],
                    )
                    for name, each in groups.items()
                }
                verdicts = self.verdicts(shares["control"], shares["test"])
                changes.append(
                    Change(
                        group=role,
                        outcome=_plain(outcome.negative if to_negative else outcome.positive),
                        of=len(counts) - 1,
                        steps=_steps(verdicts),
                    )
                )
        return changes

    def thresholds(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Give the τ and the α at which the verdict changes.

        Significant ⇔ p ≤ α ⇔ the bound is at least τ: so the bound and the p-value are themselves
        the thresholds. Where the semantics rounds before it compares, neither is exact: None.
        """
        settings = self.result.plan.settings
        if not self.result.plan.semantics.compares_exactly:
            return {}
        mirrored = settings.direction == "positive"
        bound = -row["ci_high"] if mirrored else row["ci_low"]
        return {
            "tau_evidence": _number(0.0 - row["delta_p"] if mirrored else row["delta_p"]),
            "tau_significant": None if settings.interval == "fisher" else _number(bound),
            "alpha_significant": _number(row["p_value"]),
            "alpha_adjusted": _number(row["q_value"]),
        }


def _steps(verdicts: Sequence[str]) -> tuple[Step, ...]:
    """Note where the verdict changes as more and more people change their outcome."""
    return tuple(
        Step(people=people, verdict=verdict)
        for people, (before, verdict) in enumerate(pairwise(verdicts), start=1)
        if verdict != before
    )


def _herself(
    result: AuditResult, case: Case, asked: _Asked, control: _Weights, test: _Weights
) -> str | None:
    """Give the verdict with her own outcome counted in, or left out where it is counted."""
    method, k = asked.found.method, asked.found.k
    other = {"cst_without": "cst_with", "cst_with": "cst_without"}.get(method, "")
    if (other, k) in case.results:
        return str(case.result(other, k=k)["verdict"])
    if METHODS[method].count_centers:
        return None
    is_negative = bool(asked.found.is_negative[asked.place])
    size = {
        "control": int(asked.found.control.share.size[asked.place]),
        "test": int(asked.found.test.share.size[asked.place]),
    }
    shares = {
        name: group.share([group.flipped(to_negative=True)[0]], size=size[name])
        for name, group in (("control", control), ("test", test))
    }
    own = shares["control"].with_center(np.array([is_negative]))
    there = shares["test"]
    decided = result.situation.is_negative_cf
    if method == "cst_without" and decided is not None:
        row = result.situation.complainants[asked.place]
        there = there.with_center(np.array([bool(decided[row])]))
    return asked.verdicts(own, there)[0]


def _sufficient(result: AuditResult, method: str, place: int) -> float | None:
    """Find the distance within which both groups would have as many people as are asked for."""
    settings, nearest = result.plan.settings, result.grouping.nearest
    if settings.max_distance is None:
        return None
    needed = []
    for what in ("control", METHODS[method].center.value):
        searched = nearest[what]
        _, distance = searched.others(place)
        if len(distance) < settings.min_group:
            return None
        last = np.sort(distance)[settings.min_group - 1 : settings.min_group]
        needed.append(float(searched.metric.as_float(last)[0] + searched.overflow_distance[place]))
    return max(needed)


def _over_ks(
    result: AuditResult, found: Findings, place: int
) -> tuple[tuple[tuple[int, int], ...] | None, tuple[tuple[int, int], ...] | None]:
    """Compare at every k up to the largest that was run, from one look at the distances."""
    settings, nearest = result.plan.settings, result.grouping.nearest
    plain = settings.group_size == "k" and settings.max_distance is None
    if not nearest or not plain or settings.min_group > 1:
        return None, None
    method = METHODS[found.method]
    ks = tuple(range(1, max(settings.ks) + 1))
    shares = {}
    for role, what in (("control", "control"), ("test", method.center.value)):
        rows, distance = nearest[what].others(place)
        near = distance <= nearest[what].found.radius[place].max()
        negative = result.situation.is_negative[rows[near]].astype(np.int64)
        counted = select(
            distance[near][None, :], np.ones((1, int(near.sum())), np.int64), negative[None, :], ks
        )
        each = [share_of(counted, index, k=k, ties=settings.ties) for index, k in enumerate(ks)]
        shares[role] = Share(
            negatives=np.concatenate([one.negatives for one in each]),
            size=np.concatenate([one.size for one in each]),
            split=np.concatenate([one.split for one in each]),
        )
    if method.count_centers:
        shares = _with_centers(result, place, shares)
    compared = _Asked(result=result, found=found, place=place).compare(
        shares["control"], shares["test"]
    )
    return ranges(ks, compared.evidence), ranges(ks, compared.significant)


def _with_centers(result: AuditResult, place: int, shares: Mapping[str, Share]) -> dict[str, Share]:
    row, decided = result.situation.complainants[place], result.situation.is_negative_cf
    size = len(shares["control"].size)
    here = np.full(size, bool(result.situation.is_negative[row]))
    there = np.full(size, decided is not None and bool(decided[row]))
    return {
        "control": shares["control"].with_center(here),
        "test": shares["test"].with_center(there),
    }


def ranges(ks: Sequence[int], marked: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """Write the marked numbers as ranges, first and last included.

    Examples
    --------
    >>> ranges((1, 2, 3, 4, 5), np.array([True, False, True, True, False]))
    ((1, 1), (3, 4))
    """
    found: list[tuple[int, int]] = []
    for k, mark in zip(ks, marked.tolist(), strict=True):
        if not mark:
            continue
        if found and found[-1][1] == k - 1:
            found[-1] = (found[-1][0], k)
        else:
            found.append((k, k))
    return tuple(found)


def _whole(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def _number(value: float | None) -> float | None:
    return None if value is None or isnan(value) else float(value)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
