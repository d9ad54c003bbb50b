"""The posterior of a hidden cause given the facts, row by row, by Gauss-Hermite quadrature.

Given its causes, each driven attribute depends on U ~ N(0, 1) through η + w·U alone, and its log
density is concave in that. So the posterior of U has one mode and bends everywhere at least as much
as its prior: Newton's method finds the mode, and nodes laid around it integrate U out.

Every operation is within a row. What a row gets does not depend on the rows computed with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from mutandis.data.columns import Floats


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
    predictor: Floats
    """η: what the observed causes explain."""
    loading: float
    """w: how much U drives the attribute."""
    deviation: float = 1.0
    """σ; 1 in a family that has none."""

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

    log_marginal: Floats
    """log p(x1, x2, … | pa), with U integrated out."""
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
