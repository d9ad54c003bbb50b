"""The answer by its definition: dense matrices, one person at a time (docs/explanation/answer.md).

People are rows of numbers, divided by their range, and of indicators of levels, divided by two: the
distance is the sum of absolute differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit

Floats = NDArray[np.float64]


def nearest(center: Floats, others: Floats, k: int, *, left_out: int | None = None) -> Floats:
    """Weigh the k nearest of some people, and share the last places among those at one distance."""
    apart = np.round(np.abs(others - center).sum(axis=1), 9)
    if left_out is not None:
        apart[left_out] = np.inf
    weights, places = np.zeros(len(others)), float(k)
    for distance in np.unique(apart):
        here = apart == distance
        weights[here] = min(1.0, places / here.sum())
        places -= weights[here].sum()
        if places < 1e-9:
            break
    return weights / k


def regressors(people: Floats, numbers: int, reference: Floats) -> Floats:
    """Make the columns of the outcome model."""
    mean, spread = reference[:, :numbers].mean(axis=0), reference[:, :numbers].std(axis=0)
    spread[spread == 0] = 1
    columns = [np.ones(len(people)), *people[:, numbers:].T]
    for j in range(numbers):
        known = (reference[:, j] - mean[j]) / spread[j]
        value = np.clip((people[:, j] - mean[j]) / spread[j], *np.quantile(known, [0.01, 0.99]))
        columns.append(value)
        if len(np.unique(known)) > 2:
            quartiles = np.quantile(known, [0.25, 0.5, 0.75])
            columns += [np.maximum(value - each, 0) for each in quartiles]
    return np.array(columns).T


def logistic(z: Floats, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Fit with a penalty of ½ on each squared coefficient but the intercept."""
    penalty = np.diag([1e-8, *[1.0] * (z.shape[1] - 1)])
    b = np.zeros(z.shape[1])
    for _ in range(200):
        q = expit(z @ b)
        hessian = (z.T * (weights * q * (1 - q))) @ z + penalty
        step = np.linalg.solve(hessian, z.T @ (weights * (y - q)) - penalty @ b)
        b += step * min(1.0, 3 / np.abs(step).max())
        if np.abs(step).max() < 1e-11:
            break
    inverse = np.asarray(np.linalg.inv(hessian), dtype=np.float64)
    return b, inverse


@dataclass
class Oracle:
    """Differences and variances of one world; `cf` are the counterfactuals of the protected."""

    reference: Floats
    y0: Floats
    protected: Floats
    y1: Floats
    cf: Floats
    numbers: int

    def __post_init__(self) -> None:
        self._keep_comparable()
        n1, n0 = len(self.protected), len(self.reference)
        match = np.array([nearest(each, self.reference, 5) for each in self.cf])
        near = np.array(
            [nearest(each, self.reference, 5, left_out=j) for j, each in enumerate(self.reference)]
        )
        z0 = regressors(self.reference, self.numbers, self.reference)
        z1 = regressors(self.cf, self.numbers, self.reference)
        status = np.r_[np.ones(n1), np.zeros(n0)]
        b, _ = logistic(np.vstack([z1, z0]), status, np.ones(n1 + n0))
        odds = np.exp(z0 @ b)
        odds = np.minimum(odds / odds.mean(), 10)
        odds /= odds.sum()
        passed = np.zeros((n1, n0))
        for j, each in enumerate(self.reference):
            passed[:, j] = n1 * odds[j] * nearest(each, self.cf, min(5, n1))
        b, self.inverse = logistic(z0, self.y0, np.ones(n0))
        m0, m1 = expit(z0 @ b), expit(z1 @ b)
        e0, e1 = self.y0 - m0, self.y1 - m1
        self.weights = match + passed - passed @ near
        self.d = e1 - self.weights @ e0
        self.z0 = z0
        slopes = (m1 * (1 - m1))[:, None] * z1
        self.gradient = slopes - self.weights @ ((m0 * (1 - m0))[:, None] * z0)
        own = np.array(
            [nearest(each, self.protected, 5, left_out=i) for i, each in enumerate(self.protected)]
        )
        self.s1 = (e1 - own @ e1) ** 2 / (1 + (own**2).sum(axis=1))
        self.s0 = (e0 - near @ e0) ** 2 / (1 + (near**2).sum(axis=1))

    def _keep_comparable(self) -> None:
        def mean_distance(center: Floats, left_out: int | None = None) -> float:
            weights = nearest(center, self.reference, 5, left_out=left_out)
            return float(weights @ np.abs(self.reference - center).sum(axis=1))

        usual = [mean_distance(each, j) for j, each in enumerate(self.reference)]
        far = np.array([mean_distance(each) for each in self.cf])
        self.kept = far <= np.quantile(usual, 0.99) + 1e-9
        self.protected, self.y1 = self.protected[self.kept], self.y1[self.kept]
        self.cf = self.cf[self.kept]

    def average(self, people: Any) -> tuple[float, float]:
        """Average d over some people; return it with its standard error."""
        u = np.zeros(len(self.d))
        u[people] = 1 / len(u[people])
        weights = u @ self.weights + u @ self.gradient @ self.inverse @ self.z0.T
        return float(u @ self.d), float(np.sqrt(u**2 @ self.s1 + weights**2 @ self.s0))

    def around(self, person: int, k: int) -> tuple[float, float]:
        """Average d over the k nearest others of a person."""
        u = nearest(self.protected[person], self.protected, k, left_out=person)
        weights = u @ self.weights + u @ self.gradient @ self.inverse @ self.z0.T
        return float(u @ self.d), float(np.sqrt(u**2 @ self.s1 + weights**2 @ self.s0))

    def bounds(self, alpha: float = 0.05) -> tuple[float, float]:
        """Return the one-sided bounds of the whole table."""
        estimate, error = self.average(slice(None))
        reach = stats.t.ppf(1 - alpha, len(self.d) / 2) * error
        return estimate - reach, estimate + reach
