"""Tests of dependence with analytic p-values, made for residuals of fitted equations.

Residuals of a fitted equation are not independent draws of its noise: the fit makes them
uncorrelated with its parents. A rank test does not know that. Where noise is skewed, least squares
equalises means and leaves medians apart by chance, and Kruskal-Wallis takes that for an effect
(docs/diagnostics.md has numbers). So the tests here are built on means, of residuals and of their
absolute deviations, which the fit affects in a known way.

Dependence is tested through features: numbers that move with the column. A column of few values has
one feature per value (is it this one?), a column of many has a curve of four parameters over its
ranks, so that neither its unit nor a single extreme value matters.

All sums over rows are NumPy's own, over rows in the order that they come in: BLAS may add in an
order that depends on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.data.columns import Categories, Column, Numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from mutandis.data.columns import Floats

    Codes = NDArray[np.intp]


SMALLEST_GROUP = 10
"""A value that fewer rows have says nothing of its own: it is put together with others."""
MOST_GROUPS = 12
"""Beyond this many groups the smallest are put together, or a test would lose its power."""

# A numeric column with no more values than these is taken value by value.
_FEW_VALUES = 10
# Legendre polynomials of the ranks up to this degree: level, slope, bend, and two finer ones.
_DEGREE = 4
# Of a vector that keeps no larger part than this, nothing but rounding is left.
_NO_DIRECTION = 1e-8
# With fewer rows per combination of nominal values, combinations are not held fixed one by one.
_ROWS_PER_CELL = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    vectors: tuple[Floats, ...]
    """None if the column does not vary."""
    groups: Codes


def features_of(column: Column) -> Features:
    """Choose the features of a column: its values, or a curve over its ranks."""
    if isinstance(column, Numbers) and not takes_few_values(column):
        ranks = _ranks(column.values)
        return Features(vectors=_curve(ranks), groups=_tenths(ranks))
    groups = group_codes(column)
    return Features(vectors=indicators(groups), groups=groups)


def codes_of(column: Column) -> Codes:
    return np.unique(column.data, return_inverse=True)[1].astype(np.intp)


def group_codes(column: Column) -> Codes:
    """Enumerate the values that occur in a column, rare ones together."""
    codes = codes_of(column)
    counts = np.bincount(codes)
    # largest first; equally large ones in the order of their values
    by_size = np.argsort(-counts, kind="stable")
    kept = [code for code in by_size.tolist() if counts[code] >= SMALLEST_GROUP]
    if len(kept) > MOST_GROUPS:
        kept = kept[: MOST_GROUPS - 1]
    new = np.full(len(counts), len(kept), dtype=np.intp)
    new[kept] = np.arange(len(kept))
    if 0 < len(codes) - int(counts[kept].sum()) < SMALLEST_GROUP:
        # even together they are few: they join the smallest group
        new = np.minimum(new, max(len(kept) - 1, 0))
    return new[codes]


def indicators(codes: Codes) -> tuple[Floats, ...]:
    return tuple((codes == code).astype(np.float64) for code in range(1, int(codes.max()) + 1))


def takes_few_values(column: Column) -> bool:
    return isinstance(column, Categories) or len(np.unique(column.values)) <= _FEW_VALUES


def is_nominal(column: Column) -> bool:
    """Return whether a column holds names, or two numbers that might as well be names."""
    return isinstance(column, Categories) or len(np.unique(column.values)) <= 2


def _ranks(values: Floats) -> Floats:
    """Return the share of rows below each, ties at their middle."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    below = np.cumsum(counts) - counts
    ranks: Floats = ((below + 0.5 * counts) / len(values))[place]
    return ranks


def _curve(ranks: Floats) -> tuple[Floats, ...]:
    powers = np.polynomial.legendre.legvander(2.0 * ranks - 1.0, _DEGREE)
    return tuple(np.ascontiguousarray(powers[:, degree]) for degree in range(1, _DEGREE + 1))


