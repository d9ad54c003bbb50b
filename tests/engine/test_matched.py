"""The matched comparison beside an oracle: plain Python, fractions, one person at a time."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
from scipy.stats import norm

import mutandis as mm
from mutandis.auditing.run import study_of
from mutandis.data.attribute import Attribute, AttributeKind
from mutandis.data.columns import Categories, Numbers
from mutandis.engine.balance import SpaceFacts, draw_values
from mutandis.engine.engine import Engine
from mutandis.engine.pack import tally_arrays
from mutandis.engine.study import World
from mutandis.engine.tally import CST_MATCHED, Matching
from mutandis.errors import MutandisWarning
from mutandis.geometry.embedding import Embedded
from mutandis.geometry.index import Space
from mutandis.geometry.metric import Metric, Points
from tests.oracle import (
    Compared,
    Gower,
    Matched,
    benjamini_hochberg,
    exact,
    fractions,
    marked,
    share,
    total,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mutandis.engine.study import Study
    from mutandis.engine.tally import Group, Tally

KS = (3, 7, 12)
JOBS = ("clerk", "cook", "guard")
GRADES = ("low", "mid", "high")


def random_table(
    rng: np.random.Generator, size: int, *, grid: int
) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Cells on a coarse grid, and counterfactual cells on the same grid."""

    def cells() -> dict[str, list[Any]]:
        return {
            "a": (rng.integers(0, grid, size) / 4).tolist(),
            "b": [GRADES[code] for code in rng.integers(0, 3, size)],
            "c": [JOBS[code] for code in rng.integers(0, 3, size)],
        }

    facts, would_be = cells(), cells()
    keep = rng.random(size) < 0.5
    for name, column in would_be.items():
        column[:] = [f if k else w for f, w, k in zip(facts[name], column, keep, strict=True)]
    return facts, would_be


def _attribute(name: str, kind: str, **options: Any) -> Attribute:
    return Attribute(name=name, kind=AttributeKind(kind), **options)


