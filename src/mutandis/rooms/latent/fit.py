"""Fit a hidden common cause: its posterior row by row, and the most probable parameters.

*Posterior.* Given its causes, each driven attribute depends on U ~ N(0, 1) through η + w·U alone,
and its log density is concave in that. So the posterior of U has one mode and bends everywhere at
least as much as its prior: Newton's method finds the mode, and Gauss-Hermite nodes laid around it
integrate U out. Every operation is within a row.

*Parameters.* They are in standard units while they are fitted: the columns of causes and the values
of a normal attribute have mean 0 and standard deviation 1, the intercept of a count is measured
from the logarithm of its mean. In these units the priors are

- coefficients and intercepts ~ N(0, 1),
- loadings w ~ N(0, 0.5²) cut off below 0,
- standard deviations σ ~ Rayleigh(1), with density σ·exp(-σ²/2), which vanishes at σ = 0: a mode
  there would make U an observed attribute in disguise (Chung et al. 2013, *Psychometrika* 78,
  685-709).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mutandis.errors import EquationError
from mutandis.numeric.order import distinct_rows
from mutandis.scm.predictor import LinearPredictor, Term, fit_linear_predictor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from mutandis.data.columns import Columns, Floats


NODES = 31
# of the grid that draws come from: steps of a sixteenth of the posterior's standard deviation
_GRID = np.linspace(-8.0, 8.0, 257)
# rows that are worked on at once, so that a large table needs no large memory
_BLOCK = 8192
_NEWTON_STEPS = 200
_CONVERGED = 1e-10
# a logarithm beyond which a rate is of no use; it keeps a far line search finite
_LARGEST_LOG_RATE = 500.0
_LOG_ROOT_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence of one driven attribute about U: x ~ family(η + w·U, σ), row by row."""

    has_deviation: ClassVar[bool]
    response: Floats
    predictor: Floats  # η: what the observed causes explain
    loading: float  # w: how much U drives the attribute
    deviation: float = 1.0  # σ; 1 in a family that has none

    def rows(self, chosen: slice) -> Self:
        """Return some rows of it, as a column that nodes broadcast against."""
        return replace(
            self,
            response=self.response[chosen, np.newaxis],
            predictor=self.predictor[chosen, np.newaxis],
        )

    def place(self, hidden: Floats) -> Floats:
        return self.predictor + self.loading * hidden

    def log_density(self, hidden: Floats) -> Floats:
        raise NotImplementedError

    def slope(self, hidden: Floats) -> Floats:
        """Return the derivative of the log density in η."""
        raise NotImplementedError

    def curvature(self, hidden: Floats) -> Floats:
        """Return minus the second derivative of the log density in η."""
        raise NotImplementedError

    def deviation_slope(self, hidden: Floats) -> Floats:
        """Return the derivative of the log density in log σ."""
        return np.zeros_like(hidden)


class NormalEvidence(Evidence):
    __slots__ = ()
    has_deviation = True

    def log_density(self, hidden: Floats) -> Floats:
        residual = (self.response - self.place(hidden)) / self.deviation
        log_density: Floats = -0.5 * residual * residual - (
            np.log(self.deviation) + _LOG_ROOT_TWO_PI
        )
        return log_density

    def slope(self, hidden: Floats) -> Floats:
        return (self.response - self.place(hidden)) / self.deviation**2

    def curvature(self, hidden: Floats) -> Floats:
        return np.full(self.place(hidden).shape, self.deviation**-2.0)

    def deviation_slope(self, hidden: Floats) -> Floats:
        residual = (self.response - self.place(hidden)) / self.deviation
        return residual * residual - 1.0


class PoissonEvidence(Evidence):
    __slots__ = ()
    has_deviation = False

    def log_density(self, hidden: Floats) -> Floats:
        from scipy.special import gammaln

        place = self.place(hidden)
        return self.response * place - _rate(place) - gammaln(self.response + 1.0)

    def slope(self, hidden: Floats) -> Floats:
        return self.response - self.curvature(hidden)

    def curvature(self, hidden: Floats) -> Floats:
        return _rate(self.place(hidden))