def _tenths(ranks: Floats) -> Codes:
    """Cut rows into up to ten parts of about the same size, of fifty rows or more if there are."""
    parts = int(np.clip(len(ranks) // 50, 1, 10))
    codes = np.minimum((ranks * parts).astype(np.intp), parts - 1)
    counts = np.bincount(codes, minlength=parts)
    new = np.zeros(parts, dtype=np.intp)
    held = 0
    for part in range(1, parts):
        # ties can leave a part nearly empty: it then goes with the one before it
        held += int(counts[part - 1])
        enough = held >= SMALLEST_GROUP and counts[part:].sum() >= SMALLEST_GROUP
        new[part] = new[part - 1] + enough
        held = 0 if enough else held
    return new[codes]


def dot(left: Floats, right: Floats) -> float:
    return float(np.add.reduce(left * right))


def orthonormal(vectors: Iterable[Floats], *, given: Conditioning | None = None) -> list[Floats]:
    """Find perpendicular vectors of length 1 that span the same, less their means and `given`."""
    found: list[Floats] = []
    for vector in vectors:
        centred = vector - np.add.reduce(vector) / len(vector)
        largest = float(np.abs(centred).max())
        if largest <= _NO_DIRECTION * float(np.abs(vector).max()):
            continue
        centred /= largest
        length = dot(centred, centred) ** 0.5
        rest = centred if given is None else given.residual(centred)
        rest = _without(rest, found)
        left = dot(rest, rest) ** 0.5
        if left > _NO_DIRECTION * length:
            found.append(rest / left)
    return found


def _without(vector: Floats, basis: Sequence[Floats]) -> Floats:
    rest = vector.copy()
    # twice is enough (Kahan): what rounding left of the basis the first time goes the second
    for _ in range(2):
        for direction in basis:
            rest -= dot(direction, rest) * direction
    return rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditioning:
    """What a test holds fixed: combinations of values, and directions."""

    cells: Codes
    """A number for each row, the same for rows that are alike in what is held fixed by value."""
    basis: tuple[Floats, ...] = ()
    """Perpendicular directions of length 1, each with mean 0 in every cell."""

    @classmethod
    def on_columns(cls, columns: Sequence[Column], *, rows: int) -> Conditioning:
        """Hold columns fixed: nominal ones by value, together if rows allow; others by a curve."""
        few = [column for column in columns if takes_few_values(column)]
        vectors: list[Floats] = []
        for column in columns:
            if isinstance(column, Numbers) and not takes_few_values(column):
                vectors += [column.values, *_curve(_ranks(column.values))]
        cells = crossed(few, rows=rows)
        if few and cells.max() + 1 > rows / _ROWS_PER_CELL:
            # too many combinations: each column on its own, the one with most values by cells
            factors = sorted(map(codes_of, few), key=lambda codes: -int(codes.max()))
            cells = factors[0]
            vectors += [vector for codes in factors[1:] for vector in indicators(codes)]
        return cls.on_vectors(vectors, cells=cells)

    @classmethod
    def on_vectors(cls, vectors: Iterable[Floats], *, cells: Codes) -> Conditioning:
        within = cls(cells=cells)
        return cls(cells=cells, basis=tuple(orthonormal(vectors, given=within)))

    @property
    def rank(self) -> int:
        """How many numbers are fitted to hold it fixed."""
        return int(self.cells.max()) + 1 + len(self.basis)

    def residual(self, values: Floats) -> Floats:
        """Return the residual of a vector given all that is held fixed."""
        means = np.bincount(self.cells, weights=values) / np.bincount(self.cells)
        return _without(values - means[self.cells], self.basis)


def crossed(columns: Iterable[Column], *, rows: int) -> Codes:
    """Enumerate the combinations of values that occur in several columns."""
    cells = np.zeros(rows, dtype=np.intp)
    for column in columns:
        codes = codes_of(column)
        pairs = cells * (int(codes.max()) + 1) + codes
        cells = np.unique(pairs, return_inverse=True)[1].astype(np.intp)
    return cells


NOTHING_LEFT = "nothing of it is left once what is held fixed is taken out"
"""Why a test is not done where what is held fixed determines one of the two sides."""

# Of a residual whose length is no larger part of the original than this, rounding is all.
_NOTHING = 1e-9
# Fewer rows per fitted number than these, and the p-value would be a guess.
_ROWS_PER_NUMBER = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """The result of one test, or the reason why there is none."""

    test: str  # which test it was
    # the statistic, its degrees of freedom and its p-value; missing if it was not done
    statistic: float | None = None
    degrees: int | None = None
    p_value: float | None = None
    # how strong the dependence is in the table, whatever its p-value, and how that is measured
    effect: float | None = None
    effect_name: str = ""
    note: str = ""  # why it was not done, or which rows it leaves out


def mean_dependence(
    residuals: Sequence[Floats], features: Sequence[Floats], *, given: Conditioning, test: str
) -> Dependence:
    """Test whether the mean of residuals changes with features, while something is held fixed."""
    # With e and f what is left of a residual and of a feature, the statistic is s'V⁻¹s for the sums
    # s = Σ e·f and V = Σ (e·f)(e·f)', and has a chi-square distribution: the score test with a
    # variance that does not assume the residuals to spread equally everywhere (Wooldridge 1991,
    # Journal of Econometrics 47, 5-46). For one residual and one feature it is the square of
    # the generalised covariance measure of Shah and Peters 2020 (Annals of Statistics 48,
    # 1514-1538) and vanishes with the partial correlation.
    from scipy.special import chdtrc

    left = [rest for residual in residuals if (rest := _left(residual, given)) is not None]
    directions = orthonormal(features, given=given)
    if not left or not directions:
        return Dependence(test=test, note=NOTHING_LEFT)
    rows = len(left[0])
    numbers = given.rank + len(left) * len(directions)
    if rows < _ROWS_PER_NUMBER * numbers:
        return Dependence(test=test, note=f"{rows} rows are too few to fit {numbers} numbers to")
    products = [residual * direction for residual in left for direction in directions]
    sums = np.array([np.add.reduce(product) for product in products])
    variance = _second_moments(products) * (rows / (rows - given.rank))
    if all(map(_is_indicator, features)):
        # No less than if e and f were independent (a direction has length 1), or two rare things
        # that never meet would look as if they avoided each other.
        independent = np.array([dot(one, one) / rows for one in left for _ in directions])
        variance = _raised(variance, least=independent)
    statistic, degrees = _quadratic_form(sums, variance)
    total = sum(dot(residual, residual) for residual in left)
    single = len(products) == 1
    return Dependence(
        test=test,
        statistic=statistic,
        degrees=degrees,
        p_value=float(chdtrc(degrees, statistic)),
        effect=float(sums[0] / total**0.5) if single else dot(sums, sums) / total,
        effect_name="correlation" if single else "share of the variance left",
    )


def spread_dependence(residual: Floats, features: Features, *, test: str) -> Dependence:
    """Test whether residuals spread more widely for some values of a column than for others."""
    # An F test on absolute deviations from the median of the own group, as Brown and Forsythe
    # (1974, Journal of the American Statistical Association 69, 364-367) made it out of Levene's:
    # the median makes it safe against skewed noise, and against errors in the fitted level. For a
    # column of few values it is their test; for one of many, the deviations are regressed on its
    # curve.
    from scipy.special import fdtrc

    groups = features.groups
    residual = residual / max(float(np.abs(residual).max()), np.finfo(np.float64).tiny)
    medians = np.array([np.median(residual[groups == group]) for group in np.unique(groups)])
    deviations = np.abs(residual - medians[groups])
    directions = orthonormal(features.vectors)
    rows, degrees = len(residual), len(directions)
    if not directions:
        return Dependence(test=test, note="the column does not vary")
    if rows < _ROWS_PER_NUMBER * (1 + degrees):
        return Dependence(
            test=test, note=f"{rows} rows are too few to fit {1 + degrees} numbers to"
        )
    centred = deviations - np.add.reduce(deviations) / rows
    total = dot(centred, centred)
    explained = sum(dot(direction, centred) ** 2 for direction in directions)
    if total <= (_NOTHING * float(np.abs(deviations).max(initial=0.0))) ** 2 * rows:
        return Dependence(test=test, note="all residuals are equally far from the middle")
    free = rows - 1 - degrees
    # a perfect fit leaves no rounding to divide by
    unexplained = max(total - explained, total * 1e-15)
    statistic = (explained / degrees) / (unexplained / free)
    widths = np.bincount(groups, weights=deviations) / np.bincount(groups)
    narrowest = float(widths.min())
    return Dependence(
        test=test,
        statistic=statistic,
        degrees=degrees,
        p_value=float(fdtrc(degrees, free, statistic)),
        effect=float(widths.max()) / narrowest if narrowest > 0.0 else None,
        effect_name="widest group over narrowest",
    )


def normal_departure(values: Floats, *, test: str) -> Dependence:
    """Test whether values are standard normal, by the largest gap of distribution functions."""
    from scipy.special import kolmogorov, ndtr

    # the values of a fitted equation are nearer to it than draws would be: too few are found
    rows = len(values)
    if rows < _ROWS_PER_NUMBER * 5:
        return Dependence(test=test, note=f"{rows} rows are too few to see a distribution in")
    expected = ndtr(np.sort(values))
    steps = np.arange(rows + 1) / rows
    gap = float(max((steps[1:] - expected).max(), (expected - steps[:-1]).max()))
    centred = values - np.add.reduce(values) / rows
    return Dependence(
        test=test,
        statistic=gap,
        p_value=float(kolmogorov(gap * rows**0.5)),
        effect=(dot(centred, centred) / rows) ** 0.5,
        effect_name="standard deviation, 1 expected",
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number (Holm 1979, *Scandinavian Journal of Statistics* 6)."""
    order = np.argsort(p_values, kind="stable")
    multiplied = np.arange(len(p_values), 0, -1) * np.asarray(p_values)[order]
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(multiplied))
    return adjusted.tolist()


def _left(residual: Floats, given: Conditioning) -> Floats | None:
    """Return the rest of a residual, scaled; None if that is rounding."""
    largest = float(np.abs(residual).max())
    if largest == 0.0:
        return None
    scaled = residual / largest
    rest = given.residual(scaled)
    return rest if float(np.abs(rest).max()) > _NOTHING else None


def _second_moments(products: Sequence[Floats]) -> Floats:
    size = len(products)
    moments = np.empty((size, size))
    for row in range(size):
        for column in range(row + 1):
            moments[row, column] = moments[column, row] = dot(products[row], products[column])
    return moments


def _raised(variance: Floats, *, least: Floats) -> Floats:
    """Scale up the variances that are below the least, and their covariances along with them."""
    found = np.maximum(np.diag(variance), _NOTHING * least)
    scale = np.maximum(1.0, least / found) ** 0.5
    raised: Floats = variance * np.outer(scale, scale)
    return raised


def _is_indicator(vector: Floats) -> bool:
    return bool(((vector == vector.min()) | (vector == vector.max())).all())


def _quadratic_form(sums: Floats, variance: Floats) -> tuple[float, int]:
    """Compute s'V⁻¹s by elimination, over the entries that those before them do not determine."""
    # not by a library: its rounding would depend on the number of threads
    rest, right = variance.copy(), sums.copy()
    statistic, degrees = 0.0, 0
    for place in range(len(sums)):
        pivot = rest[place, place]
        if pivot <= _NOTHING * variance[place, place]:
            continue
        statistic += float(right[place] ** 2 / pivot)
        degrees += 1
        share = rest[place, place + 1 :] / pivot
        right[place + 1 :] -= share * right[place]
        rest[place + 1 :, place + 1 :] -= np.outer(share, rest[place, place + 1 :])
    return statistic, degrees


# The usual rule for the chi-square approximation of a table of counts.
_LEAST_EXPECTED = 5.0


def g_dependence(first: Codes, second: Codes, strata: Codes) -> Dependence:
    """Test whether two groupings are independent within strata, by counting."""
    # G = 2 Σ observed · log(observed / expected), added up over strata, each with Williams' (1976,
    # Biometrika 63, 33-37) correction for small counts
    from scipy.special import chdtrc

    varied = int(strata.max()) > 0
    test = "stratified G-test" if varied else "G-test"
    statistic, degrees, used, lost = 0.0, 0, 0, 0
    for counts in _tables(first, second, strata):
        rows = int(counts.sum())
        if min(counts.shape) < 2:
            continue
        expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / rows
        if expected.min() < _LEAST_EXPECTED:
            lost += rows
            continue
        used += rows
        own = (counts.shape[0] - 1) * (counts.shape[1] - 1)
        statistic += _g_statistic(counts, expected) / _williams(counts, own)
        degrees += own
    if used <= lost or not used:
        where = " in most strata" if varied else ""
        return Dependence(test=test, note=f"too few rows{where} for the groups to be compared in")
    return Dependence(
        test=test,
        statistic=statistic,
        degrees=degrees,
        p_value=float(chdtrc(degrees, statistic)),
        effect=float((statistic / (used * degrees)) ** 0.5),
        effect_name="contingency per degree of freedom",
        note=f"{lost} rows in strata with too few rows are left out" if lost else "",
    )


def _tables(first: Codes, second: Codes, strata: Codes) -> list[NDArray[np.intp]]:
    """Count each stratum's rows by both groupings, without groups that it has no row of."""
    shape = (int(strata.max()) + 1, int(first.max()) + 1, int(second.max()) + 1)
    order = np.argsort(strata, kind="stable")
    edges = np.searchsorted(strata[order], np.arange(shape[0] + 1))
    tables = []
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        chosen = order[start:stop]
        cells = first[chosen] * shape[2] + second[chosen]
        counts = np.bincount(cells, minlength=shape[1] * shape[2]).reshape(shape[1:])
        tables.append(counts[counts.any(axis=1)][:, counts.any(axis=0)])
    return tables


def _g_statistic(counts: NDArray[np.intp], expected: Floats) -> float:
    occurring = counts > 0
    ratios = np.log(counts[occurring] / expected[occurring])
    return float(2.0 * np.add.reduce(counts[occurring] * ratios))


def _williams(counts: NDArray[np.intp], degrees: int) -> float:
    rows = counts.sum()
    across = rows * (1.0 / counts.sum(axis=1)).sum() - 1.0
    down = rows * (1.0 / counts.sum(axis=0)).sum() - 1.0
    return float(1.0 + across * down / (6.0 * rows * degrees))