def group_all(
    facts: dict[str, list[Any]],
    worlds: Sequence[dict[str, list[Any]]],
    *,
    women: np.ndarray[Any, Any],
    refused: np.ndarray[Any, Any],
    weights: Sequence[float] = (1.0, 1.0, 1.0),
    similarity: mm.Similarity,
) -> tuple[Tally, Study]:
    """Group by the product; several worlds are draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MutandisWarning)
        plan = mm.plan(
            {"woman": women.tolist(), **facts, "granted": np.where(refused, "no", "yes").tolist()},
            outcome="granted",
            negative="no",
            protected=mm.Protection("woman", value=[1, 2], reference=0, pool=False),
            attributes={
                "a": _attribute("a", "continuous", weight=weights[0]),
                "b": _attribute("b", "ordinal", levels=GRADES, weight=weights[1]),
                "c": _attribute("c", "nominal", weight=weights[2]),
            },
            counterfactuals=worlds[0],
            methods=["cst_matched"],
            ks=KS,
            similarity=similarity,
        )
        assert plan.counterfactuals is not None
        first = plan.counterfactuals.population
        drawn = []
        for world in worlds if len(worlds) > 1 else ():
            columns: dict[str, Any] = {"a": Numbers(np.array(world["a"], dtype=np.float64))}
            for name in "bc":
                levels = plan.population.categories(name).levels
                codes = np.array([levels.index(cell) for cell in world[name]], dtype=np.int32)
                columns[name] = Categories(codes, levels)
            drawn.append(plan.population.with_columns(columns))
        engine = Engine(study_of(plan), threads=1)
        counted = World(point=first, parts=tuple((each, 1) for each in drawn), drawn=bool(drawn))
        (tally,) = engine.tallies([counted], plan.methods, measured=True)
        return tally, engine.study


def oracle_of(
    facts: dict[str, list[Any]],
    worlds: Sequence[dict[str, list[Any]]],
    *,
    weights: Sequence[float] = (1.0, 1.0, 1.0),
    ties: str = "fair",
    caliper: float | None = None,
) -> Matched:
    """Compare by the definition; several worlds are draws."""
    rows, *drawn = (
        list(zip(each["a"], each["b"], each["c"], strict=True)) for each in (facts, *worlds)
    )
    return Matched(
        distance=Gower(rows, ("continuous", GRADES, "nominal"), weights),
        world=lambda person: [(world[person], Fraction(1, len(drawn))) for world in drawn],
        ties=ties,
        caliper=None if caliper is None else exact(caliper),
    )


def reason(unfit: int | str) -> str:
    return unfit if isinstance(unfit, str) else "abc"[unfit]


def check_group(group: Group, place: int, wanted: Compared, refused: Sequence[bool]) -> None:
    matching = group.matching
    assert matching is not None
    code = int(matching.unfit[place])
    names = matching.names
    assert reason(wanted.unfit) == (
        "" if code == 0 else "far" if code == Matching.FAR else names[abs(code) - 1]
    )
    assert fractions(group.share)[place] == share(wanted.test, refused)
    assert group.rows[place] == len(wanted.test)
    if wanted.filled:
        assert matching.n_effective[place] == pytest.approx(float(wanted.n_effective), rel=1e-5)


CASES = [
    pytest.param({}, id="fair ties"),
    pytest.param({"weights": (0.5, 1.0, 3.0)}, id="weights"),
    pytest.param({"ties": "all"}, id="all ties"),
    pytest.param({"caliper": 0.2}, id="caliper"),
    pytest.param({"caliper": 0.05, "grid": 40}, id="narrow caliper"),
    pytest.param({"draws": 4}, id="draws"),
    pytest.param({"draws": 3, "caliper": 0.3, "grid": 30}, id="draws and caliper"),
    pytest.param({"draws": 3, "caliper": 0.07, "grid": 30}, id="draws and narrow caliper"),
    pytest.param({"grid": 400}, id="few ties"),
    pytest.param({"grid": 1}, id="constant"),
]


@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize(
    "block", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in range(1, 13))]
)
def test_the_matched_comparison_is_that_of_the_definition(
    options: dict[str, Any], block: int
) -> None:
    """Every k, for a sample of complainants of three tables."""
    for repeat in range(3):
        rng = np.random.default_rng([block, repeat, len(str(options))])
        size = int(rng.integers(45, 90))
        facts, would_be = random_table(rng, size, grid=options.get("grid", 6))
        more = range(options.get("draws", 1) - 1)
        others = [random_table(rng, size, grid=options.get("grid", 6))[1] for _ in more]
        worlds = [would_be, *others]
        women = np.zeros(size, dtype=int)
        women[: size // 3], women[-14:] = 1, 2
        refused = rng.random(size) < 0.4
        weights = options.get("weights", (1.0, 1.0, 1.0))
        ties, caliper = options.get("ties", "fair"), options.get("caliper")
        tally, study = group_all(
            facts,
            worlds,
            women=women,
            refused=refused,
            weights=weights,
            similarity=mm.Similarity(ties=ties, max_distance=caliper),
        )
        oracle = oracle_of(facts, worlds, weights=weights, ties=ties, caliper=caliper)
        men = np.flatnonzero(women == 0).tolist()
        everyone = study.people
        for place in rng.choice(len(everyone), 3, replace=False).tolist():
            person = int(everyone[place])
            control = np.flatnonzero(women == women[person]).tolist()
            for index, k in enumerate(KS):
                wanted = oracle.compare(person, control, men, k)
                group = tally.at(CST_MATCHED, index).test
                check_group(group, place, wanted, refused.tolist())


@pytest.mark.parametrize("options", CASES)
def test_the_kernel_adds_up_what_arrays_do(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    rng = np.random.default_rng(len(str(options)))
    size, grid = 150, options.get("grid", 6)
    facts, first = random_table(rng, size, grid=grid)
    more = range(options.get("draws", 1) - 1)
    worlds = [first, *(random_table(rng, size, grid=grid)[1] for _ in more)]
    women = np.arange(size) % 3
    similarity = mm.Similarity(
        ties=options.get("ties", "fair"), max_distance=options.get("caliper")
    )
    grouped = []
    for enough in (10**9, 0):
        monkeypatch.setattr("mutandis.engine.matched._WORTH_LOADING", enough)
        tally, _ = group_all(
            facts, worlds, women=women, refused=np.arange(size) % 2 > 0, similarity=similarity
        )
        grouped.append(tally_arrays(tally))
    pairs = [
        *zip(*(each["made"]["cst_matched"] for each in grouped), strict=True),
        *zip(*(each["links"] for each in grouped), strict=True),
    ]
    for one, other in pairs:
        for name, column in one.items():
            np.testing.assert_array_equal(column, other[name], err_msg=name)


# --- several protections, both directions, through the public interface -------------------------


DESIGNS: dict[str, dict[str, Any]] = {
    "several values": {"protected": mm.Protection("race", value=["b", "h"], reference="w")},
    "pooled": {"protected": mm.Protection("race", value=["b", "h"], reference="w", pool=True)},
    "intersectional": {
        "combine": "intersectional",
        "protected": [
            mm.Protection("race", value=["b", "h"], reference="w"),
            mm.Protection("sex", value="f", reference="m"),
        ],
    },
    "multiple": {
        "combine": "multiple",
        "protected": [
            mm.Protection("race", value=["b", "h"], reference="w"),
            mm.Protection("sex", value="f", reference="m"),
        ],
    },
}
# how much being something adds to a
SHIFTS = {"w": 0.0, "b": -0.25, "h": -0.75, "m": 0.0, "f": -0.5}
STATED = mm.Worldview(
    {"a": mm.Stated("-0.25 * (race == 'b') - 0.75 * (race == 'h') - 0.5 * (sex == 'f')")}
)
SEARCHES: dict[str, dict[str, Any]] = {
    "fair": {},
    "weights": {"weights": (0.5, 1.0, 3.0)},
    "caliper": {"max_distance": 0.2},
    "all": {"ties": "all", "tau": 0.1},
    "weights and caliper": {"weights": (3.0, 0.5, 1.0), "max_distance": 0.25, "tau": 0.05},
}


def spaces_of(design: str, statuses: Sequence[tuple[str, str]], person: int) -> list[Any]:
    """The status that each intervention takes away, and the rows of its two spaces."""
    race, sex = statuses[person]
    rows = range(len(statuses))

    def where(test: Any) -> list[int]:
        return [row for row in rows if test(*statuses[row])]

    if design == "intersectional":
        same = where(lambda r, s: (r, s) == (race, sex))
        return [((race, sex), same, where(lambda r, s: (r, s) == ("w", "m")))]
    races = {"b", "h"} if design == "pooled" else {race}
    by_race = ((race,), where(lambda r, _: r in races), where(lambda r, _: r == "w"))
    if design != "multiple":
        return [by_race]
    return [by_race, ((sex,), where(lambda _, s: s == sex), where(lambda _, s: s == "m"))]


def score_test(control: Fraction, test: Fraction, sizes: tuple[float, float], sign: int) -> float:
    """Return the p-value of Miettinen and Nurminen's score test of no difference, one-sided."""
    size, people = sizes
    together = size + people
    pooled = (size * float(control) + people * float(test)) / together
    variance = pooled * (1 - pooled) * (1 / size + 1 / people) * together / (together - 1)
    if variance == 0:
        return float("nan")
    return float(norm.sf(sign * float(control - test) / variance**0.5))


