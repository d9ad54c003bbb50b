"""Fit a hidden common cause: the most probable parameters, with the hidden cause integrated out.

All parameters are in standard units while they are fitted: the columns of causes and the values of
a normal attribute have mean 0 and standard deviation 1, the intercept of a count is told from the
logarithm of its mean. In these units the priors are

- coefficients and intercepts ~ N(0, 1),
- loadings w ~ N(0, 0.5²) cut off below 0,
- standard deviations σ ~ Rayleigh(1), with density σ·exp(-σ²/2).

The last one vanishes at σ = 0. The likelihood often does not, and a mode at σ = 0 would say that U
is an observed attribute in disguise (Chung et al. 2013, *Psychometrika* 78, 685-709).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from mutandis.errors import EquationError
from mutandis.numeric.order import distinct_rows
from mutandis.rooms.latent.quadrature import Evidence, moments
from mutandis.scm.predictor import (
    LinearPredictor,
    SingleTerm,
    fit_linear_predictor,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Columns, Floats


# below this share of the standard deviation, no more can be told of σ
_SMALLEST_DEVIATION = 1e-3
_START_LOADING = 0.1


_LOADING_PRIOR = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """The parameters of a driven attribute: x ~ family(predictor + loading·U, deviation)."""

    predictor: LinearPredictor
    """What the observed causes explain, on the scale of the family."""
    loading: float
    """How much one standard deviation of U adds to that."""
    deviation: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardAttribute:
    """A driven attribute over the distinct rows, in standard units."""

    family: type[Evidence]
    response: Floats
    """The values, (x - centre) / scale in a normal family."""
    centre: float
    """In a count, the origin of the linear predictor."""
    scale: float
    design: tuple[Floats, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    terms: tuple[SingleTerm, ...]
    """Of a least squares fit: which there are, and where to start."""

    @property
    def size(self) -> int:
        """How many parameters it has: intercept, coefficients, loading, perhaps log σ."""
        return 2 + len(self.design) + self.family.has_deviation

    @property
    def loading_place(self) -> int:
        return 1 + len(self.design)

    @property
    def offset(self) -> float:
        return 0.0 if self.family.has_deviation else self.centre

    def evidence(self, parameters: Floats) -> Evidence:
        """Return the evidence about U under these parameters."""
        predictor = np.full(len(self.response), self.offset + parameters[0])
        for coefficient, column in zip(parameters[1:], self.design, strict=False):
            predictor += coefficient * column
        return self.family(
            response=self.response,
            predictor=predictor,
            loading=float(parameters[self.loading_place]),
            deviation=float(np.exp(parameters[-1])) if self.family.has_deviation else 1.0,
        )

    def driven(self, parameters: Floats) -> Driven:
        """Translate parameters back into the units of the table."""
        slopes = [
            float(coefficient) * self.scale / scale
            for coefficient, scale in zip(parameters[1:], self.scales, strict=False)
        ]
        intercept = self.centre + self.scale * float(parameters[0])
        intercept -= sum(slope * mean for slope, mean in zip(slopes, self.means, strict=True))
        remaining = iter(slopes)
        terms = tuple(term.with_coefficients(remaining) for term in self.terms)
        return Driven(
            predictor=LinearPredictor(intercept=intercept, terms=terms),
            loading=self.scale * float(parameters[self.loading_place]),
            deviation=self.scale * float(np.exp(parameters[-1]))
            if self.family.has_deviation
            else 1.0,
        )

    def start(self) -> Floats:
        """Begin at the least squares fit, with a small loading."""
        found = [coefficient for term in self.terms for coefficient in term.coefficients]
        slopes = [
            slope * scale / self.scale for slope, scale in zip(found, self.scales, strict=True)
        ]
        noise = [np.log(0.9)] if self.family.has_deviation else []
        return np.array([0.0, *slopes, _START_LOADING, *noise])

    def bounds(self) -> list[tuple[float | None, float | None]]:
        """Keep loadings at or above 0, and σ away from 0."""
        free: list[tuple[float | None, float | None]] = [(None, None)] * (1 + len(self.design))
        noise = [(float(np.log(_SMALLEST_DEVIATION)), None)] if self.family.has_deviation else []
        return [*free, (0.0, None), *noise]


def kinds_of_rows(columns: Columns) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    data = [column.data for column in columns.values()]
    return distinct_rows(np.column_stack(data).astype(np.float64))


def standardise(
    family: type[Evidence],
    response: Floats,
    causes: Columns,
    *,
    chosen: NDArray[np.intp],
    counts: NDArray[np.intp],
) -> StandardAttribute:
    normal = family.has_deviation
    # refuses causes that do not vary or say the same; of a count this is a rough start only
    rough = fit_linear_predictor(response if normal else np.log(response + 0.5), causes)
    distinct = {name: column.take(chosen) for name, column in causes.items()}
    terms = tuple(term for term in rough.terms if isinstance(term, SingleTerm))
    columns = [column for term in terms for column in term.design(distinct[term.parent])]
    spread = [_spread(column, counts) for column in columns]
    values = response[chosen]
    mean, deviation = _spread(values, counts)
    if not deviation > 0.0:
        raise EquationError(
            "the attribute has the same value in every row, so nothing can be seen to drive it. "
            "Leave it out of the hidden cause."
        )
    centre, scale = (mean, deviation) if normal else (float(np.log(mean)), 1.0)
    return StandardAttribute(
        family=family,
        response=(values - mean) / deviation if normal else values,
        centre=centre,
        scale=scale,
        design=tuple(
            (column - mean) / scale for column, (mean, scale) in zip(columns, spread, strict=True)
        ),
        means=tuple(mean for mean, _ in spread),
        scales=tuple(scale for _, scale in spread),
        terms=terms,
    )


def maximise(
    attributes: Mapping[str, StandardAttribute], counts: NDArray[np.intp]
) -> Mapping[str, Floats]:
    """Find the most probable parameters (MAP) by L-BFGS-B, with exact derivatives."""
    from scipy.optimize import minimize

    parts = list(attributes.values())
    rows = float(counts.sum())

    def objective(parameters: Floats) -> tuple[float, Floats]:
        value, gradient = log_posterior(parts, counts, parameters)
        return -value / rows, -gradient / rows

    found = minimize(
        objective,
        np.concatenate([part.start() for part in parts]),
        jac=True,
        method="L-BFGS-B",
        bounds=[bound for part in parts for bound in part.bounds()],
        options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-9},
    )
    if not np.isfinite(found.x).all() or not np.isfinite(found.fun):
        raise EquationError(
            "the hidden cause could not be fitted: the most probable parameters are not finite. "
            "Give the columns in other units, or use fewer causes."
        )
    return MappingProxyType(dict(zip(attributes, _split(parts, found.x), strict=True)))


def log_posterior(
    attributes: Sequence[StandardAttribute], counts: NDArray[np.intp], parameters: Floats
) -> tuple[float, Floats]:
    """Return the log posterior density of all parameters together, and its gradient."""
    own = _split(attributes, parameters)
    evidence = [part.evidence(mine) for part, mine in zip(attributes, own, strict=True)]
    found = moments(evidence)
    value = float(np.add.reduce(counts * found.log_marginal))
    slopes = []
    for part, (predictor, loading, log_deviation) in zip(attributes, found.scores, strict=True):
        weighted = counts * predictor
        slopes.append(np.add.reduce(weighted))
        slopes.extend(np.add.reduce(weighted * column) for column in part.design)
        slopes.append(np.add.reduce(counts * loading))
        if part.family.has_deviation:
            slopes.append(np.add.reduce(counts * log_deviation))
    priors = [_log_prior(part, mine) for part, mine in zip(attributes, own, strict=True)]
    for height, _ in priors:
        value += height
    return value, np.array(slopes) + np.concatenate([slope for _, slope in priors])


def _log_prior(attribute: StandardAttribute, parameters: Floats) -> tuple[float, Floats]:
    """Return the log prior density of the parameters, up to a constant, and its gradient."""
    place = attribute.loading_place
    slope = -parameters
    slope[place] /= _LOADING_PRIOR**2
    value = -0.5 * float(np.add.reduce(parameters[:place] ** 2))
    value -= 0.5 * float(parameters[place] / _LOADING_PRIOR) ** 2
    if attribute.family.has_deviation:
        square = float(np.exp(parameters[-1])) ** 2
        value += float(parameters[-1]) - 0.5 * square
        slope[-1] = 1.0 - square
    return value, slope


def _split(attributes: Sequence[StandardAttribute], parameters: Floats) -> list[Floats]:
    """Split one vector of parameters by attribute."""
    ends = np.cumsum([part.size for part in attributes])
    return np.split(parameters, ends[:-1])


def _spread(values: Floats, counts: NDArray[np.intp]) -> tuple[float, float]:
    rows = float(counts.sum())
    mean = float(np.add.reduce(counts * values)) / rows
    centred = values - mean
    return mean, float(np.add.reduce(counts * centred * centred) / rows) ** 0.5
