"""Integrating a hidden cause out, against one-dimensional integrals done the slow way."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import integrate, stats

from mutandis.rooms.latent.fit import Evidence, NormalEvidence, PoissonEvidence, draw, moments

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """Give p(x1, x2, u), written down once more, in plain Python."""
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