def answer(
    oracle: Matched,
    person: int,
    spaces: Any,
    k: int,
    *,
    refused: Sequence[bool],
    sign: int,
    tau: str,
) -> dict[str, Any]:
    """Compare one complainant under one intervention by the definition."""
    _, control, test = spaces
    found = oracle.compare(person, control, test, k)
    own = oracle.matches(person, test)
    p_own = None if own is None else marked(own[0], refused)
    own_case = None if p_own is None else sign * p_own < sign * Fraction(1, 2)
    p_control, p_test = share(found.control, refused), share(found.test, refused)
    result: dict[str, Any] = {
        "p_control": p_control,
        "p_test": p_test,
        "delta_p": None,
        "rows": len(found.test),
        "unfit": reason(found.unfit),
        "insufficient": found.unfit != "" or not found.control,
        "evidence": False,
        "p_own": p_own,
        "own_case": own_case if refused[person] == (sign > 0) else False,
    }
    if p_control is not None and p_test is not None:
        delta_p = result["delta_p"] = p_control - p_test
        size = float(total(found.control))
        people = min(float(found.n_effective), 2 * size)
        result["evidence"] = not result["insufficient"] and sign * delta_p > Fraction(tau)
        result["p_value"] = score_test(p_control, p_test, (size, people), sign)
        result["n_effective"] = people
    return result


