"""Hidden common causes: one unobserved U behind several attributes.

This is the Level 2 model of Kusner et al. 2017 ("Counterfactual fairness", *NIPS* 30): U ~ N(0, 1)
has a posterior given the attributes of a person.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mutandis.data.columns import frozen
from mutandis.errors import EquationError, MutandisWarning, WorldviewError
from mutandis.rooms.latent.fit import (
    Driven,
    NormalEvidence,
    PoissonEvidence,
    draw,
    kinds_of_rows,
    maximise,
    moments,
    standardise,
)
from mutandis.scm.additive import FittedLinear, Linear, finish, linked
from mutandis.scm.count import Count, FittedCount, abduct_counts, predict_counts, require_counts
from mutandis.scm.family import (
    MONOTONE,
    NOT_GIVEN,
    Declaration,
    Fitted,
    Leftover,
    MonotoneNoise,
    Predicted,
    naming,
    numbers_of,
    of_ranks,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mutandis.data.columns import Column, Columns, Floats
    from mutandis.rooms.latent.fit import Evidence, Moments, StandardAttribute
    from mutandis.scm.family import Rng


# Of an attribute's own variance, the share that U may make up before U is that attribute.
_DISGUISED = 0.99


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Latent(Declaration):
    """A hidden common cause U ~ N(0, 1) of several attributes, added to the observed ones.

    Given its causes pa, each attribute follows the family of its equation:

    - `Linear(*pa)`: X ~ N(b + β·pa + w·U, σ²),
    - `Linear(*pa, link="log")`: log X ~ N(b + β·pa + w·U, σ²),
    - `Count(*pa)`: X ~ Poisson(exp(b + β·pa + w·U)).

    Parameters
    ----------
    name
        The name of the hidden cause. It is neither a column nor a parent in the equations.
    equations
        The equation of each attribute it drives, two or more, with the observed causes only.
    residual_noise
        Whether each attribute also keeps its own noise, given U, in the counterfactual world.
        Then a row whose causes stay is not moved. Without it an attribute is replaced by its
        expectation given its causes and U, as Kusner et al. did it, which moves every row.

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
    changes nothing. It matters for counts only, and for everything if `residual_noise=False`.

    Examples
    --------
    >>> from mutandis.scm import Linear
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
                f"The hidden cause {name!r} is also named as an attribute or as a parent. It is "
                "not a column, and drives all attributes given here without being named: leave it "
                "out of the equations, or call it something else."
            )
        self._set(
            name=name,
            equations=MappingProxyType(dict(equations)),
            residual_noise=bool(residual_noise),
        )

    def __hash__(self) -> int:
        return hash((self.name, frozenset(self.equations.items()), self.residual_noise))

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that the hidden cause is learnt from: the attributes and their causes."""
        parents = (parent for equation in self.equations.values() for parent in equation.parents)
        return tuple(dict.fromkeys([*self.equations, *parents]))

    @property
    def couplings(self) -> Mapping[str, str]:
        """The attributes whose counterfactuals rest on an assumption about U, with its name."""
        if not self.residual_noise:
            return dict.fromkeys(self.equations, EXPECTATION_ONLY)
        # the residual of an additive equation is determined by the facts, whatever U is
        counts = (child for child, own in self.equations.items() if isinstance(own, Count))
        return dict.fromkeys(counts, LATENT_MONOTONE)

    def fit(self, columns: Columns) -> FittedLatent:
        """Find the most probable parameters, given factual columns."""
        attributes, counts = standard_attributes(self, columns)
        with naming(f"{self.name} (hidden)"):
            found = maximise(attributes, counts)
        _warn(self.name, attributes, found)
        return self.with_parameters(
            {child: attributes[child].driven(own) for child, own in found.items()}
        )

    def with_parameters(self, parameters: Mapping[str, Driven]) -> FittedLatent:
        """Make a fitted hidden cause from the parameters of each attribute that it drives."""
        equations = {
            child: _given_hidden(equation, parameters[child], residual_noise=self.residual_noise)
            for child, equation in self.equations.items()
        }
        return FittedLatent(
            latent=self,
            parameters=MappingProxyType(dict(parameters)),
            equations=MappingProxyType(equations),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLatent:
    """A hidden common cause whose parameters are known."""

    latent: Latent
    parameters: Mapping[str, Driven]
    equations: Mapping[str, Fitted[Any]]  # the equation of each attribute given U

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that it is learned from."""
        return self.latent.names

    def posterior(self, columns: Columns) -> Moments:
        """Return the posterior mean and standard deviation of U given each row's facts."""
        evidence, kinds = self._evidence(columns)
        return moments(evidence).at(kinds)

    def draw(self, columns: Columns, rng: np.random.Generator) -> Floats:
        """Draw U from each row's posterior."""
        evidence, kinds = self._evidence(columns)
        return draw(evidence, moments(evidence), kinds, rng.random(len(kinds)))

    def abduct(self, columns: Columns, *, rng: Rng = None) -> Mapping[str, Any]:
        """Abduct U (its mean, or with `rng` a draw), and given U the noise of what it drives."""
        hidden = frozen(self.posterior(columns).mean if rng is None else self.draw(columns, rng))
        noise = {}
        for child, equation in self.latent.equations.items():
            causes = {name: columns[name] for name in equation.parents}
            with naming(child):
                own = self.equations[child]
                noise[child] = (
                    own.abduct_given(columns[child], causes, hidden=hidden, rng=rng)
                    if isinstance(own, GivenHidden)
                    else own.abduct(columns[child], causes, rng=rng)
                )
        return MappingProxyType(noise)

    def _evidence(self, columns: Columns) -> tuple[list[Evidence], NDArray[np.intp]]:
        """Return the evidence about U of each distinct row, and the distinct row of each row."""
        chosen, kinds = kinds_of_rows({name: columns[name] for name in self.latent.names})
        evidence = []
        for child, equation in self.latent.equations.items():
            causes = {name: columns[name].take(chosen) for name in equation.parents}
            driven = self.parameters[child]
            with naming(child):
                evidence.append(
                    family_of(equation)(
                        response=_response(equation, columns[child].take(chosen)),
                        predictor=driven.predictor.at(causes, rows=len(chosen)),
                        loading=driven.loading,
                        deviation=driven.deviation,
                    )
                )
        return evidence, kinds


