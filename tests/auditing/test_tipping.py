"""Tipping points beside an oracle: plain Python, fractions, one person and one λ at a time."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import mutandis as mm
from mutandis.auditing.robustness import find_curve, find_tipping
from mutandis.engine.tally import METHODS, Sums
from mutandis.errors import MutandisWarning, PlanError
from mutandis.outcomes.intervals import INTERVALS
from tests.oracle import Gower, Matched, Row, World, share, total

if TYPE_CHECKING:
    from collections.abc import Sequence

GRADES = ("low", "mid", "high")
JOBS = ("clerk", "cook", "guard")


@dataclass
class Oracle:
    """The definition: x + λ(x^CF - x), with the names of both in the proportion 1 - λ to λ."""

    rows: Sequence[Row]
    draws: Sequence[Sequence[Row]]  # the counterfactual rows, in one or more draws
    refused: Sequence[bool]
    women: Sequence[int]
    k: int
    caliper: Fraction | None = None
    matched: bool = True
    kinds: Sequence[Any] = ("continuous", GRADES, "nominal")

    def __post_init__(self) -> None:
        self.men = [row for row in range(len(self.rows)) if row not in set(self.women)]
        self.distance = Gower(self.rows, self.kinds)
        self.known: dict[Any, Matched] = {}

    def world(self, person: int, part: Fraction, held: str) -> World:
        """Return the counterfactual rows of a person, with weights that add up to one."""
        found = []
        fact, switched = self.rows[person], min(part, Fraction(1))
        for draw in self.draws:
            other = [
                fact[place] if "abc"[place] == held else cell
                for place, cell in enumerate(draw[person])
            ]
            for names, weight in ((fact, 1 - switched), (other, switched)):
                cells = tuple(
                    names[place] if kind == "nominal" else self._between(person, other, place, part)
                    for place, kind in enumerate(self.kinds)
                )
                if weight:
                    found.append((cells, weight / len(self.draws)))
        return found

    def _between(self, person: int, other: Any, place: int, part: Fraction) -> Fraction:
        here, there = (
            self.distance.number(place, each[place]) for each in (self.rows[person], other)
        )
        return here + part * (there - here)

    def p_value(self, person: int, part: Fraction, held: str = "") -> float | None:
        """Return the p-value of evidence; None without evidence or comparable groups."""
        if (part, held) not in self.known:
            self.known[part, held] = Matched(
                distance=self.distance,
                world=lambda row: self.world(row, part, held),
                caliper=self.caliper,
            )
        matched = self.known[part, held]
        if not self.matched:
            return self._unmatched(matched, person)
        found = matched.compare(person, self.women, self.men, self.k)
        p_control, p_test = share(found.control, self.refused), share(found.test, self.refused)
        if found.unfit != "" or p_control is None or p_test is None or not p_control > p_test:
            return None
        size = total(found.control)
        effective = min(found.n_effective, 2 * size)
        return _score_test(p_control, float(size), p_test, float(effective))

    def _unmatched(self, matched: Matched, person: int) -> float | None:
        others = [row for row in self.women if row != person]
        control = matched.group(self.rows[person], others, self.k)
        p_control = share(control, self.refused)
        if p_control is None:
            return None
        p_test, sizes = Fraction(0), []
        for cells, weight in matched.world(person):
            group = matched.group(cells, self.men, self.k)
            found = share(group, self.refused)
            if found is None:
                return None
            sizes.append(total(group))
            p_test += weight * found
        if not p_control > p_test:
            return None
        return _score_test(p_control, float(total(control)), p_test, float(min(sizes)))


@cache
def _score_test(p_control: Fraction, n_control: float, p_test: Fraction, n_test: float) -> float:
    """The test of the product, whose own oracle is elsewhere."""

    def share(p: Fraction, size: float) -> Sums:
        one = np.array([1])
        return Sums.of(
            marks=one * p.numerator,
            places=one,
            parts=one * p.denominator,
            people=np.array([size]),
        )

    control, test = share(p_control, n_control), share(p_test, n_test)
    return float(INTERVALS["miettinen-nurminen"](control, test, tau=0.0, alpha=0.05).p_value[0])


def random_rows(rng: np.random.Generator, size: int) -> list[Row]:
    return [
        (int(rng.integers(0, 9)) / 4, GRADES[rng.integers(0, 3)], JOBS[rng.integers(0, 3)])
        for _ in range(size)
    ]


def frame_of(rows: Sequence[Row]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list("abc"))


def audit_of(
    facts: Sequence[Row],
    would_be: Sequence[Row],
    refused: Sequence[bool],
    women: int,
    **options: Any,
) -> mm.Audit:
    table = frame_of(facts).assign(
        woman=[int(row < women) for row in range(len(facts))],
        granted=np.where(refused, "no", "yes"),
    )
    return mm.audit(
        table,
        outcome="granted",
        negative="no",
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={
            "a": "continuous",
            "b": mm.Attribute(name="b", kind=mm.AttributeKind.ORDINAL, levels=GRADES),
            "c": "nominal",
        },
        counterfactuals=frame_of(would_be),
        **options,
    )


def random_case(rng: np.random.Generator) -> tuple[list[Row], list[Row], list[bool], int]:
    """Women who would have had more of everything, and are refused for having less."""
    size = int(rng.integers(40, 60))
    women = size // 3
    facts = random_rows(rng, size)
    would_be = []
    for row, (a, b, c) in enumerate(facts):
        if row >= women:
            would_be.append((a, b, c))
            continue
        job = JOBS[rng.integers(0, 3)] if rng.random() < 0.3 else c
        grade = GRADES[min(GRADES.index(b) + int(rng.random() < 0.5), 2)]
        would_be.append((a + int(rng.integers(0, 4)) / 4, grade, job))
    merit = [a + GRADES.index(b) / 2 + 0.4 * (c == "clerk") for a, b, c in facts]
    refused = [m + rng.normal(0, 0.3) < 1.6 + 0.2 * (row < women) for row, m in enumerate(merit)]
    refused[0], refused[-1] = True, False
    return facts, would_be, refused, women


@pytest.mark.parametrize("method", ["cst_matched", "cst_without"])
@pytest.mark.parametrize("caliper", [None, 0.3])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in range(1, 12))]
)
def test_the_tipping_point_is_that_of_the_definition(
    method: str, caliper: float | None, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    facts, would_be, refused, women = random_case(rng)
    k = 6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        found = audit_of(
            facts,
            would_be,
            refused,
            women,
            methods=[method],
            ks=(k,),
            similarity=mm.Similarity(max_distance=caliper),
        )
        table = found.tipping()
    oracle = Oracle(
        rows=facts,
        draws=[would_be],
        refused=refused,
        women=range(women),
        k=k,
        caliper=None if caliper is None else Fraction(str(caliper)),
        matched=method == "cst_matched",
    )
    findings = found.evaluate()
    bounds = findings.p_value_bound()

    def stands(person: int, bound: float, part: Fraction, held: str = "") -> bool:
        p_value = oracle.p_value(person, part, held)
        return p_value is not None and p_value <= bound

    chosen = rng.choice(women, 4, replace=False).tolist()
    cases = np.flatnonzero(findings.comparison.evidence).tolist()
    for person in {*chosen, *cases[:3]}:
        row = table.iloc[person]
        bound = float(bounds[person])
        if not stands(person, bound, Fraction(1)):
            assert np.isnan(row["tipping"])
            assert row["stands_without_a"] is None
        else:
            step = 20
            while step and stands(person, bound, Fraction(step - 1, 20)):
                step -= 1
            assert row["tipping"] == step / 20
            if method == "cst_matched":
                for name in "abc":
                    held = stands(person, bound, Fraction(1), name)
                    assert row[f"stands_without_{name}"] is held
        significant = [s for s in range(20, 31) if stands(person, 0.05, Fraction(s, 20))]
        expected = significant[0] / 20 if significant and significant[0] > 20 else np.nan
        if findings.comparison.insufficient[person]:
            expected = np.nan
        np.testing.assert_equal(row["appears"], expected)


def test_a_method_without_counterfactuals_has_no_tipping_point() -> None:
    facts, would_be, refused, women = random_case(np.random.default_rng(1))
    found = audit_of(facts, would_be, refused, women, methods=["st", "cst_without"], ks=(5,))
    with pytest.raises(PlanError, match="no tipping point"):
        found.tipping("st", k=5)


def _loan(table: Any, **options: Any) -> mm.Audit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        return mm.audit(
            table,
            outcome="granted",
            negative="no",
            attributes={"x": "continuous", "job": "nominal"},
            worldview=mm.Worldview({"x": mm.Linear("A", "B"), "job": mm.Categorical("A", "x")}),
            ks=(12,),
            methods=["cst_matched"],
            uncertainty=mm.Uncertainty(refits=0, draws=5),
            seed=1,
            **options,
        )


def _people(size: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 2, size), rng.integers(0, 2, size)
    x = np.round(rng.normal(size=size) - 0.8 * a - 0.4 * b, 2)
    job = np.where(rng.random(size) < 1 / (1 + np.exp(-x - 0.5 + a)), "clerk", "cook")
    merit = x + 0.3 * (job == "clerk") + rng.normal(0, 0.3, size)
    ids = rng.permutation(size)
    granted = np.where(merit > 0, "yes", "no")
    return pd.DataFrame({"id": ids, "A": a, "B": b, "x": x, "job": job, "granted": granted})


A, B = mm.Protection("A", value=1, reference=0), mm.Protection("B", value=1, reference=0)


def test_open_counterfactuals_are_those_of_the_definition() -> None:
    """Draws, whose names switch and whose numbers move, for every complainant."""
    people = _people(100)
    found = _loan(people, protected=A)
    k = 12
    assert len(found.ground.world.draws) == 5

    def rows(population: Any) -> list[Row]:
        numbers = population.numbers("x").tolist()
        jobs = population.categories("job")
        names = [str(jobs.levels[code]) for code in jobs.codes.tolist()]
        return [(Fraction(x), job) for x, job in zip(numbers, names, strict=True)]

    oracle = Oracle(
        rows=rows(found.plan.population),
        draws=[rows(draw) for draw in found.ground.world.draws],
        refused=(people["granted"] == "no").tolist(),
        women=np.flatnonzero(people["A"] == 1).tolist(),
        k=k,
        kinds=("continuous", "nominal"),
    )
    findings, table = found.evaluate(), found.tipping()
    bounds = findings.p_value_bound()
    cases = np.flatnonzero(findings.comparison.evidence).tolist()
    assert len(cases) > 5
    for place in cases[:4]:
        person, bound = int(found.study.people[place]), float(bounds[place])
        step = 20
        while step:
            p_value = oracle.p_value(person, Fraction(step - 1, 20))
            if p_value is None or p_value > bound:
                break
            step -= 1
        assert table["tipping"].iloc[place] == step / 20


def test_several_grounds_stand_together() -> None:
    """With one protection each, a verdict on both stands where both stand."""
    found = _loan(_people(160), protected=[A, B], combine="multiple")
    together = found.tipping()
    assert together["tipping"].notna().any()
    findings = found.evaluate()
    bounds, parts = findings.p_value_bound(), list(found.parts.values())
    for place in np.flatnonzero(findings.comparison.evidence).tolist()[:4]:
        worst = 0.0
        for part in parts:
            alone = find_tipping(
                part, METHODS["cst_matched"], 12, places=np.array([place]), bound=bounds
            )
            worst = max(worst, float(alone.point[0]))
        assert together["tipping"].iloc[place] == worst


def test_one_person_alone_gets_what_all_together_get() -> None:
    found = _loan(_people(160), protected=A)
    everyone = found.tipping()
    for place in (0, 7, 33):
        alone = find_tipping(found, METHODS["cst_matched"], 12, places=np.array([place]))
        np.testing.assert_equal(alone.point[0], everyone["tipping"].iloc[place])
        np.testing.assert_equal(alone.appears[0], everyone["appears"].iloc[place])


def test_a_verdict_that_falls_on_the_way_and_stands_again_tips_where_it_stands_for_good() -> None:
    """Men are refused in the middle only, so Δp falls and rises again: not the first crossing."""
    rng = np.random.default_rng(4)
    women, men = rng.normal(0, 0.1, 60), rng.uniform(-0.5, 1.5, 400)
    table = pd.DataFrame(
        {
            "woman": [1] * 60 + [0] * 400,
            "x": [*women, *men],
            "granted": ["no"] * 60 + ["no" if 0.25 < x < 0.65 else "yes" for x in men],
        }
    )
    found = mm.audit(
        table,
        outcome="granted",
        negative="no",
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"x": "continuous"},
        counterfactuals=pd.DataFrame({"x": table["x"] + table["woman"]}),
        methods=["cst_matched"],
        ks=(15,),
        evidence=mm.Evidence(adjust="none"),
    )
    tipping = found.tipping()["tipping"]
    for place in range(0, 60, 15):
        stands = [each.stands for each in find_curve(found, place)]
        assert stands[0]
        assert not all(stands)
        last = max(step for step, each in enumerate(stands) if not each)
        assert tipping[place] == (last + 1) / 20 >= 0.5
