"""Gumbel-max coupling: what category a person would have had, given the one she has.

A category is read as X = argmax over k of (log p_k + G_k), with independent Gumbel noise G_k and
the probabilities p that the equation gives to people with her causes. Under other causes, the
category is the argmax of log q_k + G_k with the same noise (Oberst and Sontag 2019, "Counterfactual
off-policy evaluation with Gumbel-max structural causal models", *ICML*). That the noise is of this
kind is an assumption which no data can test. It has a property that is easily defended: somebody's
category does not change unless another has gained more in probability than hers, as a factor.

Notes
-----
With E_k = exp(-G_k), which are exponential with rate 1, the argmax becomes a race that is won by
the smallest time T_k = E_k / p_k. As exponentials with rates p_k that sum to 1:

- the winning time T is exponential with rate 1, whoever wins;
- given that i won at T, the others have not come in yet, and T_k - T is again exponential with
  rate p_k (no memory). So E_i = p_i·T, and E_k = p_k·T + an exponential with rate 1.

Under other causes, with the delays d_k = p_k / q_k, the times are

    T'_i = E_i / q_i = d_i·T,    T'_k = E_k / q_k = d_k·T + an exponential with rate q_k.

Given T, nobody but i arrives before the time s·T with probability exp(-T·C(s)), where
C(s) = Σ_{k≠i} q_k·(s - d_k)₊. So i wins again with probability E[exp(-T·C(d_i))] = 1/(1 + C(d_i)).
Somebody else, j, wins at s·T, d_j ≤ s < d_i, with density E[q_j·T·exp(-T·C(s))] = q_j/(1 + C(s))².
Between two neighbouring delays C is a straight line, and the integral of 1/(1 + C)² over such a
segment is its length over (1 + C at its start)·(1 + C at its end).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mutandis.data.columns import frozen
from mutandis.errors import EquationError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "GUMBEL_MAX",
    "Race",
    "counterfactual_probabilities",
    "draw_race",
    "most_probable",
    "winners",
]

GUMBEL_MAX = "Gumbel-max coupling"
"""The name of the assumption, as results are labelled with it."""

# Counterfactual probabilities below this are taken as this: what is divided by it, and squared, is
# still a number.
_LEAST = 1e-75
# Probabilities that differ by less than this are equal, but for rounding and the fitting penalty.
_EQUAL = 1e-8
# What the probabilities of one row may add up to beside 1.
_SLACK = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """The noise of each row, drawn from its posterior given the observed category.

    Parameters
    ----------
    won
        The time T at which the observed category came in.
    further
        What the others took beyond p_k·T, in units of their own rates; 0 for the observed one.
    """

    won: NDArray[np.float64]
    further: NDArray[np.float64]


def draw_race(observed: NDArray[np.intp], *, categories: int, rng: np.random.Generator) -> Race:
    """Draw the noise behind the observed categories.

    Parameters
    ----------
    observed
        The place of each row's category.
    categories
        How many categories there are.
    rng
        Where the noise is drawn from.
    """
    drawn = rng.standard_exponential((len(observed), categories + 1))
    further = drawn[:, :-1]
    further[np.arange(len(observed)), observed] = 0.0
    return Race(won=frozen(drawn[:, -1]), further=frozen(further))


def winners(
    factual: NDArray[np.float64],
    counterfactual: NDArray[np.float64],
    observed: NDArray[np.intp],
    race: Race,
) -> NDArray[np.intp]:
    """Run the race again under other probabilities, with the same noise.

    Parameters
    ----------
    factual, counterfactual
        The probabilities p and q, one row a person, one column a category.
    observed
        The place of each row's category.
    race
        The noise.

    Examples
    --------
    >>> race = Race(won=np.array([1.0]), further=np.array([[0.0, 0.3, 2.0]]))
    >>> p, q = np.array([[0.5, 0.25, 0.25]]), np.array([[0.2, 0.4, 0.4]])
    >>> winners(p, q, np.array([0]), race).tolist()  # times 2.5, 0.625 + 0.75, 0.625 + 5
    [1]
    """
    after = np.maximum(counterfactual, _LEAST)
    # Summed in this way, a delay that is not below the observed one's cannot win by rounding.
    times = _delays(factual, after) * race.won[:, np.newaxis] + race.further / after
    own = times[np.arange(len(observed)), observed]
    first = np.argmin(times, axis=1)
    return np.where(own <= times[np.arange(len(first)), first], observed, first)


def counterfactual_probabilities(
    factual: ArrayLike, counterfactual: ArrayLike, observed: ArrayLike
) -> NDArray[np.float64]:
    """Compute the probability of each counterfactual category, given the observed one.

    Parameters
    ----------
    factual
        The probabilities p of the categories under the factual causes, one row a person.
    counterfactual
        The probabilities q under the other causes.
    observed
        The place of each person's category, from 0.

    Returns
    -------
    NDArray
        One row a person, one column a category; rows add up to 1.

    Notes
    -----
    The derivation is in the docstring of this module. Counterfactual probabilities below 1e-75 are
    taken as 1e-75.

    Examples
    --------
    The first person's category has lost half of its probability to the second one:

    >>> p, q = [[0.5, 0.5], [0.5, 0.5]], [[0.25, 0.75], [0.25, 0.75]]
    >>> counterfactual_probabilities(p, q, [0, 1]).round(6).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    return _coupled(*_checked(factual, counterfactual, observed))


