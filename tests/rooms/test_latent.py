"""Hidden common causes: counterfactuals by hand, fits against the truth, integrals the slow way."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import integrate, stats

from mutandis.data.columns import Categories, Numbers
from mutandis.data.population import Population
from mutandis.errors import EquationError, MutandisWarning, WorldviewError
from mutandis.rooms.latent import FittedLatent, Latent, standard_attributes
from mutandis.rooms.latent.fit import (
    Driven,
    Evidence,
    NormalEvidence,
    PoissonEvidence,
    draw,
    log_posterior,
    moments,
)
from mutandis.scm import Count, Linear, Ordinal, Worldview
from mutandis.scm.predictor import LinearPredictor, Term
from tests.oracle import newton_step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


Columns = dict[str, Numbers | Categories]

THREE = Latent(
    "Skill", {"Maths": Linear("Group"), "Music": Linear("Group"), "Prizes": Count("Group")}
)
TWO = Latent("Skill", {"Maths": Linear("Group"), "Music": Linear("Group")})
TRUE_LOADINGS = {"Maths": 0.8, "Music": 2.0, "Prizes": 0.4}


def school(rows: int, *, seed: int = 1) -> Columns:
    """Simulate people whose skill is known to nobody."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, size=rows).astype(float)
    skill = rng.normal(size=rows)
    return {
        "Group": Numbers(group),
        "Maths": Numbers(1.0 + 0.5 * group + 0.8 * skill + 0.6 * rng.normal(size=rows)),
        "Music": Numbers(5.0 - 1.0 * group + 2.0 * skill + 3.0 * rng.normal(size=rows)),
        "Prizes": Numbers(rng.poisson(np.exp(1.0 + 0.3 * group + 0.4 * skill)).astype(float)),
    }


def loadings(fitted: FittedLatent) -> dict[str, float]:
    return {child: driven.loading for child, driven in fitted.parameters.items()}


def numbers(columns: Mapping[str, Numbers | Categories], name: str) -> NDArray[np.float64]:
    column = columns[name]
    assert isinstance(column, Numbers)
    return column.values


def test_the_mode_is_that_of_the_normal_likelihood_by_hand() -> None:
    columns = school(300)
    group, maths, music = (numbers(columns, name) for name in ("Group", "Maths", "Music"))

    def standard(values: NDArray[np.float64]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = (values - values.mean()) / values.std()
        return found

    cause, seen = standard(group), np.column_stack([standard(maths), standard(music)])

    def log_posterior(parameters: NDArray[np.float64]) -> float:
        intercepts, slopes = parameters[0:2], parameters[2:4]
        loading, deviation = np.abs(parameters[4:6]), np.exp(parameters[6:8])
        covariance = np.outer(loading, loading) + np.diag(deviation**2)
        means = intercepts + np.outer(cause, slopes)
        likelihood = stats.multivariate_normal(np.zeros(2), covariance).logpdf(seen - means).sum()
        prior = (
            stats.norm.logpdf(parameters[0:4]).sum()
            + stats.halfnorm(scale=0.5).logpdf(loading).sum()
            + stats.rayleigh.logpdf(deviation).sum()
        )
        return float(likelihood + prior)

    fitted = TWO.fit(columns).parameters
    found = []
    for child, values in (("Maths", maths), ("Music", music)):
        driven = fitted[child]
        (slope,) = driven.predictor.terms[0].coefficients.values()
        at_zero = driven.predictor.intercept + slope * group.mean()
        found.append(
            [
                (at_zero - values.mean()) / values.std(),
                slope * group.std() / values.std(),
                driven.loading / values.std(),
                np.log(driven.deviation / values.std()),
            ]
        )
    # derivatives by differences: nothing that the fit itself relies on
    assert np.abs(newton_step(log_posterior, np.ravel(found, order="F"))).max() < 1e-4


def test_the_gradient_is_that_of_the_posterior() -> None:
    attributes, counts = standard_attributes(THREE, school(60))
    parts = list(attributes.values())
    at = np.concatenate([part.start() for part in parts]) + 0.05
    _, gradient = log_posterior(parts, counts, at)
    step = 1e-5
    numeric = [
        (
            log_posterior(parts, counts, at + step * unit)[0]
            - log_posterior(parts, counts, at - step * unit)[0]
        )
        / (2 * step)
        for unit in np.eye(len(at))
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


def test_of_two_normal_attributes_only_the_product_of_loadings_is_known() -> None:
    columns = school(8000)
    group = numbers(columns, "Group")
    rest = {}
    for name in ("Maths", "Music"):
        values = numbers(columns, name)
        rest[name] = (
            values - np.array([values[group == g].mean() for g in (0, 1)])[group.astype(int)]
        )
    covariance = float((rest["Maths"] * rest["Music"]).mean())
    found = loadings(TWO.fit(columns))
    assert found["Maths"] * found["Music"] == pytest.approx(covariance, rel=2e-3)
    # what the data leave open the priors decide: equal loadings in standard units
    standard = [found[name] / numbers(columns, name).std() for name in ("Maths", "Music")]
    assert standard[0] == pytest.approx(standard[1], rel=0.05)


def test_an_attribute_that_falls_as_the_other_rises_has_no_loading() -> None:
    columns = school(2000)
    columns["Music"] = Numbers(-numbers(columns, "Music"))
    with pytest.warns(MutandisWarning, match=r"'Skill' has no effect on '(Maths|Music)'"):
        found = loadings(TWO.fit(columns))
    assert min(found.values()) == 0.0
    assert max(found.values()) >= 0.0


def test_a_count_that_varies_less_than_poisson_makes_the_cause_a_disguise() -> None:
    rng = np.random.default_rng(3)
    skill = rng.normal(size=3000)
    columns: Columns = {
        "Maths": Numbers(skill + 0.5 * rng.normal(size=3000)),
        "Points": Numbers(np.round(40 + 3 * skill + rng.normal(size=3000))),
    }
    latent = Latent("Skill", {"Maths": Linear(), "Points": Count()})
    with pytest.warns(MutandisWarning, match=r"'Skill' is all but 'Maths' itself: it makes up 99"):
        latent.fit(columns)


def test_nominal_causes_are_told_by_their_values() -> None:
    columns = school(600)
    codes = numbers(columns, "Group").astype(np.int32)
    named: Columns = {**columns, "Group": Categories(codes, ("a", "b"))}
    by_number, by_name = THREE.fit(columns), THREE.fit(named)
    shifts = by_name.parameters["Maths"].predictor.terms[0].effects
    (slope,) = by_number.parameters["Maths"].predictor.terms[0].coefficients.values()
    assert shifts == pytest.approx({("a",): 0.0, ("b",): slope}, rel=1e-9)
    other: Columns = {**columns, "Group": Categories(1 - codes, ("b", "a"))}
    assert by_name.posterior(other).mean.tolist() == by_name.posterior(named).mean.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Music": Numbers(np.ones(50))}, "'Music': the attribute has the same value in every row"),
        ({"Prizes": Numbers(np.full(50, 0.5))}, "'Prizes': it explains counts, but 50 of 50"),
        ({"Group": Numbers(np.ones(50))}, "does not vary"),
        ({"Maths": Categories(np.arange(50, dtype=np.int32) % 2, ("x", "y"))}, "holds names"),
    ],
)
def test_columns_that_cannot_be_fitted_are_named(change: Columns, message: str) -> None:
    with pytest.raises(EquationError, match=message):
        THREE.fit({**school(50), **change})


