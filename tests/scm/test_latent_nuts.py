"""Sampling the parameters of a hidden cause."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from mutandis.data.columns import Numbers
from mutandis.errors import PlanError, WorldviewError
from mutandis.scm import Count, Latent, Linear
from mutandis.scm.latent.fit import log_posterior, maximise
from mutandis.scm.latent.latent import standard_attributes

if TYPE_CHECKING:
    from mutandis.scm.latent.nuts import LatentSample

LATENT = Latent("Skill", {"Maths": Linear("Group"), "Prizes": Count("Group")})


def _columns(rows: int = 150) -> dict[str, Numbers]:
    rng = np.random.default_rng(1)
    group, skill = rng.integers(0, 2, size=rows).astype(float), rng.normal(size=rows)
    return {
        "Group": Numbers(group),
        "Maths": Numbers(0.5 * group + 0.8 * skill + 0.6 * rng.normal(size=rows)),
        "Prizes": Numbers(rng.poisson(np.exp(1.0 + 0.7 * skill)).astype(float)),
    }


def _sampled() -> LatentSample:
    return LATENT.sample(_columns(), draws=200, warmup=200, rng=np.random.default_rng(5))


@pytest.fixture(scope="module")
def sample() -> LatentSample:
    pytest.importorskip(
        "numpyro", reason="NumPyro is not installed: pip install 'mutandis[latent]'"
    )
    return _sampled()


def test_the_sampled_density_is_the_one_that_is_maximised() -> None:
    jax = pytest.importorskip("jax", reason="JAX is not installed: pip install 'mutandis[latent]'")
    from mutandis.scm.latent.nuts import _potential

    attributes, counts = standard_attributes(LATENT, _columns())
    parts = list(attributes.values())
    mode = np.concatenate(list(maximise(attributes, counts).values()))
    # intercept, slope, loading, log σ; intercept, slope, loading
    logarithms, loadings = [2, 3, 6], [2, 6]

    def by_hand(sampled: np.ndarray) -> tuple[float, np.ndarray]:
        """Change variables: loadings and σ are sampled as logarithms."""
        own = sampled.copy()
        own[loadings] = np.exp(sampled[loadings])
        value, gradient = log_posterior(parts, counts, own)
        gradient[loadings] *= own[loadings]
        gradient[logarithms] += 1.0
        return value + float(sampled[logarithms].sum()), gradient

    start = mode.copy()
    start[loadings] = np.log(mode[loadings])
    with jax.enable_x64(True):
        potential = _potential(parts, counts, mode)
        at = jax.jit(jax.value_and_grad(potential))
        (here, slope), (there, _) = at(start + 0.1), at(start - 0.1)
    expected, gradient = by_hand(start + 0.1)
    assert float(there - here) == pytest.approx(expected - by_hand(start - 0.1)[0], abs=1e-8)
    np.testing.assert_allclose(-np.asarray(slope), gradient, atol=1e-7)


def test_the_sample_lies_around_the_most_probable_parameters(sample: LatentSample) -> None:
    fitted = LATENT.fit(_columns()).parameters
    sampled = [sample.fitted(index).parameters for index in range(len(sample))]
    for child, found in fitted.items():
        loadings = np.array([parameters[child].loading for parameters in sampled])
        assert (loadings > 0).all()
        assert abs(loadings.mean() - found.loading) < 1.5 * loadings.std()
        assert 0.0 < loadings.std() < found.loading
    assert sample.values.shape == (200, 7)
    assert sample.effective_sizes.shape == (7,)
    # with a dimension a person this would be about 4
    assert sample.effective_sizes.min() > 20


def test_a_draw_is_a_fitted_hidden_cause(sample: LatentSample) -> None:
    columns = _columns()
    one, other = sample.fitted(0), sample.fitted(199)
    assert one.latent.name == "Skill"
    difference = one.posterior(columns).mean - other.posterior(columns).mean
    assert (difference != 0.0).all()
    assert np.abs(difference).max() < 2.0


def test_the_same_seed_gives_the_same_sample(sample: LatentSample) -> None:
    assert _sampled().values.tolist() == sample.values.tolist()


def test_too_few_draws_are_refused() -> None:
    with pytest.raises(PlanError, match="draws=1 and warmup=500 are too few"):
        LATENT.sample(_columns(40), draws=1, rng=np.random.default_rng(0))


def test_without_numpyro_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(WorldviewError, match=r"pip install 'mutandis\[latent\]'"):
        LATENT.sample(_columns(40), rng=np.random.default_rng(0))


def test_jax_is_imported_only_where_it_is_used() -> None:
    look = "import sys; from mutandis.scm import Latent; print(sorted(sys.modules))"
    loaded = subprocess.run(  # noqa: S603 - our own interpreter, a text of our own
        [sys.executable, "-c", look], capture_output=True, text=True, check=True
    ).stdout
    assert "'mutandis.scm'" in loaded
    assert "'jax'" not in loaded
