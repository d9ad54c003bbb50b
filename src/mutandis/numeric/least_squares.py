"""Least squares and Newton's method, the same to the last bit on any number of threads.

Every sum over rows is NumPy's own pairwise sum over blocks of rows: BLAS may add in an order that
depends on the number of threads. The order of the rows is up to the caller (`canonical_order`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from mutandis.errors import EquationError
from mutandis.limits import explain_limit, limit
from mutandis.mapped import empty

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutandis.data.columns import Floats

    # columns that are orthogonal to each other, and the square of each one's length
    Directions = list[tuple[Floats, float]]


Label = str | tuple[str, ...]
"""The parent that a column belongs to, or the parents whose product it is."""

_EPSILON = float(np.finfo(np.float64).eps)
# A column of which no larger part than this is left, once the others are taken out of it, holds
# nothing of its own.
_COLLINEAR = 1e-10
# The same for what rounding may leave, for each unit of a column's size over its variation.
_ROUNDING = 64 * _EPSILON
# A column that varies by no larger part of its size than this varies by rounding only.
_CONSTANT = 4 * _ROUNDING
# rows processed together, so that they stay in the processor's cache
_BLOCK = 1 << 14
# with 5,000 rows, some seconds by least squares or for the levels of an ordinal attribute
_COEFFICIENTS = 2_000


class CollinearError(EquationError):
    """A column of the design that follows from others."""

    def __init__(self, label: Label, others: Sequence[Label]) -> None:
        self.label = label
        self.others = others
        what, remedy = (
            ("parent", f"Remove {_shown(label)}, or what it follows from, from the parents.")
            if isinstance(label, str)
            else ("interaction", "Leave the interactions out, or remove one of these parents.")
        )
        super().__init__(
            f"{what} {_shown(label)} is perfectly collinear with {listed(others)}: it says nothing "
            f"that is not said already, so their effects cannot be told apart. {remedy}"
        )


def least_squares(
    response: Floats, design: Sequence[tuple[Label, Floats]]
) -> tuple[float, list[float]]:
    """Solve the least squares problem with an intercept; refuse columns it cannot tell apart."""
    return solve_centred(response, [(label, Scaled.of(values)) for label, values in design])


def solve_centred(
    response: Floats, design: Sequence[tuple[Label, Scaled]]
) -> tuple[float, list[float]]:
    """Solve the same problem for columns that are centred already; they are overwritten."""
    columns = [column for _, column in design]
    target = Scaled.of(response)
    with np.errstate(all="ignore"):  # what overflows, _require_finite finds
        coefficients = _solve(target, columns, [label for label, _ in design])
        means = zip(coefficients, columns, strict=True)
        intercept = target.mean - sum(coefficient * column.mean for coefficient, column in means)
    _require_finite(intercept, *coefficients)
    return intercept, coefficients


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """A column as mean + scale · values, where the largest of the values is about 1."""

    mean: float
    scale: float
    values: Floats
    length: float
    rounding: float
    """The part of its length that may be rounding: large for 1e9 plus a few millimetres."""

    @classmethod
    def of(cls, values: Floats) -> Scaled:
        """Copy and scale a column, with its mean taken out."""
        with np.errstate(all="ignore"):  # what overflows, _require_finite finds
            mean = float(np.add.reduce(values) / len(values))
            low, high = float(values.min()), float(values.max())
            # a power of two, so that dividing by it rounds nothing; then squares cannot overflow
            scale = float(np.ldexp(1.0, np.frexp(max(high - mean, mean - low))[1] - 1))
            scaled = empty(len(values), np.float64)
            for rows in _blocks(len(values)):
                part = np.subtract(values[rows], mean, out=scaled[rows])
                part /= scale
            length = _dot(scaled, scaled) ** 0.5
            rounding = _ROUNDING * max(abs(low), abs(high)) / scale
        _require_finite(length, rounding)
        return cls(mean=mean, scale=scale, values=scaled, length=length, rounding=rounding)


def _solve(target: Scaled, columns: Sequence[Scaled], labels: Sequence[Label]) -> list[float]:
    """Return one coefficient per column; the columns and the target are overwritten."""
    basis, triangle = _orthogonalise(columns, labels)
    slopes = _back_substitute(triangle, _take_out(basis, target.values))
    return [
        float(slope) * (target.scale / column.scale)
        for slope, column in zip(slopes, columns, strict=True)
    ]


def _take_out(basis: Directions, rest: Floats) -> Floats:
    """Subtract a column's projection on the basis, in place; return the coefficients."""
    shares = np.zeros(len(basis))
    product: float | None = None
    following = [*(direction for direction, _ in basis[1:]), None]
    for place, (direction, square) in enumerate(basis):
        if product is None:
            product = _dot(direction, rest)
        shares[place] = product / square
        product = _subtract(rest, shares[place], direction, following[place])
    return shares


