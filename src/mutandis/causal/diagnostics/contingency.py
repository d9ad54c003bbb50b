"""Are two groupings independent? Counting people who are alike, and the G-test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.causal.diagnostics.dependence import Dependence, chi_square_tail, untested

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Codes = NDArray[np.intp]

__all__ = ["g_dependence"]

# The usual rule for the chi-square approximation of a table of counts.
_LEAST_EXPECTED = 5.0


def g_dependence(first: Codes, second: Codes, strata: Codes) -> Dependence:
    """Test whether two groupings are independent within strata, by counting.

    Parameters
    ----------
    first, second
        A group for each row, in two ways.
    strata
        A stratum for each row: what is held fixed.

    Returns
    -------
    Dependence
        Not done if strata with an expected count below 5 in some cell hold more than half of the
        rows; strata in which one grouping does not vary can contradict nothing and do not count.

    Notes
    -----
    G = 2 Σ observed · log(observed / expected), added up over strata, each with Williams' (1976,
    *Biometrika* 63, 33-37) correction for small counts.

    Examples
    --------
    >>> first = np.repeat([0, 0, 1, 1], [30, 10, 10, 30])
    >>> second = np.repeat([0, 1, 0, 1], [30, 10, 10, 30])
    >>> found = g_dependence(first, second, np.zeros(80, dtype=np.intp))
    >>> round(found.statistic, 2), found.degrees
    (20.54, 1)
    """
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
        return untested(test, f"too few rows{where} for the groups to be compared in")
    return Dependence(
        test=test,
        statistic=statistic,
        degrees=degrees,
        p_value=chi_square_tail(statistic, degrees),
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
