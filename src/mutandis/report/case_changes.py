"""What would change the verdict: computed with the rules that gave it, never guessed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import accumulate, pairwise
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.auditing.doubt import REFITS, doubt_verdict
from mutandis.auditing.group_comparison import compare_shares
from mutandis.auditing.tipping import (
    describe_verdict,
    find_curve,
    name_worlds,
    rules_of,
    tipping_of,
)
from mutandis.data.columns import plain_value
from mutandis.data.ordered import LevelScale
from mutandis.evidence.drawn_groups import mean_share
from mutandis.evidence.findings import FIRM, Verdict, as_shares
from mutandis.evidence.methods import METHODS
from mutandis.evidence.multiplicity import OtherTests
from mutandis.report.case_model import Change, Changes, Step, VerdictRobustness
from mutandis.report.formatting import known
from mutandis.search.share import Share
from mutandis.search.ties import select, share_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.auditing.case import Case
    from mutandis.auditing.tipping import CurvePoint
    from mutandis.evidence.comparison import Comparison
    from mutandis.evidence.groups import Members, NearestGroups
    from mutandis.evidence.measures import Measure
    from mutandis.report.case_model import Part, Role

__all__ = ["changes_of", "ranges", "robustness_of"]

_Mark = Callable[[Any], Any]  # gives what is summed, of outcomes
_ROOM = 2**62  # int64 holds no more
_LARGEST = 10**7  # no group of people is larger, and places are fractions of its size


def changes_of(case: Case) -> Changes:
    """Compute what would change one complainant's verdict at the primary method and k."""
    settings = case.audit.plan.settings
    method, k = settings.primary
    row = as_shares(case.result(method, k=k))
    shared: dict[str, Any] = {
        "by_k": {size: case.result(method, k=size)["verdict"] for size in settings.ks},
        **_doubt(case, row),
        "herself_counted": METHODS[method].count_centers,
    }
    if not METHODS[method].count_neighbours:
        return Changes(**shared)
    if row["verdict"] == Verdict.INSUFFICIENT:
        return Changes(sufficient_distance=_sufficient_distance(case), **shared)
    comparer = _Comparer(case)
    by_k = comparer.compare_every_k()
    ks = range(1, max(settings.ks) + 1)
    return Changes(
        outcomes=tuple(comparer.flips()),
        **comparer.thresholds(row),
        evidence_ks=None if by_k is None else ranges(ks, by_k.evidence),
        significant_ks=None if by_k is None else ranges(ks, by_k.significant),
        searched_ks=None if by_k is None else max(settings.ks),
        herself=comparer.with_herself(),
        curve=_curve(case),
        **shared,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weights:
    """One group as it stands: the exact part of all places that each member holds."""

    place: tuple[Fraction, ...]
    is_negative: NDArray[Any]  # whether they were refused; of other outcomes, their steps
    is_center: NDArray[np.bool_]

    @classmethod
    def of(cls, members: Members) -> _Weights:
        places = [Fraction(float(each)).limit_denominator(_LARGEST) for each in members.place]
        return cls(
            place=tuple(places), is_negative=members.is_negative, is_center=members.is_center
        )

    def sum_marks(self, mark: _Mark) -> Fraction:
        """Add up a mark of all outcomes: the places of those with the unfavourable one."""
        marks = mark(self.is_negative).tolist()
        return sum((p * int(m) for p, m in zip(self.place, marks, strict=True)), Fraction(0))

    def in_order(self, outcome: int, apart: _Mark) -> list[int]:
        """List whose outcome would be another one, those who count most first.

        What each counts is her part of a place, times how far `apart` both outcomes are. Search
        centers are not asked to change.
        """
        movable = np.flatnonzero((self.is_negative != outcome) & ~self.is_center).tolist()
        far = apart(self.is_negative).tolist()
        return sorted(movable, key=lambda i: -abs(self.place[i] * Fraction(far[i])))

    def changed(self, order: Sequence[int], outcome: int, mark: _Mark) -> list[Fraction]:
        """Give the sum of a mark (in places) after 0, 1, 2, … people of an order have an outcome.

        Of refusals, fewer people cannot do it.
        """
        marks, other = mark(self.is_negative).tolist(), int(mark(np.array([outcome]))[0])
        steps = [self.place[i] * (other - int(marks[i])) for i in order]
        return list(accumulate(steps, initial=self.sum_marks(mark)))

    def share(self, negatives: Sequence[Fraction], like: Share) -> Share:
        """Write shares of this group as one integer over another, all else as in the one found."""
        size, number = int(like.size[0]), len(negatives)
        places = sum(self.place, Fraction(0))
        unit = lcm(*(n.denominator for n in negatives), places.denominator)
        whole = int(places * unit)
        return Share(
            negatives=_whole([int(n * unit) * size for n in negatives]),
            size=_whole([size] * number),
            split=_whole([whole] * number),
            people=None if like.people is None else np.repeat(like.people, number),
            doubt=None if like.doubt is None else np.repeat(like.doubt, number),
        )


def _chain(shares: Sequence[Share]) -> Share:
    """Put the shares of all marks of an outcome behind those of the first."""
    *others, last = shares
    for each in reversed(others):
        last = replace(each, further=last)
    return last


def _doubt(case: Case, row: Mapping[str, Any]) -> dict[str, Any]:
    """Say under how many draws and refits her verdict stays; some are made for her if need be."""
    share, worlds = known(row.get("verdict_share")), case.audit.plan.settings.uncertainty.worlds
    if not worlds:
        share, worlds = doubt_verdict(case.audit, case.place), REFITS
    return {
        "worlds": worlds,
        "verdict_share": share,
        "fragile": share is not None and share < FIRM,
    }


def _curve(case: Case) -> tuple[CurvePoint, ...]:
    plan = case.audit.plan
    if plan.semantics.preset is not None or not METHODS[plan.settings.primary[0]].has_tipping:
        return ()
    return find_curve(case.audit, case.place)


def robustness_of(case: Case, parts: Sequence[Part]) -> VerdictRobustness | None:
    """Say how wrong the worldview may be before the headline falls."""
    plan, found = case.audit.plan, tipping_of(case.audit, case.place)
    if found is None:
        return None
    (method, k), changes = plan.settings.primary, parts[0].changes
    share = known(case.result(method, k=k).get("verdict_share"))
    worlds = name_worlds(plan)
    if not worlds and len(parts) == 1:  # made for her alone
        share, worlds = changes.verdict_share, "refits"
    found = replace(found, fragile=np.array([share is not None and share < FIRM]))
    point, grade = known(found.point[0]), found.grade[0]
    verdicts = {size: Verdict(case.result(method, k=size)["verdict"]) for size in plan.settings.ks}
    stays = [size for size, each in verdicts.items() if each.strength >= verdicts[k].strength]
    without = {name: bool(stands[0]) for name, stands in found.without.items()}
    compared = case.audit.measure_worldviews()
    line = (
        "there is no verdict that could fall"
        if point is None
        else describe_verdict(
            plan,
            point,
            share=share,
            worlds=worlds,
            ks=stays,
            worldviews=None if compared is None else compared.held_by(case.place),
        )
    )
    return VerdictRobustness(
        tipping=point,
        grade=grade,
        rule="" if grade is None else rules_of(case.audit)[grade],
        sentence=line,
        appears=known(found.appears[0]),
        **_hidden_cause(case, point),
        stands_without={} if point is None else without,
        worldviews={} if compared is None else compared.verdicts_of(case.place),
    )


def _hidden_cause(case: Case, point: float | None) -> dict[str, Any]:
    if point is None or case.audit.plan.worldview is None:
        return {}
    cause = case.audit.hidden_cause()
    return {
        "robustness_value": cause.at(case.place, point).get("robustness_value"),
        "hidden_cause": cause.sentence(case.place, point),
    }


class _Comparer:
    """Makes one complainant's comparison again, under other circumstances."""

    def __init__(self, case: Case) -> None:
        self._case, self._audit, self._place = case, case.audit, case.place
        method, k = case.audit.plan.settings.primary
        self._method, self._found = METHODS[method], case.audit.test_everyone(method, k)
        members = case.groups(method, k=k)
        self._groups: dict[Role, _Weights] = {
            "control": _Weights.of(members.control),
            "test": _Weights.of(members.test),
        }
        own = np.array([self._place])
        self._shares: dict[Role, Share] = {
            "control": self._found.control.share.take(own),
            "test": self._found.test.share.take(own),
        }

    def _compare(self, control: Share, test: Share) -> Comparison:
        # no bound is asked for
        return compare_shares(self._audit.plan, control, test, depth="significance")

    def _verdicts(self, control: Share, test: Share) -> list[str]:
        """Compare again, with the p-values of all other complainants as they are."""
        compared = self._compare(control, test)
        return [
            self._verdict(bool(evidence), bool(significant), float(p_value)).value
            for evidence, significant, p_value in zip(
                compared.evidence, compared.significant, compared.interval.p_value, strict=True
            )
        ]

    def _verdict(self, evidence: bool, significant: bool, p_value: float) -> Verdict:  # noqa: FBT001
        if not evidence:
            return Verdict.NO_EVIDENCE
        if not significant:
            return Verdict.EVIDENCE
        adjusted = self._q_value(p_value) <= self._found.alpha
        return Verdict.SIGNIFICANT_ADJUSTED if adjusted else Verdict.SIGNIFICANT

    def _q_value(self, p_value: float) -> float:
        method = self._audit.plan.settings.evidence.adjust
        if method == "none":
            return float("nan")
        return self._others.adjust(p_value, method=method)

    @cached_property
    def _others(self) -> OtherTests:
        p_values = self._found.comparison.interval.p_value
        if self._method.matched:
            p_values = np.where(np.isnan(p_values), 1.0, p_values)
        return OtherTests.of(p_values, self._place)

    def flips(self) -> Iterator[Change]:
        """Find, for each group and each outcome, how many people decide the verdict."""
        outcome = self._audit.plan.outcome
        for role, group in self._groups.items():
            other = self._groups["test" if role == "control" else "control"]
            for end in self._ends:
                order = group.in_order(end, self._apart(end, other))
                shares = {
                    name: self._share(each, order if each is group else None, end, len(order))
                    for name, each in self._groups.items()
                }
                yield Change(
                    group=role,
                    outcome=plain_value(outcome.labels(np.array([end]))[0]),
                    of=len(order),
                    steps=_steps(self._verdicts(shares["control"], shares["test"])),
                )

    def _share(
        self, group: _Weights, order: Sequence[int] | None, outcome: int, people: int
    ) -> Share:
        """Give a group after 0, 1, 2, … people of an order have another outcome, or as it is."""
        role: Role = "control" if group is self._groups["control"] else "test"
        shares = []
        for mark in self._marks:
            sums = [group.sum_marks(mark)] * (people + 1)
            if order is not None:
                sums = group.changed(order, outcome, mark)
            shares.append(group.share(sums, self._shares[role]))
        return _chain(shares)

    @property
    def _marks(self) -> list[_Mark]:
        """What is summed over groups: refusals, or the marks of a scale."""
        scale = self._audit.situation.scale
        if scale is None:
            return [np.asarray]
        return [partial(scale.mark, which=mark) for mark in range(scale.marks)]

    @property
    def _ends(self) -> tuple[int, int]:
        """The outcomes that others could have had: the best one and the worst."""
        scale, steps = self._audit.situation.scale, self._audit.situation.is_negative
        if scale is None:
            return 0, 1
        if isinstance(scale, LevelScale):
            return 0, len(scale.levels) - 1
        return int(steps.min()), int(steps.max())  # of scores, on record

    def _apart(self, end: int, others: _Weights) -> _Mark:
        """Give how far outcomes are from another one: by steps, or by places among others."""
        if not isinstance(self._audit.situation.scale, LevelScale):
            return lambda steps: steps - end
        sums = [others.sum_marks(mark) for mark in self._marks]
        beyond = [sum(others.place, Fraction(0)), *sums, Fraction(0)]
        # whoever is beyond both counts twice, whoever is at one of the two once
        placed = np.array([one + other for one, other in pairwise(beyond)], dtype=object)
        return lambda steps: placed[steps] - placed[end]

    def thresholds(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Give the τ and the α at which the verdict changes.

        Significant ⇔ p ≤ α ⇔ the bound is at least τ: so the bound and the p-value are themselves
        the thresholds. Where the semantics rounds before it compares, neither is exact: None.
        """
        settings = self._audit.plan.settings
        if not self._audit.plan.semantics.compares_exactly:
            return {}
        edge, bound = _edges(row, settings.measure, worse=settings.worse)
        return {
            "tau_evidence": known(edge),
            "tau_significant": None if settings.interval == "fisher" else known(bound),
            "alpha_significant": known(row["p_value"]),
            "alpha_adjusted": known(row["q_value"]),
        }

    def with_herself(self) -> str | None:
        """Give the verdict with her own outcome counted in, or left out where it is counted."""
        other = {"cst_without": "cst_with", "cst_with": "cst_without"}.get(self._method.name, "")
        if (other, self._found.k) in self._case.results:
            return str(self._case.result(other, k=self._found.k)["verdict"])
        if self._method.count_centers or self._method.matched:
            return None
        own, decided = self._own, self._decided()
        if self._method.name != "cst_without":
            decided = None
        shares: dict[Role, list[Share]] = {"control": [], "test": []}
        for mark in self._marks:
            here, there = (
                group.share([group.sum_marks(mark)], self._shares[role])
                for role, group in self._groups.items()
            )
            shares["control"].append(here.with_center(mark(own)))
            if decided is not None:
                # a group and its center are averaged over the draws alike
                there = mean_share([there.with_center(mark(each)) for each in decided])
            shares["test"].append(there)
        return self._verdicts(_chain(shares["control"]), _chain(shares["test"]))[0]

    @property
    def _own(self) -> NDArray[Any]:
        return np.asarray(self._audit.situation.is_negative[[self._case.row]])

    def compare_every_k(self) -> Comparison | None:
        """Compare at every k up to the largest that was run, from one look at the distances."""
        settings, nearest = self._audit.plan.settings, self._audit.grouping.nearest
        capped = settings.similarity.max_distance is not None or settings.similarity.min_group > 1
        if not nearest or capped or self._method.matched:
            return None
        control = self._shares_by_k([nearest["control"]], [self._own], max(settings.ks))
        around = self._audit.grouping.around(self._method.center)
        test = self._shares_by_k(around, self._decided(), max(settings.ks))
        return self._compare(control, test)

    def _decided(self) -> list[NDArray[Any]] | None:
        """Say whether her counterfactual would have been refused, in each draw of it."""
        situation = self._audit.situation
        if situation.refused_in_draws is not None:
            return list(situation.refused_in_draws[:, [self._place]])
        decided = situation.is_negative_cf
        return None if decided is None else [decided[[self._case.row]]]

    def _shares_by_k(
        self, draws: Sequence[NearestGroups], centers: Sequence[NDArray[Any]] | None, largest: int
    ) -> Share:
        chain = []
        for mark in self._marks:
            shares = [self._share_by_k(nearest, largest, mark) for nearest in draws]
            if self._method.count_centers and centers is not None:
                shares = [
                    share.with_center(np.repeat(mark(center), len(share.size)))
                    for share, center in zip(shares, centers, strict=True)
                ]
            chain.append(shares[0] if len(shares) == 1 else mean_share(shares))
        return _chain(chain)

    def _share_by_k(self, nearest: NearestGroups, largest: int, mark: _Mark) -> Share:
        rows, distance = nearest.others(self._place)
        near = distance <= nearest.found.radius[self._place].max()
        negative = mark(self._audit.situation.is_negative[rows[near]]).astype(np.int64)
        ones = np.ones((1, int(near.sum())), np.int64)
        ks = tuple(range(1, largest + 1))
        counted = select(distance[near][None, :], ones, negative[None, :], ks)
        ties = self._audit.plan.settings.similarity.ties
        return Share.join([share_of(counted, i, k=k, ties=ties) for i, k in enumerate(ks)])


def _edges(row: Mapping[str, Any], measure: Measure, *, worse: bool) -> tuple[float, float]:
    """Give the measure, and its bound that τ is compared with, as thresholds like τ."""
    if not measure.is_ratio:
        if worse:
            return row["delta_p"], row["ci_low"]
        return 0.0 - row["delta_p"], -row["ci_high"]
    end = "_low" if measure.above(worse=worse) else "_high"
    found = np.array([row[measure.column], row[measure.column + end]], dtype=np.float64)
    if not worse:
        with np.errstate(divide="ignore"):
            found = 1 / found
    return float(found[0]), float(found[1])


def _steps(verdicts: Sequence[str]) -> tuple[Step, ...]:
    """Note where the verdict changes as more and more people change their outcome."""
    return tuple(
        Step(people=people, verdict=verdict)
        for people, (before, verdict) in enumerate(pairwise(verdicts), start=1)
        if verdict != before
    )


def _sufficient_distance(case: Case) -> float | None:
    """Find the distance within which both groups would have as many people as are asked for."""
    settings, nearest = case.audit.plan.settings, case.audit.grouping.nearest
    if settings.similarity.max_distance is None or METHODS[settings.primary[0]].matched:
        return None
    needed = []
    around = case.audit.grouping.around(METHODS[settings.primary[0]].center)
    for searched in (nearest["control"], *around):
        _, distance = searched.others(case.place)
        if len(distance) < settings.similarity.min_group:
            return None
        last = np.sort(distance)[settings.similarity.min_group - 1 : settings.similarity.min_group]
        needed.append(
            float(searched.metric.as_float(last)[0] + searched.overflow_distance[case.place])
        )
    return max(needed)


def ranges(ks: Sequence[int], marked: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    """Write the marked numbers as ranges, first and last included."""
    found: list[tuple[int, int]] = []
    for k, mark in zip(ks, marked.tolist(), strict=True):
        if not mark:
            continue
        if found and found[-1][1] == k - 1:
            found[-1] = (found[-1][0], k)
        else:
            found.append((k, k))
    return tuple(found)


def _whole(values: Sequence[int]) -> NDArray[Any]:
    # matches hold parts of many different sizes, whose common denominator may have no room in int64
    return np.array(values, dtype=np.int64 if max(values, default=0) < _ROOM else object)
