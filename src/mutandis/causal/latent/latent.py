"""Hidden common causes: one unobserved U behind several attributes.

This is the Level 2 model of Kusner et al. 2017 ("Counterfactual fairness", *NIPS* 30), the way of
abduction that the paper calls Bayesian: U ~ N(0, 1) has a posterior given what is observed of a
person, instead of being what an equation leaves over.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.causal.equations.equation import naming
from mutandis.causal.latent.equations import (
    DrivenEquation,
    conditional_equation,
    coupling_under,
    family_of,
    noise_given,
    response_of,
)
from mutandis.causal.latent.fit import Driven, kinds_of_rows, maximise, standardise
from mutandis.causal.latent.quadrature import Evidence, Moments, draw, moments
from mutandis.data.columns import frozen
from mutandis.errors import MutandisWarning, WorldviewError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.causal.equations.equation import FittedEquation
    from mutandis.causal.latent.fit import StandardAttribute
    from mutandis.data.columns import Column

__all__ = ["FittedLatent", "Latent", "standard_attributes"]

# Of an attribute's own variance, the share that U may make up before U is that attribute.
_DISGUISED = 0.99


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Latent:
    """A hidden common cause U ~ N(0, 1) of several attributes, beside their observed causes.

    Given its causes pa, each attribute follows the family of its equation:

    - `Linear(*pa)`: X ~ N(b + β·pa + w·U, σ²),
    - `Linear(*pa, link="log")`: log X ~ N(b + β·pa + w·U, σ²),
    - `Count(*pa)`: X ~ Poisson(exp(b + β·pa + w·U)).

    Parameters
    ----------
    name
        What the hidden cause is called. It is no column, and no parent in the equations.
    equations
        The equation of each attribute it drives, two or more, with the observed causes only.
    residual_noise
        Whether each attribute also keeps its own noise, given U, in the counterfactual world.
        Then nobody moves whose causes do not. Without it an attribute is replaced by its
        expectation given its causes and U, as Kusner et al. did it, which moves everybody.

    Notes
    -----
    *Fit.* U is integrated out by Gauss-Hermite quadrature around each distinct row's posterior
    mode, and the posterior density of the other parameters is maximised. With causes and normal
    attributes in standard units, the priors are N(0, 1) for coefficients and intercepts, half of
    N(0, 0.5²) for loadings and Rayleigh(1) for σ.

    *Identification.* Loadings are positive: U and -U are the same model, so an attribute that
    falls as U rises must be turned round. With two normal attributes the data tell the product of
    the loadings only, through the correlation; a count tells of its own loading through its
    overdispersion. What the data do not tell, the priors decide.

    *Abduction.* The posterior of U given a person's attributes: its mean, or with a generator a
    draw. Given U, each attribute's own noise is abducted too: the residual of a normal attribute,
    the quantile of a count. In an additive equation U then cancels,
    x^CF = x + (b + β·pa' + w·U) - (b + β·pa + w·U) = x + β·(pa' - pa): whatever is believed of U
    changes nothing. It matters to counts only, and to everything if `residual_noise=False`.

    Examples
    --------
    >>> from mutandis.causal import Linear
    >>> from mutandis.data.columns import Numbers
    >>> latent = Latent("Talent", {"Maths": Linear("Age"), "Music": Linear("Age")})
    >>> latent
    Latent('Talent', {'Maths': Linear('Age'), 'Music': Linear('Age')})
    >>> rng = np.random.default_rng(1)
    >>> age, talent = rng.integers(10, 16, size=2000).astype(float), rng.normal(size=2000)
    >>> columns = {
    ...     "Age": Numbers(age),
    ...     "Maths": Numbers(2 * age + 3 * talent + 3 * rng.normal(size=2000)),
    ...     "Music": Numbers(age + talent + rng.normal(size=2000)),
    ... }
    >>> fitted = latent.fit(columns)
    >>> {child: round(driven.loading, 1) for child, driven in fitted.parameters.items()}
    {'Maths': 2.9, 'Music': 1.0}
    >>> float(np.corrcoef(fitted.posterior(columns).mean, talent)[0, 1].round(2))
    0.82
    """

    name: str
    equations: Mapping[str, DrivenEquation]
    residual_noise: bool

    def __init__(
        self, name: str, equations: Mapping[str, DrivenEquation], *, residual_noise: bool = True
    ) -> None:
        if not isinstance(equations, Mapping):
            raise WorldviewError(
                f"The hidden cause {name!r} was given {type(equations).__name__}. Give a dict of "
                "the attributes it drives: Latent('Knowledge', {'UGPA': Linear('sex'), ...})."
            )
        if len(equations) < 2:
            raise WorldviewError(
                f"The hidden cause {name!r} drives {len(equations)} attributes. With fewer than "
                "two, it cannot be told from the attribute's own noise. Name two or more, or give "
                "the attribute an equation without a hidden cause."
            )
        for child, equation in equations.items():
            with naming(child):
                family_of(equation)
        mentioned = {*equations, *(p for equation in equations.values() for p in equation.parents)}
        if name in mentioned:
            raise WorldviewError(
                f"The hidden cause {name!r} is also named as an attribute or as a parent. It is no "
                "column, and drives all attributes given here without being named: leave it out "
                "of the equations, or call it something else."
            )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "equations", MappingProxyType(dict(equations)))
        object.__setattr__(self, "residual_noise", bool(residual_noise))

    def __repr__(self) -> str:
        """Show the call that makes it."""
        settings = [repr(self.name), repr(dict(self.equations))]
        settings += [] if self.residual_noise else ["residual_noise=False"]
        return f"Latent({', '.join(settings)})"

    def __hash__(self) -> int:
        """Hash as equality compares."""
        return hash((self.name, frozenset(self.equations.items()), self.residual_noise))

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that the hidden cause is learnt from: the attributes and their causes."""
        parents = (parent for equation in self.equations.values() for parent in equation.parents)
        return tuple(dict.fromkeys([*self.equations, *parents]))

    @property
    def couplings(self) -> Mapping[str, str]:
        """The attributes whose counterfactuals rest on an assumption about U, with its name."""
        found = {
            child: coupling_under(equation, residual_noise=self.residual_noise)
            for child, equation in self.equations.items()
        }
        return {child: coupling for child, coupling in found.items() if coupling}

    def fit(self, columns: Mapping[str, Column]) -> FittedLatent:
        """Find the most probable parameters.

        Parameters
        ----------
        columns
            Factual columns, all of `names` among them.
        """
        attributes, counts = standard_attributes(self, columns)
        with naming(f"{self.name} (hidden)"):
            found = maximise(attributes, counts)
        _warn(self.name, attributes, found)
        return self.with_parameters(
            {child: attributes[child].driven(own) for child, own in found.items()}
        )

    def with_parameters(self, parameters: Mapping[str, Driven]) -> FittedLatent:
        """Make a fitted hidden cause from given parameters, rather than from a table."""
        equations = {
            child: conditional_equation(
                equation, parameters[child], residual_noise=self.residual_noise
            )
            for child, equation in self.equations.items()
        }
        return FittedLatent(
            latent=self,
            parameters=MappingProxyType(dict(parameters)),
            equations=MappingProxyType(equations),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLatent:
    """A hidden common cause whose parameters are known.

    Parameters
    ----------
    latent
        What was declared.
    parameters
        Of each attribute it drives.
    equations
        The equation of each attribute given U.
    """

    latent: Latent
    parameters: Mapping[str, Driven]
    equations: Mapping[str, FittedEquation[Any]]

    @property
    def name(self) -> str:
        """What the hidden cause is called."""
        return self.latent.name

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that abduction needs."""
        return self.latent.names

    def posterior(self, columns: Mapping[str, Column]) -> Moments:
        """Say what each row's facts tell of U: its posterior mean and standard deviation.

        Parameters
        ----------
        columns
            Factual columns, all of `names` among them.

        Returns
        -------
        Moments
            Its `log_marginal` is the log density of the row's driven attributes given their
            causes, with U integrated out (of log X for an attribute with the log link).
        """
        chosen, kinds = kinds_of_rows({name: columns[name] for name in self.names})
        return moments(self._evidence(columns, chosen)).at(kinds)

    def draw(self, columns: Mapping[str, Column], rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw U from each row's posterior."""
        chosen, kinds = kinds_of_rows({name: columns[name] for name in self.names})
        evidence = self._evidence(columns, chosen)
        return draw(evidence, moments(evidence), kinds, rng.random(len(kinds)))

    def abduct(
        self, columns: Mapping[str, Column], *, rng: np.random.Generator | None = None
    ) -> Mapping[str, Any]:
        """Abduct U, and given U the noise of each attribute it drives.

        Parameters
        ----------
        columns
            Factual columns, all of `names` among them.
        rng
            Draws U, and the noise behind a count, from their posterior; without it, U is its
            posterior mean and the noise behind a count the middle of what is possible.

        Returns
        -------
        Mapping
            The noise of each driven attribute, as its equation's `predict` takes it.
        """
        hidden = frozen(self.posterior(columns).mean if rng is None else self.draw(columns, rng))
        noise = {}
        for child, equation in self.latent.equations.items():
            causes = {name: columns[name] for name in equation.parents}
            with naming(child):
                noise[child] = noise_given(
                    self.equations[child], columns[child], causes, hidden=hidden, rng=rng
                )
        return MappingProxyType(noise)

    def _evidence(self, columns: Mapping[str, Column], rows: NDArray[np.intp]) -> list[Evidence]:
        evidence = []
        for child, equation in self.latent.equations.items():
            causes = {name: columns[name].take(rows) for name in equation.parents}
            driven = self.parameters[child]
            with naming(child):
                evidence.append(
                    Evidence(
                        family=family_of(equation),
                        response=response_of(equation, columns[child].take(rows)),
                        predictor=driven.predictor.at(causes, rows=len(rows)),
                        loading=driven.loading,
                        deviation=driven.deviation,
                    )
                )
        return evidence


def standard_attributes(
    latent: Latent, columns: Mapping[str, Column]
) -> tuple[Mapping[str, StandardAttribute], NDArray[np.intp]]:
    """Bring the driven attributes into standard units, over the distinct rows.

    Returns
    -------
    tuple
        The attributes, and how many rows each distinct row stands for.
    """
    chosen, kinds = kinds_of_rows({name: columns[name] for name in latent.names})
    counts = np.bincount(kinds)
    attributes = {}
    for child, equation in latent.equations.items():
        with naming(child):
            attributes[child] = standardise(
                family_of(equation),
                response_of(equation, columns[child]),
                {name: columns[name] for name in equation.parents},
                chosen=chosen,
                counts=counts,
            )
    return MappingProxyType(attributes), counts


def _warn(
    name: str,
    attributes: Mapping[str, StandardAttribute],
    parameters: Mapping[str, NDArray[np.float64]],
) -> None:
    """Say when the data make something else of the hidden cause than it was declared to be."""
    for child, attribute in attributes.items():
        loading = float(parameters[child][attribute.loading_place])
        noise = float(np.exp(parameters[child][-1])) if attribute.family.has_deviation else np.inf
        share = loading**2 / (loading**2 + noise**2)
        found = ""
        if loading <= 0.0:
            found = (
                f"has no effect on {child!r}: given its causes, {child!r} does not rise and fall "
                "with the other attributes. If it falls as they rise, turn its scale round; "
                "otherwise take it out of the hidden cause."
            )
        elif share > _DISGUISED:
            found = (
                f"is all but {child!r} itself: it makes up {100.0 * share:.1f} % of the variance "
                f"that the causes of {child!r} leave. The facts do not speak for a cause behind "
                "several attributes. Check the families of the others: a count that varies less "
                "than a Poisson count has this effect."
            )
        if found:
            warnings.warn(f"The hidden cause {name!r} {found}", MutandisWarning, stacklevel=3)