def _coupled(
    before: NDArray[np.float64], after: NDArray[np.float64], places: NDArray[np.intp]
) -> NDArray[np.float64]:
    own = places[:, np.newaxis]
    rates = np.maximum(after, _LEAST)
    delays = _delays(before, after)
    last = np.take_along_axis(delays, own, axis=1)
    # the observed one is due at `last`: who starts later, and itself, has no time left to win
    starts = np.minimum(delays, last)
    order = np.argsort(starts, axis=1, kind="stable")
    lengths = np.diff(np.take_along_axis(starts, order, axis=1), axis=1, append=last)
    crowd = np.cumsum(np.take_along_axis(rates, order, axis=1), axis=1)
    ends = 1.0 + np.cumsum(crowd * lengths, axis=1)
    beginnings = np.concatenate([np.ones_like(last), ends[:, :-1]], axis=1)
    integrals = lengths / (beginnings * ends)
    # each wins in the segment that begins with its own start, or in a later one
    remaining = np.cumsum(integrals[:, ::-1], axis=1)[:, ::-1]
    per_rate = np.empty_like(remaining)
    np.put_along_axis(per_rate, order, remaining, axis=1)
    probabilities = rates * per_rate
    np.put_along_axis(probabilities, own, 1.0 / ends[:, -1:], axis=1)
    return probabilities


def most_probable(
    factual: NDArray[np.float64],
    counterfactual: NDArray[np.float64],
    observed: NDArray[np.intp],
) -> NDArray[np.intp]:
    """Find the most probable counterfactual category; on a tie the observed one, then the first.

    Examples
    --------
    >>> p, q = np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]])  # a tie, one half each
    >>> most_probable(p, q, np.array([0])).tolist()
    [0]
    """
    # not checked: a fitted probability of an observed category may be 0 by underflow
    probabilities = _coupled(factual, counterfactual, observed)
    near = probabilities >= probabilities.max(axis=1, keepdims=True) - _EQUAL
    stays = near[np.arange(len(observed)), observed]
    return np.where(stays, observed, np.argmax(near, axis=1))


def _delays(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    return before / np.maximum(after, _LEAST)


def _checked(
    factual: ArrayLike, counterfactual: ArrayLike, observed: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    before = np.asarray(factual, dtype=np.float64)
    after = np.asarray(counterfactual, dtype=np.float64)
    places = np.asarray(observed, dtype=np.intp)
    if before.ndim != 2 or before.shape != after.shape or places.shape != before.shape[:1]:
        raise EquationError(
            f"the probabilities have shapes {before.shape} and {after.shape}, and the observed "
            f"categories {places.shape}. Give two tables of one row a person and one column a "
            "category, and one observed category a person."
        )
    for table in (before, after):
        if not ((table >= 0).all() and (np.abs(table.sum(axis=1) - 1.0) <= _SLACK).all()):
            raise EquationError(
                "a row of probabilities has a negative one, or does not add up to 1. Give the "
                "probabilities of all categories."
            )
    if not ((places >= 0) & (places < before.shape[1])).all():
        raise EquationError(
            f"an observed category is none of the {before.shape[1]} that have probabilities. "
            "Number them from 0."
        )
    impossible = int((before[np.arange(len(places)), places] <= 0).sum())
    if impossible:
        raise EquationError(
            f"{impossible} of {len(places)} observed categories have probability 0 under the "
            "factual causes. The facts contradict the probabilities: fit them to these facts."
        )
    return before, after, places
