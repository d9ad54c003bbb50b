"""Open counterfactuals: the paper's methods average over draws, beside an oracle in fractions."""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mutandis as mm
from mutandis.auditing.run import study_of
from mutandis.data.columns import Numbers
from mutandis.engine.engine import Engine
from mutandis.engine.members import Lister
from mutandis.engine.study import World
from mutandis.engine.tally import METHODS, Sums, average
from mutandis.errors import MutandisWarning
from tests.oracle import Gower, fractions, marked, nearest, total

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from mutandis.engine.tally import Tally

KS = (3, 7)
OPEN = ("cst_without", "cst_with", "cf")


# --- an average of shares ---------------------------------------------------------------------


@pytest.mark.parametrize("largest", [4, 60, 5000])
def test_a_mean_of_shares_is_exact(largest: int) -> None:
    """With many different denominators, no int64 holds the common one."""
    rng = np.random.default_rng(largest)
    shares = []
    for _ in range(20):
        split = rng.integers(1, largest, 30)
        size = np.full(30, 7)
        shares.append(Sums.of(marks=rng.integers(0, size * split + 1), places=size, parts=split))
    mean = average(shares)
    each = [fractions(share) for share in shares]
    assert fractions(mean) == [sum(parts) / 20 for parts in zip(*each, strict=True)]
    assert mean.places.tolist() == [7] * 30
    assert (mean.parts.dtype == object) == (largest == 5000)
    assert (mean.marks <= 7 * mean.parts).all()


def test_a_mean_counts_as_the_smallest_group() -> None:
    shares = [
        Sums.of(marks=np.array(up), places=np.array(size), parts=np.array([1, 1, 2]))
        for up, size in (([2, 1, 3], [4, 2, 3]), ([1, 0, 6], [2, 0, 3]))
    ]
    mean = average(shares)
    assert mean.places.tolist() == [2, 0, 3]
    assert fractions(mean) == [Fraction(1, 2), None, Fraction(3, 4)]


# --- groups, beside the definition ------------------------------------------------------------


def random_tally(
    rng: np.random.Generator, draws: int, similarity: mm.Similarity
) -> tuple[Tally, Engine, World]:
    """A table on a coarse grid, with draws on a grid of halves and a decision on each."""
    size, women = 60, np.arange(60) % 3 == 0
    cells = [rng.integers(0, 6, (2, size)).astype(float) for _ in range(draws + 2)]
    for later in cells[1:]:
        later[rng.random((2, size)) < 0.4] += 0.5
        later[:, ~women] = cells[0][:, ~women]
    refused = rng.random(size) < 0.4
    table = {"woman": women, "a": cells[0][0], "b": cells[0][1], "no": refused}
    plan = mm.plan(
        {name: column.tolist() for name, column in table.items()},
        outcome="no",
        negative=True,
        protected=mm.Protection("woman", value=True, reference=False),
        attributes={"a": "continuous", "b": "continuous"},
        counterfactuals={"a": cells[1][0], "b": cells[1][1], "no": refused},
        methods=["st", "cst_without", "cst_with", "cf"],
        ks=KS,
        similarity=similarity,
    )

    def world(values: NDArray[np.float64]) -> Any:
        return plan.population.with_columns({"a": Numbers(values[0]), "b": Numbers(values[1])})

    drawn = World(
        point=world(cells[1]),
        parts=tuple((world(values), 1) for values in cells[2:]),
        drawn=True,
        decided=refused,
        decided_parts=rng.random((draws, int(women.sum()))) < 0.5,
    )
    engine = Engine(study_of(plan), threads=1)
    (tally,) = engine.tallies([drawn], plan.methods, measured=True)
    return tally, engine, drawn


CASES = [
    pytest.param({}, id="fair ties"),
    pytest.param({"ties": "all"}, id="all ties"),
    pytest.param({"max_distance": 0.1}, id="caliper"),
    pytest.param({"max_distance": 0.02}, id="narrow caliper"),
]


@pytest.mark.parametrize("options", CASES)
@pytest.mark.few("caliper")
def test_the_paper_s_methods_average_over_draws(options: dict[str, Any]) -> None:
    """p_test is the mean of the shares around each draw, counted as the smallest group."""
    empty = 0
    for seed in range(4):
        rng = np.random.default_rng([seed, len(str(options))])
        draws = (3, 7, 20, 1)[seed]
        similarity = mm.Similarity(**options)
        tally, engine, drawn = random_tally(rng, draws, similarity)
        study = engine.study
        caliper = options.get("max_distance")
        caliper = None if caliper is None else Fraction(str(caliper))
        people = study.population
        men = np.flatnonzero(~people.categories("woman").codes.astype(bool))
        a, b = people.numbers("a"), people.numbers("b")
        gower = Gower(list(zip(a.tolist(), b.tolist(), strict=True)), ("continuous",) * 2)
        refused = study.outcomes.tolist()
        assert drawn.decided_parts is not None
        for index, k in enumerate(KS):
            found = {name: tally.at(METHODS[name], index).test for name in OPEN}
            told = {name: fractions(each.share) for name, each in found.items()}
            for place, row in enumerate(study.people.tolist()):
                groups = []
                for world in drawn.draws:
                    center = (float(world.numbers("a")[row]), float(world.numbers("b")[row]))
                    apart = gower.among(center, men.tolist())
                    groups.append(nearest(apart, k, ties=similarity.ties, caliper=caliper))
                sizes = [total(group) for group in groups]
                negatives = [marked(group, refused) for group in groups]
                own = [int(each) for each in drawn.decided_parts[:, place]]
                assert told["cf"][place] == Fraction(sum(own), draws)
                assert found["cf"].share.places[place] == 1
                with_own = [
                    (n + c) / (s + 1) for n, c, s in zip(negatives, own, sizes, strict=True)
                ]
                assert told["cst_with"][place] == sum(with_own) / draws
                assert found["cst_with"].share.places[place] == min(sizes) + 1
                assert found["cst_without"].share.places[place] == min(sizes)
                assert found["cst_without"].rows[place] == max(map(len, groups))
                without = told["cst_without"][place]
                if min(sizes) == 0:
                    empty += 1
                    assert without is None
                    continue
                pairs = zip(negatives, sizes, strict=True)
                assert without == sum(n / s for n, s in pairs) / draws
                _check_members(engine, drawn, int(study.people[place]), index, groups)
    assert (empty > 0) == ("max_distance" in options)