def combined(parts: Sequence[Any], sign: int) -> Any:
    """All interventions together: evidence on each of them."""
    if len(parts) == 1:
        return parts[0]
    unfit = [part for part in parts if part["insufficient"]]
    weakest = unfit[0] if unfit else min(parts, key=lambda part: sign * part["delta_p"])
    answers = [part["own_case"] for part in parts]
    shares = [part["p_own"] for part in parts]
    return {
        **weakest,
        "insufficient": bool(unfit),
        "evidence": all(part["evidence"] for part in parts),
        "p_value": max(part.get("p_value", np.nan) for part in parts),
        "own_case": False if False in answers else None if None in answers else True,
        "p_own": None if None in shares else sign * max(sign * share for share in shares),
    }


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A random table with several protected attributes, and how it is audited."""

    design: str
    direction: Literal["negative", "positive"]
    statuses: Sequence[tuple[str, str]]
    facts: dict[str, list[Any]]
    would_be: dict[str, list[Any]]
    refused: list[bool]
    weights: tuple[float, float, float]
    tau: float
    similarity: dict[str, Any]

    def audit(self) -> mm.Audit:
        """Audit it by the product: multiple discrimination has several counterfactuals each."""
        is_multiple = self.design == "multiple"
        a, b, c = self.weights
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MutandisWarning)
            return mm.audit(
                {
                    "race": [race for race, _ in self.statuses],
                    "sex": [sex for _, sex in self.statuses],
                    **self.facts,
                    "granted": ["no" if each else "yes" for each in self.refused],
                },
                outcome="granted",
                negative="no",
                attributes={
                    "a": _attribute("a", "continuous", weight=a),
                    "b": _attribute("b", "ordinal", levels=GRADES, weight=b),
                    "c": _attribute("c", "nominal", weight=c),
                },
                worldview=STATED if is_multiple else None,
                counterfactuals=None if is_multiple else self.would_be,
                methods=["cst_matched"],
                ks=KS[:2],
                tau=self.tau,
                similarity=mm.Similarity(**self.similarity),
                evidence=mm.Evidence(direction=self.direction),
                uncertainty=mm.Uncertainty(draws=0, refits=0),
                **DESIGNS[self.design],
            )

    def oracle(self, status: tuple[str, ...]) -> Matched:
        """Return the oracle for the intervention that takes a status away."""
        cells = self.would_be
        if self.design == "multiple":
            shift = sum(SHIFTS[each] for each in status)
            cells = {**self.facts, "a": [cell - shift for cell in self.facts["a"]]}
        return oracle_of(
            self.facts,
            [cells],
            weights=self.weights,
            ties=self.similarity.get("ties", "fair"),
            caliper=self.similarity.get("max_distance"),
        )


def check_row(row: Mapping[str, Any], wanted: Mapping[str, Any], *, tested: bool) -> None:
    """One complainant's row of the findings against the oracle."""
    assert (row["verdict"] == "insufficient") == wanted["insufficient"]
    assert (row["verdict"] not in {"insufficient", "no-evidence"}) == wanted["evidence"]
    assert row["unfit"] == wanted["unfit"]
    assert row["rows_test"] == wanted["rows"]
    assert row["own_case"] is wanted["own_case"]
    for name in ("p_control", "p_test", "delta_p", "p_own"):
        number = float("nan") if wanted[name] is None else float(wanted[name])
        np.testing.assert_equal(row[name], number)
    if wanted["p_test"] is not None:
        assert row["n_effective"] == pytest.approx(wanted["n_effective"], rel=1e-5)
    if tested and not wanted["insufficient"] and not np.isnan(wanted["p_value"]):
        assert row["p_value"] == pytest.approx(wanted["p_value"], rel=1e-4, abs=1e-9)