# (x, η, w, σ) of a normal attribute and (x, η, w) of a count: ordinary rows, rows far out, a count
# of 0 (whose posterior is skewed), a count in the hundreds, and a noise so small that the
# posterior of U is a needle
ROWS = [
    ((0.3, 0.1, 0.7, 0.6), (4.0, 1.2, 0.4)),
    ((-4.0, 0.0, 0.7, 0.6), (0.0, 1.5, 0.9)),
    ((3.0, -1.0, 0.2, 1.5), (30.0, 1.0, 0.8)),
    ((0.5, 0.0, 0.9, 0.02), (37.0, 3.6, 0.03)),
    ((1.0, 0.5, 0.0, 1.0), (600.0, 6.0, 0.5)),
    ((-1.0, 0.2, 0.5, 0.8), (1.0, -3.0, 1.2)),
]


def _evidence(rows: list[tuple[tuple[float, ...], tuple[float, ...]]]) -> list[list[Evidence]]:
    return [
        [
            NormalEvidence(
                response=np.array([normal[0]]),
                predictor=np.array([normal[1]]),
                loading=normal[2],
                deviation=normal[3],
            ),
            PoissonEvidence(
                response=np.array([count[0]]), predictor=np.array([count[1]]), loading=count[2]
            ),
        ]
        for normal, count in rows
    ]


def _joint(normal: tuple[float, ...], count: tuple[float, ...]) -> Callable[[float], float]:
    """Return p(x1, x2, u), written down once more, in plain Python."""
    x, eta, loading, sigma = normal
    number, log_rate, count_loading = count

    def density(u: float) -> float:
        log_mean = log_rate + count_loading * u
        return math.exp(
            -0.5 * u * u
            - 0.5 * ((x - eta - loading * u) / sigma) ** 2
            - math.log(2.0 * math.pi * sigma)
            + number * log_mean
            - math.exp(log_mean)
            - math.lgamma(number + 1.0)
        )

    return density


