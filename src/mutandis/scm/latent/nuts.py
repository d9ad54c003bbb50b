"""The posterior of a hidden cause's parameters by NUTS, where one most probable value is too few.

The hidden cause itself is not sampled. It is integrated out by quadrature, row by row, as for the
most probable parameters, and what is left has a dozen dimensions instead of one more for every
person. With a dimension per person the sampler does not mix: docs/adr/0005-latent.md has the
numbers.

It needs NumPyro: pip install 'mutandis[latent]'.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import frozen
from mutandis.errors import PlanError, WorldviewError
from mutandis.scm.latent.fit import (
    COEFFICIENT_PRIOR,
    DEVIATION_PRIOR,
    LOADING_PRIOR,
    StandardAttribute,
    maximise,
    split,
)
from mutandis.scm.latent.latent import standard_attributes
from mutandis.scm.latent.quadrature import NODES, moments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Columns, Floats
    from mutandis.scm.latent.latent import FittedLatent, Latent


# from the mode under the most probable parameters to that under others: Newton is near already
_NEWTON_STEPS = 12
# where a loading starts that is 0 at the mode: its logarithm is what is sampled
_SMALLEST_LOADING = 1e-2


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentSample:
    """Draws from the posterior of a hidden cause's parameters."""

    latent: Latent
    attributes: Mapping[str, StandardAttribute]
    values: Floats
    """One row per draw, one column per parameter: for each attribute intercept, coefficients,
    loading and perhaps log σ, in standard units."""
    effective_sizes: Floats
    """How many independent draws the draws of each parameter are worth, in the same order."""

    def __len__(self) -> int:
        return len(self.values)

    def fitted(self, index: int) -> FittedLatent:
        """Give the hidden cause with the parameters of one draw."""
        own = split(list(self.attributes.values()), self.values[index])
        return self.latent.with_parameters(
            {
                child: attribute.driven(mine)
                for (child, attribute), mine in zip(self.attributes.items(), own, strict=True)
            }
        )


def sample_latent(
    latent: Latent,
    columns: Columns,
    *,
    draws: int = 500,
    warmup: int = 500,
    rng: np.random.Generator,
) -> LatentSample:
    if draws < 4 or warmup < 1:
        raise PlanError(
            f"draws={draws} and warmup={warmup} are too few for a sampler. "
            "Give at least 4 draws after a warm-up of some hundreds."
        )
    numpyro = _numpyro()
    import jax

    attributes, counts = standard_attributes(latent, columns)
    mode = np.concatenate(list(maximise(attributes, counts).values()))
    parts = list(attributes.values())
    places = _loading_places(parts)
    start = mode.copy()
    start[places] = np.log(np.maximum(mode[places], _SMALLEST_LOADING))
    seed = int(rng.integers(0, 2**31))
    with jax.enable_x64(True):  # noqa: FBT003 - that is how JAX spells it
        sampler = numpyro.infer.MCMC(
            numpyro.infer.NUTS(potential_fn=_potential(parts, counts, mode), dense_mass=True),
            num_warmup=warmup,
            num_samples=draws,
            progress_bar=False,
        )
        sampler.run(jax.random.key(seed), init_params=jax.numpy.asarray(start))
        sampled = np.array(sampler.get_samples(), dtype=np.float64)
        sizes = numpyro.diagnostics.effective_sample_size(sampled[np.newaxis])
    sampled[:, places] = np.exp(sampled[:, places])
    return LatentSample(
        latent=latent,
        attributes=MappingProxyType(dict(attributes)),
        values=frozen(sampled),
        effective_sizes=frozen(np.asarray(sizes, dtype=np.float64)),
    )


def _numpyro() -> Any:
    try:
        import numpyro
        import numpyro.diagnostics
        import numpyro.infer
    except ImportError as error:
        raise WorldviewError(
            "Sampling the parameters of a hidden cause needs NumPyro, which is not installed. "
            "Install it with: pip install 'mutandis[latent]'. The most probable parameters, "
            "Latent.fit, need nothing more."
        ) from error
    return numpyro


def _loading_places(attributes: Sequence[StandardAttribute]) -> NDArray[np.intp]:
    sizes = [attribute.size for attribute in attributes]
    starts = np.cumsum([0, *sizes[:-1]])
    return np.array(
        [start + one.loading_place for start, one in zip(starts, attributes, strict=True)]
    )


