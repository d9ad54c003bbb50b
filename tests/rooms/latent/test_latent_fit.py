"""Fitting a hidden cause: against other ways to the same numbers, and against the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from mutandis.data.columns import Categories, Numbers
from mutandis.errors import EquationError, MutandisWarning
from mutandis.rooms.latent import FittedLatent, Latent, standard_attributes
from mutandis.rooms.latent.fit import log_posterior
from mutandis.scm import Count, Linear

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tests.scm.conftest import NewtonStep

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


def test_the_mode_is_that_of_the_normal_likelihood_by_hand(newton_step: NewtonStep) -> None:
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