def _check_members(
    engine: Engine,
    world: World,
    row: int,
    index: int,
    groups: Sequence[dict[int, Fraction]],
) -> None:
    """Each member holds the mean of its places, measured in the smallest group."""
    least = min(map(total, groups))
    held: dict[int, Fraction] = {}
    for group in groups:
        for member, part in group.items():
            more = part * least / total(group) / len(groups)
            held[member] = held.get(member, Fraction(0)) + more
    people = Lister(engine=engine, world=world).people(row, METHODS["cst_without"], index).test
    listed = dict(zip(people.rows.tolist(), people.place.tolist(), strict=True))
    assert listed == pytest.approx({row: float(part) for row, part in held.items()})


def test_one_draw_is_the_audit_of_that_draw() -> None:
    """Draws that are all alike give what the same table gives as the counterfactuals."""
    rng = np.random.default_rng(5)
    tally, engine, drawn = random_tally(rng, 1, mm.Similarity())
    assert drawn.decided_parts is not None
    decided = engine.study.outcomes.copy()
    decided[engine.study.people] = drawn.decided_parts[0]
    alone = World(point=drawn.draws[0], decided=decided)
    methods = [METHODS[name] for name in ("st", *OPEN)]
    often = replace(
        drawn, parts=tuple(drawn.parts) * 3, decided_parts=np.repeat(drawn.decided_parts, 3, axis=0)
    )
    plain, thrice = engine.tallies([alone, often], methods)
    for method in methods:
        for index in range(len(KS)):
            expected = plain.at(method, index).test
            for found in (tally.at(method, index).test, thrice.at(method, index).test):
                assert fractions(found.share) == fractions(expected.share)
                assert found.share.places.tolist() == expected.share.places.tolist()
                assert found.rows.tolist() == expected.rows.tolist()
                np.testing.assert_array_equal(found.radius, expected.radius)


# --- whole audits -----------------------------------------------------------------------------

SETTINGS: dict[str, Any] = {
    "outcome": "granted",
    "negative": "no",
    "protected": mm.Protection("woman", value=1, reference=0),
    "attributes": {
        "salary": "continuous",
        "loans": "continuous",
        "grade": "nominal",
        "job": "nominal",
    },
    "decision": "salary - 4 * loans > 6",
    "ks": (5, 20),
}
WORLDVIEW = mm.Worldview(
    {
        "salary": mm.Linear("woman"),
        "loans": mm.Count("woman", "salary"),
        "job": mm.Categorical("woman"),
    }
)


def people(size: int = 240, seed: int = 2) -> pd.DataFrame:
    import pandas as pd

    rng = np.random.default_rng(seed)
    woman = (rng.random(size) < 0.4).astype(int)
    salary = np.round(rng.normal(20 - 3 * woman, 4), 1)
    loans = rng.poisson(np.exp(0.4 + 0.6 * woman))
    job = np.where(rng.random(size) < 0.3 + 0.4 * woman, "clerk", "cook")
    return pd.DataFrame(
        {
            "woman": woman,
            "salary": salary,
            "loans": loans,
            "grade": np.where(rng.random(size) < 0.5, "low", "high"),
            "job": job,
            "granted": np.where(salary - 4 * loans > 6, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def audited() -> mm.Audit:
    return audit_people()


def audit_people(table: Any = None, **changes: Any) -> mm.Audit:
    options = {
        "worldview": WORLDVIEW,
        "uncertainty": mm.Uncertainty(draws=6, refits=0),
        "seed": 4,
        **SETTINGS,
        **changes,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        return mm.audit(people() if table is None else table, **options)


def test_an_audit_averages_over_audits_of_its_draws(audited: mm.Audit) -> None:
    """Each draw, handed over as a ready table, is an audit of its own."""
    made = WORLDVIEW.counterfactuals(
        audited.plan.population, do={"woman": 0}, draws=6, rng=np.random.default_rng(4)
    )
    alone = [
        audit_people(
            worldview=None,
            counterfactuals=draw.frame().drop(columns="granted"),
            uncertainty=mm.Uncertainty(),
        )
        for draw in made.draws
    ]
    for method in OPEN:
        for k in (5, 20):
            mean = np.mean([each.findings(method, k=k)["p_test"] for each in alone], axis=0)
            found = audited.findings(method, k=k)
            np.testing.assert_allclose(found["p_test"], mean, rtol=1e-12, atol=1e-15)
            assert set(found["n_test"]) == {k + (method == "cst_with") if method != "cf" else 1}
            evidence = np.mean(
                [each.findings(method, k=k)["delta_p"] > 0 for each in alone], axis=0
            )
            weak = found["verdict"] == "evidence"
            assert found["verdict_share"][weak].tolist() == evidence[weak].tolist()
    most = np.mean([each.findings("cf", k=5)["outcome_cf"] == "no" for each in alone], axis=0)
    decided = audited.findings("cf", k=5)["outcome_cf"] == "no"
    assert (decided[most != 0.5] == (most > 0.5)[most != 0.5]).all()
    assert 0 < most.mean() < 1