def _potential(
    attributes: Sequence[StandardAttribute], counts: NDArray[np.intp], mode: Floats
) -> Callable[[Any], Any]:
    """Give minus the log posterior density of the sampled parameters, as JAX differentiates it."""
    import jax.numpy as jnp
    from jax import lax
    from jax.scipy.special import logsumexp

    place, weight = np.polynomial.hermite.hermgauss(NODES)
    log_weight = np.log(weight) + place * place
    own = split(attributes, mode)
    centre = moments([part.evidence(mine) for part, mine in zip(attributes, own, strict=True)]).mean
    terms = [_terms(attribute) for attribute in attributes]
    ends = np.cumsum([attribute.size for attribute in attributes])[:-1].tolist()

    def laplace(parameters: Any) -> tuple[Any, Any]:
        # where the nodes lie does not change the integral, so no derivative goes through them
        parameters = [lax.stop_gradient(mine) for mine in parameters]

        def derivatives(hidden: Any) -> tuple[Any, Any]:
            slope, precision = -hidden, jnp.ones_like(hidden)
            for term, mine in zip(terms, parameters, strict=True):
                first, second = term.derivatives(mine, hidden)
                slope, precision = slope + first, precision + second
            return slope, precision

        def newton(_: int, hidden: Any) -> Any:
            slope, precision = derivatives(hidden)
            return hidden + jnp.clip(slope / precision, -1.0, 1.0)

        hidden = lax.fori_loop(0, _NEWTON_STEPS, newton, jnp.asarray(centre))
        return hidden, 1.0 / jnp.sqrt(derivatives(hidden)[1])

    def potential(sampled: Any) -> Any:
        parameters = jnp.split(sampled, ends)
        hidden, scale = laplace(parameters)
        nodes = hidden[:, None] + jnp.sqrt(2.0) * scale[:, None] * place
        log_mass = -0.5 * nodes * nodes + log_weight + jnp.log(scale)[:, None]
        log_prior = 0.0
        for term, mine in zip(terms, parameters, strict=True):
            log_mass = log_mass + term.log_density(mine, nodes)
            log_prior = log_prior + term.log_prior(mine)
        return -(jnp.sum(counts * logsumexp(log_mass, axis=1)) + log_prior)

    return potential


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    """What one attribute adds to the log posterior, in JAX."""

    log_density: Callable[[Any, Any], Any]
    derivatives: Callable[[Any, Any], tuple[Any, Any]]
    log_prior: Callable[[Any], Any]


def _terms(attribute: StandardAttribute) -> _Terms:
    import jax.numpy as jnp

    design = np.column_stack([np.ones_like(attribute.response), *attribute.design])
    response, place = attribute.response, attribute.loading_place
    normal = attribute.family.has_deviation

    def predictor(mine: Any) -> Any:
        return attribute.offset + jnp.sum(design * mine[:place], axis=1)

    def log_density(mine: Any, nodes: Any) -> Any:
        at = predictor(mine)[:, None] + jnp.exp(mine[place]) * nodes
        if normal:
            residual = (response[:, None] - at) * jnp.exp(-mine[-1])
            return -0.5 * residual * residual - mine[-1]
        return response[:, None] * at - jnp.exp(at)

    def derivatives(mine: Any, hidden: Any) -> tuple[Any, Any]:
        loading = jnp.exp(mine[place])
        at = predictor(mine) + loading * hidden
        if normal:
            precision = jnp.exp(-2.0 * mine[-1])
            return loading * (response - at) * precision, loading**2 * precision
        return loading * (response - jnp.exp(at)), loading**2 * jnp.exp(at)

    def log_prior(mine: Any) -> Any:
        # the logarithm of what is sampled as a logarithm: its change of variable
        value = -0.5 * jnp.sum((mine[:place] / COEFFICIENT_PRIOR) ** 2)
        value += mine[place] - 0.5 * (jnp.exp(mine[place]) / LOADING_PRIOR) ** 2
        if normal:
            value += 2.0 * mine[-1] - 0.5 * (jnp.exp(mine[-1]) / DEVIATION_PRIOR) ** 2
        return value

    return _Terms(log_density=log_density, derivatives=derivatives, log_prior=log_prior)