def _orthogonalise(columns: Sequence[Scaled], labels: Sequence[Label]) -> tuple[Directions, Floats]:
    """Orthogonalise the columns in place; the triangle holds what was subtracted."""
    # Modified Gram-Schmidt, the response as the last column, is as stable as Householder's method
    # (Björck 1967, BIT 7, 1-21). In the declared order, the first column that nothing is left of is
    # the one that depends on those before it.
    basis: Directions = []
    triangle = np.eye(len(columns))
    tolerance = _COLLINEAR
    for place, column in enumerate(columns):
        triangle[:place, place] = _take_out(basis, column.values)
        tolerance = max(tolerance, column.rounding)
        square = _dot(column.values, column.values)
        if square**0.5 <= tolerance * column.length:
            raise _collinear(triangle, columns[: place + 1], labels)
        basis.append((column.values, square))
    return basis, triangle


def _subtract(
    rest: Floats, share: float, direction: Floats, following: Floats | None
) -> float | None:
    """Subtract a multiple of a direction; return the product of the rest with the following one."""
    # both in one go: a block of rows is fetched into the cache once
    partial = []
    buffer = np.empty(min(_BLOCK, len(rest)))
    for rows in _blocks(len(rest)):
        part = rest[rows]
        scratch = buffer[: len(part)]
        np.multiply(direction[rows], share, out=scratch)
        np.subtract(part, scratch, out=part)
        if following is not None:
            np.multiply(following[rows], part, out=scratch)
            partial.append(np.add.reduce(scratch))
    return None if following is None else float(np.add.reduce(partial))


def _dot(left: Floats, right: Floats) -> float:
    # products and NumPy's pairwise sum rather than BLAS: no threads, one order
    buffer = np.empty(min(_BLOCK, len(left)))
    partial = []
    for rows in _blocks(len(left)):
        part = left[rows]
        scratch = np.multiply(part, right[rows], out=buffer[: len(part)])
        partial.append(np.add.reduce(scratch))
    return float(np.add.reduce(partial))


def _blocks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, _BLOCK):
        yield slice(start, start + _BLOCK)


def _back_substitute(triangle: Floats, right: Floats) -> Floats:
    solution = right.copy()
    for place in reversed(range(len(right))):
        solution[place] -= _dot(triangle[place, place + 1 :], solution[place + 1 :])
    return solution


def _collinear(
    triangle: Floats, columns: Sequence[Scaled], labels: Sequence[Label]
) -> CollinearError:
    """Name the parents that determine the last of the columns."""
    *others, last = columns
    place = len(others)
    shares = _back_substitute(triangle[:place, :place], triangle[:place, place])
    sizes = np.abs(shares) * [column.length for column in others] / last.length
    involved = {labels[other] for other in np.flatnonzero(sizes > 1e-6).tolist()} - {labels[place]}
    return CollinearError(
        labels[place], [label for label in dict.fromkeys(labels) if label in involved]
    )


def _require_finite(*numbers: float) -> None:
    if not np.isfinite(numbers).all():
        raise EquationError(
            "its columns or its coefficients are too large or too small for floating-point "
            "numbers. Give the columns in other units."
        )


def require_rows(rows: int, *, coefficients: int) -> None:
    if rows < coefficients:
        raise EquationError(
            f"{coefficients} coefficients cannot be fitted to {rows} rows. "
            "Use more rows, or fewer parents."
        )


def require_few(coefficients: int, *, most: int = _COEFFICIENTS) -> None:
    """Refuse what would take hours: the time grows with the cube of the coefficients."""
    if coefficients > limit(most):
        raise EquationError(
            f"it would have {coefficients:,} coefficients. Merge rare levels, or leave out parents "
            f"with many. {explain_limit(most, 'coefficients')}"
        )


def is_constant(values: Floats) -> bool:
    """Return whether a column varies by rounding only."""
    low, high = values.min(), values.max()
    with np.errstate(over="ignore"):
        return bool(high - low <= _CONSTANT * max(abs(low), abs(high)))


def listed(labels: Sequence[Label]) -> str:
    return " and ".join(map(_shown, labels))


def _shown(label: Label) -> str:
    return repr(label) if isinstance(label, str) else " × ".join(map(repr, label))


# --- Newton's method ------------------------------------------------------------------------------