def _integral(density: Callable[[float], float], *, top: float, high: float = 12.0) -> float:
    """Integrate a density that may be a needle, piece by piece around its top."""
    steps = (-3, -1, -0.3, -0.1, 0, 0.1, 0.3, 1, 3)
    cuts = [-12.0, *(cut for step in steps if -12.0 < (cut := top + step) < high), high]
    pieces = [
        integrate.quad(density, one, other, epsabs=0.0, epsrel=1e-10, limit=200)[0]
        for one, other in itertools.pairwise(cuts)
        if density(0.5 * (one + other)) > 0.0
    ]
    return float(sum(pieces))


@pytest.mark.parametrize("row", ROWS)
def test_the_marginal_likelihood_is_the_integral(
    row: tuple[tuple[float, ...], tuple[float, ...]],
) -> None:
    (evidence,) = _evidence([row])
    found = moments(evidence)
    expected = _integral(_joint(*row), top=float(found.mean[0]))
    assert found.log_marginal[0] == pytest.approx(np.log(expected), abs=1e-6)


@pytest.mark.parametrize("row", ROWS)
def test_posterior_mean_and_deviation_are_the_integrals(
    row: tuple[tuple[float, ...], tuple[float, ...]],
) -> None:
    (evidence,) = _evidence([row])
    found = moments(evidence)
    density = _joint(*row)
    top = float(found.mean[0])
    total = _integral(density, top=top)
    # from a place that is not the mean, so that no integral is 0
    mean = _integral(lambda u: (u + 20.0) * density(u), top=top) / total - 20.0
    variance = _integral(lambda u: (u - mean) ** 2 * density(u), top=top) / total
    assert found.mean[0] == pytest.approx(mean, abs=1e-6)
    assert found.deviation[0] == pytest.approx(variance**0.5, abs=1e-5)


def test_without_counts_the_marginal_is_a_multivariate_normal() -> None:
    loadings, deviations = np.array([0.8, 0.5, 1.1]), np.array([0.4, 0.9, 0.01])
    rng = np.random.default_rng(1)
    seen = rng.normal(size=(50, 3))
    evidence = [
        NormalEvidence(
            response=seen[:, place].copy(),
            predictor=np.full(50, 0.1 * place),
            loading=float(loadings[place]),
            deviation=float(deviations[place]),
        )
        for place in range(3)
    ]
    covariance = np.outer(loadings, loadings) + np.diag(deviations**2)
    expected = stats.multivariate_normal([0.0, 0.1, 0.2], covariance).logpdf(seen)
    np.testing.assert_allclose(moments(evidence).log_marginal, expected, rtol=1e-9)


def test_scores_are_the_derivatives_of_the_marginal() -> None:
    step = 1e-5

    def log_marginal(eta: float, loading: float, log_sigma: float, log_rate: float) -> float:
        row = ((0.3, eta, loading, float(np.exp(log_sigma))), (4.0, log_rate, 0.4))
        return float(moments(_evidence([row])[0]).log_marginal[0])

    at = np.array([0.1, 0.7, np.log(0.6), 1.2])
    numeric = [
        (log_marginal(*(at + step * unit)) - log_marginal(*(at - step * unit))) / (2 * step)
        for unit in np.eye(4)
    ]
    normal, count = moments(_evidence([ROWS[0]])[0]).scores
    exact = [*normal, count[0]]
    np.testing.assert_allclose(np.concatenate(exact), numeric, atol=1e-8)


@pytest.mark.parametrize("row", ROWS)
def test_draws_are_the_quantiles_of_the_posterior(
    row: tuple[tuple[float, ...], tuple[float, ...]],
) -> None:
    (evidence,) = _evidence([row])
    found = moments(evidence)
    uniforms = np.array([0.01, 0.2, 0.5, 0.8, 0.99])
    drawn = draw(evidence, found, np.zeros(5, dtype=np.intp), uniforms)
    density, top = _joint(*row), float(found.mean[0])
    total = _integral(density, top=top)
    reached = [_integral(density, top=top, high=float(at)) / total for at in drawn]
    # the grid's steps are a sixteenth of the standard deviation, and between them it is linear
    np.testing.assert_allclose(reached, uniforms, atol=5e-4)


def test_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    rng = np.random.default_rng(2)
    rows = 9000  # more than one block
    counts = rng.poisson(5.0, size=rows).astype(float)
    predictor = rng.normal(size=rows)

    def evidence(chosen: slice) -> list[Evidence]:
        return [PoissonEvidence(response=counts[chosen], predictor=predictor[chosen], loading=0.7)]

    everybody, uniforms = evidence(slice(None)), rng.random(rows)
    found = moments(everybody)
    drawn = draw(everybody, found, np.arange(rows), uniforms)
    for chosen in (slice(0, 1), slice(8190, 8195), slice(8999, 9000)):
        alone = moments(evidence(chosen))
        assert alone.mean.tolist() == found.mean[chosen].tolist()
        assert alone.log_marginal.tolist() == found.log_marginal[chosen].tolist()
        again = draw(evidence(chosen), alone, np.arange(len(alone.mean)), uniforms[chosen])
        assert again.tolist() == drawn[chosen].tolist()