def check_audit(design: str, direction: Any, search: str, repeat: int) -> None:
    seed = [list(DESIGNS).index(design), list(SEARCHES).index(search), repeat, len(direction)]
    rng, options = np.random.default_rng(seed), dict(SEARCHES[search])
    statuses = [(race, sex) for race in "wwbh" for sex in "mf" for _ in range(9)]
    facts, would_be = random_table(rng, len(statuses), grid=int(rng.choice([6, 40])))
    drawn = Drawn(
        design=design,
        direction=direction,
        statuses=statuses,
        facts=facts,
        would_be=would_be,
        refused=(rng.random(len(statuses)) < 0.5).tolist(),
        weights=options.pop("weights", (1.0, 1.0, 1.0)),
        tau=options.pop("tau", 0),
        similarity=options,
    )
    audit, sign = drawn.audit(), 1 if direction == "negative" else -1
    oracles: dict[tuple[str, ...], Matched] = {}
    for k in KS[:2]:
        found = audit.findings(k=k).to_dict("records")
        # those who cannot be compared count with p = 1
        known = [1.0 if row["verdict"] == "insufficient" else row["p_value"] for row in found]
        for row, q_value in zip(found, benjamini_hochberg(known), strict=True):
            wanted = float("nan") if row["verdict"] == "insufficient" else q_value
            np.testing.assert_allclose(row["q_value"], wanted, rtol=1e-12)
        for place in rng.choice(len(found), 3, replace=False).tolist():
            person, parts = found[place]["id"], []
            for spaces in spaces_of(design, statuses, person):
                if spaces[0] not in oracles:
                    oracles[spaces[0]] = drawn.oracle(spaces[0])
                parts.append(
                    answer(
                        oracles[spaces[0]],
                        person,
                        spaces,
                        k,
                        refused=drawn.refused,
                        sign=sign,
                        tau=str(drawn.tau),
                    )
                )
            check_row(found[place], combined(parts, sign), tested=drawn.tau == 0)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("direction", ["negative", "positive"])
@pytest.mark.few(
    "negative-pooled", "positive-several values", "negative-multiple", "positive-intersectional"
)
def test_several_protections_are_those_of_the_definition(design: str, direction: str) -> None:
    check_audit(design, direction, "weights and caliper", 0)


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("direction", ["negative", "positive"])
def test_many_audits_of_several_protections(design: str, direction: str, search: str) -> None:
    """120 audits in all."""
    for repeat in range(1, 4):
        check_audit(design, direction, search, repeat)


def embedded(*columns: list[int]) -> Embedded:
    coordinates = np.array(columns, dtype=np.int64).T
    points = Points(coordinates=coordinates, codes=np.empty((len(coordinates), 0), dtype=np.int32))
    return Embedded(points=points, overflow_distance=np.zeros(len(coordinates)))


def space_of(*columns: list[int]) -> Space:
    points = embedded(*columns).points
    metric = Metric(mismatch=np.empty(0, dtype=np.int64), unit=1.0)
    return Space.of(points, np.zeros(len(points), dtype=np.bool_), metric)[0]


def test_a_counterfactual_between_values_is_drawn_as_both_of_them() -> None:
    space = space_of([0, 100, 200] * 20)
    drawn = draw_values(embedded([100, 130, 199, -5, 300, 2]), SpaceFacts.of(space))
    assert len(drawn) == 20
    values = np.stack([each.points.coordinates[:, 0] for each in drawn])
    # on a value, and beyond all of them, nothing is drawn
    assert set(values[:, 0].tolist()) == {100}
    assert set(values[:, 3].tolist()) == {-5}
    assert set(values[:, 4].tolist()) == {300}
    assert sorted(values[:, 1].tolist()) == [100] * 14 + [200] * 6
    assert sorted(values[:, 2].tolist()) == [200] * 20
    assert sorted(values[:, 5].tolist()) == [0] * 20


def test_draws_of_several_attributes_are_mixed() -> None:
    space = space_of([0, 0, 100, 100] * 20, [0, 100, 0, 100] * 20)
    drawn = draw_values(embedded([50], [50]), SpaceFacts.of(space))
    pairs = [tuple(each.points.coordinates[0].tolist()) for each in drawn]
    counts = [pairs.count((a, b)) for a in (0, 100) for b in (0, 100)]
    assert sum(counts) == 20
    assert min(counts) >= 4


def test_fine_values_are_not_drawn() -> None:
    world = embedded([5, 15])
    assert draw_values(world, SpaceFacts.of(space_of([*range(0, 400, 10)]))) == [world]
    # few values, but every counterfactual is one of them
    on_values = embedded([100, 0])
    assert draw_values(on_values, SpaceFacts.of(space_of([0, 100] * 20))) == [on_values]
