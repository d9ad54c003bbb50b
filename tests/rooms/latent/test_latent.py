"""Hidden common causes: what is declared, abducted and predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from mutandis.data.columns import Numbers
from mutandis.data.population import Population
from mutandis.errors import WorldviewError
from mutandis.rooms.latent import FittedLatent, Latent
from mutandis.rooms.latent.fit import Driven
from mutandis.scm import Count, Linear, Ordinal, Worldview
from mutandis.scm.predictor import LinearPredictor, Term

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

EQUATIONS: dict[str, Linear | Count] = {
    "Grade": Linear("Group"),
    "Salary": Linear("Group", "Age", link="log"),
    "Prizes": Count("Group"),
}
LATENT = Latent("Skill", EQUATIONS)
EXPECTED = Latent("Skill", EQUATIONS, residual_noise=False)


def _predictor(intercept: float, **slopes: float) -> LinearPredictor:
    terms = tuple(Term.slope(name, slope) for name, slope in slopes.items())
    return LinearPredictor(intercept=intercept, terms=terms)


TRUTH = {
    "Grade": Driven(predictor=_predictor(3.0, Group=-0.4), loading=0.5, deviation=0.3),
    "Salary": Driven(predictor=_predictor(1.0, Group=-0.2, Age=0.01), loading=0.3, deviation=0.4),
    "Prizes": Driven(predictor=_predictor(1.2, Group=-0.5), loading=0.6),
}


def people(rows: int = 400, *, seed: int = 11) -> Population:
    """Simulate people from the equations above, with the noise that made their prizes."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, size=rows).astype(float)
    age = rng.integers(20, 60, size=rows).astype(float)
    skill, rank = rng.normal(size=rows), rng.random(rows)
    table = {
        "Group": group,
        "Age": age,
        "Grade": 3.0 - 0.4 * group + 0.5 * skill + 0.3 * rng.normal(size=rows),
        "Salary": np.exp(
            1.0 - 0.2 * group + 0.01 * age + 0.3 * skill + 0.4 * rng.normal(size=rows)
        ),
        "Prizes": stats.poisson.ppf(rank, np.exp(1.2 - 0.5 * group + 0.6 * skill)),
        "PrizesInGroup0": stats.poisson.ppf(rank, np.exp(1.2 + 0.6 * skill)),
    }
    return Population.from_frame(table, columns=list(table))


def _posterior_mean(grade: float, salary: float, prizes: float, group: float, age: float) -> float:
    """Weigh a fine grid of U by the densities of SciPy."""
    u = np.linspace(-9.0, 9.0, 40001)
    weight = (
        stats.norm.pdf(u)
        * stats.norm.pdf(grade, 3.0 - 0.4 * group + 0.5 * u, 0.3)
        * stats.norm.pdf(np.log(salary), 1.0 - 0.2 * group + 0.01 * age + 0.3 * u, 0.4)
        * stats.poisson.pmf(prizes, np.exp(1.2 - 0.5 * group + 0.6 * u))
    )
    return float((weight * u).sum() / weight.sum())


def counterfactuals(
    fitted: FittedLatent, facts: Population, *, group: float, rng: np.random.Generator | None = None
) -> Mapping[str, NDArray[np.float64]]:
    """Go through the three steps by hand."""
    noise = fitted.abduct(facts.columns, rng=rng)
    causes = {"Group": Numbers(np.full(len(facts), group)), "Age": facts.columns["Age"]}
    return {
        child: equation.predict(causes, noise[child]).values
        for child, equation in fitted.equations.items()
    }


def test_the_point_counterfactual_is_the_one_worked_out_row_by_row() -> None:
    facts = people(25)
    made = counterfactuals(LATENT.with_parameters(TRUTH), facts, group=0.0)
    for row in range(25):
        grade, salary, prizes, group, age = (
            float(facts.numbers(name)[row])
            for name in ("Grade", "Salary", "Prizes", "Group", "Age")
        )
        skill = _posterior_mean(grade, salary, prizes, group, age)
        here, there = np.exp(1.2 - 0.5 * group + 0.6 * skill), np.exp(1.2 + 0.6 * skill)
        rank = 0.5 * (stats.poisson.cdf(prizes - 1, here) + stats.poisson.cdf(prizes, here))
        assert made["Prizes"][row] == stats.poisson.ppf(rank, there)
        assert made["Grade"][row] == pytest.approx(grade + 0.4 * group, rel=1e-12)
        assert made["Salary"][row] == pytest.approx(salary * np.exp(0.2 * group), rel=1e-12)


def test_the_posterior_mean_is_that_of_a_fine_grid() -> None:
    facts = people(25)
    found = LATENT.with_parameters(TRUTH).posterior(facts.columns)
    names = ("Grade", "Salary", "Prizes", "Group", "Age")
    expected = [_posterior_mean(*row) for row in zip(*map(facts.numbers, names), strict=True)]
    np.testing.assert_allclose(found.mean, expected, atol=1e-7)


def test_the_expectation_is_that_of_the_families() -> None:
    facts = people(25)
    fitted = EXPECTED.with_parameters(TRUTH)
    made = counterfactuals(fitted, facts, group=0.0)
    skill, age = fitted.posterior(facts.columns).mean, facts.numbers("Age")
    np.testing.assert_allclose(made["Grade"], 3.0 + 0.5 * skill, rtol=1e-12)
    mean = stats.lognorm.mean(0.4, scale=np.exp(1.0 + 0.01 * age + 0.3 * skill))
    np.testing.assert_allclose(made["Salary"], mean, rtol=1e-12)
    np.testing.assert_allclose(made["Prizes"], np.exp(1.2 + 0.6 * skill), rtol=1e-12)