def standard_attributes(
    latent: Latent, columns: Columns
) -> tuple[Mapping[str, StandardAttribute], NDArray[np.intp]]:
    """Bring the driven attributes into standard units, over the distinct rows; count these."""
    chosen, kinds = kinds_of_rows({name: columns[name] for name in latent.names})
    counts = np.bincount(kinds)
    attributes = {}
    for child, equation in latent.equations.items():
        with naming(child):
            attributes[child] = standardise(
                family_of(equation),
                _response(equation, columns[child]),
                {name: columns[name] for name in equation.parents},
                chosen=chosen,
                counts=counts,
            )
    return MappingProxyType(attributes), counts


def _warn(
    name: str, attributes: Mapping[str, StandardAttribute], parameters: Mapping[str, Floats]
) -> None:
    """Warn where the data make something else of the hidden cause than was declared."""
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


LATENT_MONOTONE = f"latent U with {MONOTONE}"
EXPECTATION_ONLY = "latent U, expectation only (Kusner et al. 2017)"
"""The names of the assumptions, as results are labelled with them."""

DrivenEquation = Linear | Count
"""What a hidden cause can drive."""


def family_of(equation: object) -> type[Evidence]:
    """Return the distribution of an equation under a hidden cause, or refuse one that has none."""
    if isinstance(equation, Linear):
        if equation.interactions:
            raise EquationError(
                "interactions=True is not available under a hidden cause. Leave interactions out, "
                "or add the product of two causes to the table and name it as a cause."
            )
        return NormalEvidence
    if isinstance(equation, Count):
        return PoissonEvidence
    shown = equation.__name__ if isinstance(equation, type) else type(equation).__name__
    raise EquationError(
        f"a hidden cause cannot drive what is given here ({shown}). It drives Linear(...), "
        "Linear(..., link='log') and Count(...): use one of these, or take the attribute out of "
        "the hidden cause and give it an equation of its own."
    )


def _response(equation: DrivenEquation, child: Column) -> Floats:
    values = numbers_of(child)
    if isinstance(equation, Linear):
        return linked(values, equation.link)
    require_counts(values)
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenCount(MonotoneNoise):
    """The rank of a count among rows with the same causes and the same U, and that U."""

    hidden: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenHidden(Fitted[Any]):
    """An attribute given its causes and U."""

    # A count is coupled by its rank among rows with the same causes and U. Without residual noise,
    # the noise is U itself. An additive equation that keeps its residual needs none of this.

    fitted: FittedLinear | FittedCount
    driven: Driven
    residual_noise: bool

    def explained(self, parents: Columns, hidden: Floats) -> Floats:
        return self.fitted.explained(parents, rows=len(hidden)) + self.driven.loading * hidden

    def abduct(
        self,
        child: Column,  # noqa: ARG002 - as every equation has it
        parents: Columns,  # noqa: ARG002
        *,
        rng: Rng = None,  # noqa: ARG002
    ) -> NoReturn:
        """Refuse: U is abducted from all the attributes that it drives, together."""
        raise EquationError(
            "its noise depends on a hidden cause, which is abducted from all the attributes that "
            "it drives. Use abduct() of the fitted hidden cause, with all its columns."
        )

    def abduct_given(
        self, child: Column, parents: Columns, *, hidden: Floats, rng: Rng
    ) -> HiddenCount | Floats:
        if not self.residual_noise:
            return hidden
        rank = abduct_counts(numbers_of(child), self.explained(parents, hidden), rng=rng)
        kept = {field.name: getattr(rank, field.name) for field in fields(rank)}
        return HiddenCount(**kept, hidden=hidden)

    def predict(self, parents: Columns, noise: HiddenCount | Floats) -> Predicted:
        if isinstance(noise, HiddenCount):
            counts = predict_counts(self.explained(parents, noise.hidden), noise)
            return finish(counts, bounds=self.fitted.bounds)
        place = self.explained(parents, noise)
        with np.errstate(over="ignore"):
            if isinstance(self.fitted, FittedCount):
                return finish(np.exp(place), bounds=self.fitted.bounds)
            if self.fitted.link == "log":
                # the mean of a lognormal distribution lies above its median
                place = np.exp(place + 0.5 * self.driven.deviation**2)
        return self.fitted.finished(place)

    def leftover(
        self,
        child: Column,  # noqa: ARG002
        parents: Columns,  # noqa: ARG002
        noise: HiddenCount | Floats,
    ) -> Leftover:
        found = of_ranks(noise, fit=None) if isinstance(noise, HiddenCount) else None
        return replace(found or Leftover(reason=NOT_GIVEN), measure="not available")


def _given_hidden(equation: DrivenEquation, driven: Driven, *, residual_noise: bool) -> Fitted[Any]:
    fitted: FittedLinear | FittedCount
    if isinstance(equation, Linear):
        fitted = FittedLinear(predictor=driven.predictor, **equation.output)
        if residual_noise:
            return fitted
    else:
        fitted = FittedCount(predictor=driven.predictor, bounds=equation.bounds)
    return GivenHidden(fitted=fitted, driven=driven, residual_noise=residual_noise)