RIDGE = 1e-10
"""The penalty per row on the variance of a linear predictor, in units of log-likelihood.

Where a cause determines an attribute perfectly, the likelihood grows forever with the coefficient.
The penalty RIDGE/2 · rows · variance stops it where the probability is about 1e-9; elsewhere it
changes a coefficient in the ninth digit or later. The variance depends neither on the units of the
causes nor on their order.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """An intercept and columns, made orthogonal and of mean square 1, as Newton's method needs."""

    basis: Floats  # one row per person; a column of ones, then one for each column
    triangle: Floats  # the upper triangle R in: columns = basis · R

    @staticmethod
    def orthogonal(columns: Sequence[Floats], *, rows: int) -> tuple[Floats, Floats]:
        """Return the basis and the triangle of columns that are not collinear."""
        basis = np.ones((1 + len(columns), rows))
        triangle = np.eye(1 + len(columns))
        for place, values in enumerate(columns, start=1):
            # a power of two, so that dividing by it rounds nothing; then squares cannot overflow
            scale = float(np.ldexp(1.0, np.frexp(np.abs(values).max())[1]))
            rest = values / scale
            for before in range(place):
                share = float(np.add.reduce(basis[before] * rest)) / rows
                rest -= share * basis[before]
                triangle[before, place] = share * scale
            length = (float(np.add.reduce(rest * rest)) / rows) ** 0.5
            basis[place] = rest / length
            triangle[place, place] = length * scale
        return np.ascontiguousarray(basis.T), triangle

    @property
    def size(self) -> int:
        return len(self.triangle)

    def penalties(self) -> Floats:
        """Return the weight of each squared coefficient in the penalty: none for the intercept."""
        return np.array([0.0, *[RIDGE * len(self.basis)] * (self.size - 1)])

    def penalty(self, coefficients: Floats) -> float:
        """Compute the penalty on the variance of a linear predictor over the rows."""
        return float(np.add.reduce(self.penalties() * coefficients**2)) / 2

    def sums(self, weights: Floats) -> Floats:
        """Sum each column of the basis over the rows, with a weight for each row."""
        # pairwise sums, column by column: near the minimum, the gradient is all cancellation
        return np.array([float(np.add.reduce(column * weights)) for column in self.basis.T])

    def at(self, coefficients: Floats) -> Floats:
        # not BLAS: the number of threads is not to change a bit
        predictor: Floats = np.einsum("rc,c->r", self.basis, coefficients)
        return predictor

    def translate(self, coefficients: Floats) -> list[float]:
        """Translate coefficients of the basis into those of the intercept and the columns."""
        own = np.zeros(self.size)
        for place in reversed(range(self.size)):
            explained = float(np.add.reduce(self.triangle[place] * own))
            own[place] = (coefficients[place] - explained) / self.triangle[place, place]
        return own.tolist()


def row_products(left: Floats, right: Floats) -> Floats:
    products: Floats = np.einsum("ra,rb->ab", left, right)
    return products


_STEPS = 200
_HALVINGS = 60
# The squared distance from the minimum, in standard errors, at which one more step is the last:
# Newton's method squares it once more.
_SETTLED = 1e-12
# an Armijo condition, with room for the rounding of the loss itself
_SUFFICIENT = 1e-4
_SLACK = 1e-12


class Loss(Protocol):
    """A convex function of the coefficients: a negative log-likelihood with a small penalty."""

    def value(self, point: Floats) -> float:
        """Compute the loss; infinite where the coefficients are not allowed."""

    def derivatives(self, point: Floats) -> tuple[Floats, Floats]:
        """Compute the gradient and the matrix of second derivatives."""


def minimise(loss: Loss, start: Floats) -> Floats:
    """Find the minimum of a convex loss by Newton's method, halving steps that overshoot."""
    require_few(len(start))
    point, height = start, loss.value(start)
    for _ in range(_STEPS):
        with np.errstate(over="ignore", invalid="ignore"):
            gradient, curvature = loss.derivatives(point)
            step = solve_positive(curvature, gradient)
            slope = float(np.add.reduce(gradient * step))
        if slope <= _SETTLED:
            return point - step
        share = 1.0
        for _ in range(_HALVINGS):
            reached = loss.value(point - share * step)
            if reached <= height - _SUFFICIENT * share * slope + _SLACK * (1 + abs(height)):
                break
            share /= 2
        else:
            break
        point, height = point - share * step, reached
    raise EquationError(
        "its coefficients do not settle: the likelihood has no maximum that floating-point numbers "
        "can find. Look for extreme values among the causes, or give them in other units."
    )


def solve_positive(matrix: Floats, right: Floats) -> Floats:
    """Solve with a symmetric positive matrix by elimination, without BLAS and its threads."""
    rest = np.column_stack([matrix, right])
    size = len(right)
    diagonal = np.diagonal(matrix).copy()
    pivots = np.empty(size)
    for place in range(size):
        # one that rounding has left without a value: what the loss does not depend on stays
        pivot = rest[place, place]
        pivots[place] = pivot if pivot > _EPSILON * diagonal[place] else np.inf
        factors = rest[place + 1 :, place] / pivots[place]
        rest[place + 1 :, place:] -= np.outer(factors, rest[place, place:])
    solution = np.zeros(size)
    for place in reversed(range(size)):
        known = float(np.add.reduce(rest[place, place + 1 : size] * solution[place + 1 :]))
        solution[place] = (rest[place, size] - known) / pivots[place]
    return solution