def _rate(log_rate: Floats) -> Floats:
    return np.exp(np.minimum(log_rate, _LARGEST_LOG_RATE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """What quadrature gives for each row: of U given the facts, its mean and its deviation."""

    log_marginal: Floats  # log p(x1, x2, … | pa), with U integrated out
    mean: Floats
    deviation: Floats
    scores: tuple[Floats, ...]
    """Of each piece of evidence, the expected derivatives of the log density given the facts: in
    the predictor, in the loading, and in log σ, one row each. By Fisher's identity these are the
    derivatives of the log marginal likelihood itself."""

    def at(self, place: NDArray[np.intp]) -> Moments:
        return Moments(
            log_marginal=self.log_marginal[place],
            mean=self.mean[place],
            deviation=self.deviation[place],
            scores=tuple(score[:, place] for score in self.scores),
        )


def moments(evidence: Sequence[Evidence], *, nodes: int = NODES) -> Moments:
    place, weight = np.polynomial.hermite.hermgauss(nodes)
    log_weight = np.log(weight) + place * place
    blocks = [_block_moments(block, place, log_weight) for block in _blocks(evidence)]
    return Moments(
        log_marginal=np.concatenate([block.log_marginal for block in blocks]),
        mean=np.concatenate([block.mean for block in blocks]),
        deviation=np.concatenate([block.deviation for block in blocks]),
        scores=tuple(
            np.concatenate(parts, axis=1)
            for parts in zip(*(block.scores for block in blocks), strict=True)
        ),
    )


def draw(
    evidence: Sequence[Evidence], found: Moments, place: NDArray[np.intp], uniforms: Floats
) -> Floats:
    """Draw the hidden cause from posteriors, one uniform number per draw."""
    # a posterior's distribution function is summed up on a grid of eight standard deviations on
    # either side of its mean and inverted there, linearly between the grid's points
    drawn = np.empty(len(place))
    sorted_by_row = np.argsort(place, kind="stable")
    starts = range(0, len(found.mean), _BLOCK)
    ends = np.searchsorted(place[sorted_by_row], [start + _BLOCK for start in starts])
    asked = np.split(sorted_by_row, ends[:-1])
    for start, block, members in zip(starts, _blocks(evidence), asked, strict=True):
        rows = slice(start, start + _BLOCK)
        grid = found.mean[rows, np.newaxis] + found.deviation[rows, np.newaxis] * _GRID
        log_density = _log_joint(block, grid)
        density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
        cells = np.cumsum(0.5 * (density[:, 1:] + density[:, :-1]), axis=1)
        for some in np.array_split(members, 1 + len(members) // _BLOCK):
            own = place[some] - start
            drawn[some] = _inverted(grid[own], cells[own], uniforms[some])
    return drawn


def _inverted(grid: Floats, cumulated: Floats, uniforms: Floats) -> Floats:
    """Find where the distribution function, linear between grid points, reaches the uniforms."""
    wanted = uniforms * cumulated[:, -1]
    cell = np.minimum((cumulated <= wanted[:, np.newaxis]).sum(axis=1), cumulated.shape[1] - 1)
    rows = np.arange(len(cell))
    before = np.where(cell > 0, cumulated[rows, cell - 1], 0.0)
    share = (wanted - before) / (cumulated[rows, cell] - before)
    left = grid[rows, cell]
    drawn: Floats = left + share * (grid[rows, cell + 1] - left)
    return drawn


def _blocks(evidence: Sequence[Evidence]) -> Iterator[list[Evidence]]:
    for start in range(0, max(1, len(evidence[0].response)), _BLOCK):
        yield [one.rows(slice(start, start + _BLOCK)) for one in evidence]


def _block_moments(evidence: Sequence[Evidence], place: Floats, log_weight: Floats) -> Moments:
    mode, scale = _laplace(evidence)
    hidden = mode + (np.sqrt(2.0) * scale) * place
    log_mass = _log_joint(evidence, hidden) + (log_weight + np.log(np.sqrt(2.0) * scale))
    highest = log_mass.max(axis=1, keepdims=True)
    mass = np.exp(log_mass - highest)
    total = mass.sum(axis=1, keepdims=True)
    mass /= total
    mean = (mass * hidden).sum(axis=1)
    centred = hidden - mean[:, np.newaxis]
    return Moments(
        log_marginal=(highest + np.log(total))[:, 0],
        mean=mean,
        deviation=np.sqrt((mass * centred * centred).sum(axis=1)),
        scores=tuple(_score(one, hidden, mass) for one in evidence),
    )


def _score(evidence: Evidence, hidden: Floats, mass: Floats) -> Floats:
    slope = mass * evidence.slope(hidden)
    deviation = (mass * evidence.deviation_slope(hidden)).sum(axis=1)
    return np.stack([slope.sum(axis=1), (slope * hidden).sum(axis=1), deviation])


def _log_joint(evidence: Sequence[Evidence], hidden: Floats) -> Floats:
    """Return log p(x1, x2, …, U = hidden | pa)."""
    prior: Floats = -0.5 * hidden * hidden - _LOG_ROOT_TWO_PI
    return sum((one.log_density(hidden) for one in evidence), prior)


def _laplace(evidence: Sequence[Evidence]) -> tuple[Floats, Floats]:
    """Find each row's posterior mode, and the scale of the normal density that touches it there."""
    mode = np.zeros_like(evidence[0].response)
    # Newton's method believes a rate to grow on for ever; one e-fold per step is as far as it sees
    loadings = [one.loading for one in evidence if not one.has_deviation]
    furthest = 1.0 / max([1e-3, *loadings])
    for _ in range(_NEWTON_STEPS):
        gradient = sum((one.loading * one.slope(mode) for one in evidence), -mode)
        step = gradient / _precision(evidence, mode)
        # a row that has arrived is not moved again: it does not matter how long the others take
        step = np.where(np.abs(step) > _CONVERGED, np.clip(step, -furthest, furthest), 0.0)
        if not step.any():
            break
        mode = mode + step
    return mode, 1.0 / np.sqrt(_precision(evidence, mode))


def _precision(evidence: Sequence[Evidence], hidden: Floats) -> Floats:
    return sum((one.loading**2 * one.curvature(hidden) for one in evidence), np.ones_like(hidden))


# below this share of the standard deviation, no more can be told of σ
_SMALLEST_DEVIATION = 1e-3
_START_LOADING = 0.1


_LOADING_PRIOR = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """The parameters of a driven attribute: x ~ family(predictor + loading·U, deviation)."""

    predictor: LinearPredictor  # what the observed causes explain, on the scale of the family
    loading: float  # how much one standard deviation of U adds to that
    deviation: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardAttribute:
    """A driven attribute over the distinct rows, in standard units."""

    family: type[Evidence]
    response: Floats  # the values, (x - centre) / scale in a normal family
    centre: float  # in a count, the origin of the linear predictor
    scale: float
    design: tuple[Floats, ...]
    means: tuple[float, ...]
    scales: tuple[float, ...]
    terms: tuple[Term, ...]  # of a least squares fit: which there are, and where to start

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
        found = [coefficient for term in self.terms for coefficient in term.coefficients.values()]
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
    terms = rough.terms
    columns = [column for term in terms for column in term.design(distinct[term.parents[0]])]
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