@pytest.mark.parametrize("group", [0.0, 1.0])
def test_nobody_moves_whose_causes_do_not(group: float) -> None:
    facts = people()
    fitted = Worldview({}, latents=[LATENT]).fit(facts)
    made = fitted.counterfactuals(facts, do={"Group": group}, draws=3, rng=np.random.default_rng(1))
    stays = facts.numbers("Group") == group
    assert made.moved == ("Grade", "Salary", "Prizes")
    for world in (made.population, *made.draws):
        for name in made.moved:
            kept = world.numbers(name)[stays]
            assert kept.tobytes() == facts.numbers(name)[stays].tobytes()
            assert (world.numbers(name)[~stays] != facts.numbers(name)[~stays]).any()


def test_draws_have_the_distribution_of_the_true_counterfactuals() -> None:
    facts = people(4000)
    fitted = LATENT.with_parameters(TRUTH)
    rng = np.random.default_rng(3)
    protected = facts.numbers("Group") == 1.0
    true = facts.numbers("PrizesInGroup0")[protected]
    drawn = counterfactuals(fitted, facts, group=0.0, rng=rng)["Prizes"][protected]
    highest = 15
    observed = np.array([np.bincount(np.minimum(x, highest).astype(int)) for x in (true, drawn)])
    assert stats.chi2_contingency(observed).pvalue > 0.01
    # and jointly with the facts: what a draw gains over the fact is as large on average
    facts_of = facts.numbers("Prizes")[protected]
    gains = np.array([true - facts_of, drawn - facts_of])
    difference = gains[0] - gains[1]
    assert abs(difference.mean()) < 3.0 * difference.std() / np.sqrt(len(difference))


def test_draws_of_the_hidden_cause_are_its_posterior() -> None:
    facts = people(4000)
    fitted = LATENT.with_parameters(TRUTH)
    found = fitted.posterior(facts.columns)
    drawn = fitted.draw(facts.columns, np.random.default_rng(4))
    standard = (drawn - found.mean) / found.deviation
    assert abs(standard.mean()) < 0.05
    assert standard.std() == pytest.approx(1.0, abs=0.04)
    # everybody's posteriors together are the prior, if the parameters are the true ones
    assert stats.kstest(drawn, "norm").pvalue > 0.01


def test_an_attribute_may_be_a_cause_of_another_under_the_same_hidden_cause() -> None:
    facts = people(300)
    latent = Latent("Skill", {"Grade": Linear("Group"), "Prizes": Count("Group", "Grade")})
    fitted = Worldview({}, latents=[latent]).fit(facts)
    made = fitted.counterfactuals(facts, do={"Group": 0.0})
    assert made.moved == ("Grade", "Prizes")
    # what Prizes is told of Grade is its counterfactual
    noise = fitted.latents[0].abduct(facts.columns)["Prizes"]
    causes = {name: made.population.columns[name] for name in ("Group", "Grade")}
    expected = fitted.equations["Prizes"].predict(causes, noise).values
    assert made.population.numbers("Prizes").tolist() == expected.tolist()
    # and with Grade held where it is, Prizes moves by less or not at all
    held = Worldview({}, latents=[latent], resolving=["Grade"])
    kept = held.counterfactuals(facts, do={"Group": 0.0})
    assert kept.held == ("Grade",)
    assert kept.population.numbers("Grade").tolist() == facts.numbers("Grade").tolist()


def test_assumptions_are_labelled() -> None:
    assert Worldview({}, latents=[LATENT]).couplings == {
        "Prizes": "latent U with monotone coupling"
    }
    expectation = "latent U, expectation only (Kusner et al. 2017)"
    assert Worldview({}, latents=[EXPECTED]).couplings == dict.fromkeys(EQUATIONS, expectation)
    made = Worldview({}, latents=[EXPECTED]).counterfactuals(people(100), do={"Age": 30.0})
    assert made.couplings == {"Salary": expectation}


def test_it_shows_the_call_that_makes_it_and_compares_by_value() -> None:
    for latent in (LATENT, EXPECTED):
        again = eval(repr(latent))  # noqa: S307 - our own text
        assert again == latent
        assert hash(again) == hash(latent)
    assert LATENT != EXPECTED
    assert "residual_noise" not in repr(LATENT)
    worldview = Worldview({"Age": Linear("Group")}, latents=[EXPECTED])
    assert eval(repr(worldview)) == worldview  # noqa: S307


@pytest.mark.parametrize(
    ("name", "equations", "message"),
    [
        ("Skill", {"Grade": Linear("Group")}, "drives 1 attributes. With fewer than two"),
        ("Skill", [("Grade", Linear("Group"))], "was given list. Give a dict"),
        ("Group", {"Grade": Linear("Group"), "Prizes": Count()}, "'Group' is also named"),
        ("Grade", {"Grade": Linear("Group"), "Prizes": Count()}, "'Grade' is also named"),
        (
            "Skill",
            {"Grade": Linear("Group"), "Rank": Ordinal("Group")},
            r"'Rank': a hidden cause cannot drive what is given here \(Ordinal\). It drives Linear",
        ),
        ("Skill", {"Grade": Linear, "Prizes": Count("Group")}, r"'Grade': .*\(Linear\)"),
        (
            "Skill",
            {"Grade": Linear("Group", "Age", interactions=True), "Prizes": Count()},
            "'Grade': interactions=True is not available",
        ),
    ],
)
def test_what_is_no_hidden_cause_is_refused(name: str, equations: Any, message: str) -> None:
    with pytest.raises(WorldviewError, match=message):
        Latent(name, equations)
