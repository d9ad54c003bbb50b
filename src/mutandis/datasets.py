"""The paper's illustrative loan applications, generated, and what is true about them (Sec. 4.1).

Since the equations are known, two true values are too. The first is about one person: her noise is
recorded, so her true counterfactual is known. The second is about all people with her attributes:
what a woman lost for being one is random and not revealed by the attributes, so that people with
the same attributes have different counterfactuals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.errors import PlanError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["loan", "loan_counterfactuals", "loan_expected_refusals"]

_THRESHOLD = 225_000
# a Poisson variable of mean 10 exceeds this once in 10^25
_MOST_LOSSES = 60
_LOSS, _EARNED = 1_500, 10_000
_BALANCE_LOSS, _BALANCE_NOISE = 300.0, 2_500.0


def loan(
    *,
    n: int = 5000,
    seed: int | np.random.Generator = 7,
    protected_share: float = 0.35,
) -> pd.DataFrame:
    r"""Generate loan applications by the paper's structural equations.

    Parameters
    ----------
    n
        Applications drawn. Those with a negative salary or balance are dropped, as the publication
        did, so that slightly fewer come back.
    seed
        A seed, or a generator.
    protected_share
        P(A = 1), the share of women. The published data has 0.35; the paper's text says 0.45.

    Returns
    -------
    pandas.DataFrame
        LoanApproval (-1 refused, 1 approved), AnnualSalary, AccountBalance, the noise u1 and u2
        (from which the true counterfactuals follow), and Gender (1 = female).

    Notes
    -----
    With A ~ Ber(protected_share), U1 ~ \$10000 Poi(10) and U2 ~ \$2500 N(0, 1):

    * X1 = -1500 Poi(10) A + U1
    * X2 = -300 χ²(4) A + 0.3 X1 + U2
    * Ŷ = 1 if X1 + 5 X2 > 225000, else -1

    Examples
    --------
    >>> loan(n=1000, seed=1).columns.tolist()
    ['LoanApproval', 'AnnualSalary', 'AccountBalance', 'u1', 'u2', 'Gender']
    """
    import pandas as pd

    if n < 1:
        raise PlanError(f"n={n} applications cannot be drawn. Give a positive number.")
    if not 0 < protected_share < 1:
        raise PlanError(f"protected_share={protected_share} is outside (0, 1).")
    rng = np.random.default_rng(seed)
    gender = rng.binomial(1, protected_share, n)
    u1 = 10_000 * rng.poisson(10, n)
    u2 = 2_500 * rng.standard_normal(n)
    salary = -1_500 * rng.poisson(10, n) * gender + u1
    balance = -300 * rng.chisquare(4, n) * gender + 0.3 * salary + u2
    approved = np.where(salary + 5 * balance > 225_000, 1, -1)
    table = pd.DataFrame(
        {
            "LoanApproval": approved,
            "AnnualSalary": salary,
            "AccountBalance": balance,
            "u1": u1,
            "u2": u2,
            "Gender": gender,
        }
    )
    kept = (table["AnnualSalary"] >= 0) & (table["AccountBalance"] >= 0)
    return table[kept].reset_index(drop=True)


def loan_counterfactuals(table: pd.DataFrame) -> pd.DataFrame:
    """Return every applicant's true attributes under do(Gender := 0): (u1, 0.3·u1 + u2).

    Parameters
    ----------
    table
        Applications with the columns of `loan`.

    Examples
    --------
    >>> table = loan(n=2000, seed=1)
    >>> would_be = loan_counterfactuals(table)
    >>> approved = would_be["AnnualSalary"] + 5 * would_be["AccountBalance"] > 225_000
    >>> int((approved & (table["LoanApproval"] == -1)).sum())
    149
    """
    import pandas as pd

    return pd.DataFrame(
        {"AnnualSalary": table["u1"], "AccountBalance": 0.3 * table["u1"] + table["u2"]}
    )


def loan_expected_refusals(table: pd.DataFrame) -> NDArray[np.float64]:
    r"""Return the share of women with these attributes who would be refused as men.

    Parameters
    ----------
    table
        Applications of women, with AnnualSalary and AccountBalance; u1 and u2 are not used.

    Notes
    -----
    A woman's salary is :math:`x_1 = 10000 J - 1500 P` with :math:`J, P \sim Poi(10)`, so that given
    :math:`x_1` only every twentieth :math:`P` is possible, with weight
    :math:`Pr(P) Pr(J)`. The rest of her balance is :math:`r = x_2 - 0.3 x_1 = U_2 - 300 C` with
    :math:`C \sim \chi^2(4)`, so that given r the density of C is proportional to c times that of
    a normal variable with deviation s = 2500/300 and mean :math:`-(s r / 2500 + s^2 / 2)`, for
    c > 0. As a man she would be refused if :math:`2.5 (x_1 + 1500 P) + 5 (r + 300 C) \le 225000`.

    Examples
    --------
    >>> table = loan(n=20_000, seed=1)
    >>> women = table[table["Gender"] == 1]
    >>> as_men = loan_counterfactuals(women)
    >>> refused = as_men["AnnualSalary"] + 5 * as_men["AccountBalance"] <= 225_000
    >>> round(float(refused.mean()), 3), round(float(loan_expected_refusals(women).mean()), 3)
    (0.392, 0.391)
    """
    salary = table["AnnualSalary"].to_numpy(dtype=np.int64)[:, None]
    rest = table["AccountBalance"].to_numpy(dtype=np.float64)[:, None] - 0.3 * salary
    losses = np.arange(_MOST_LOSSES + 1)
    earned = salary + _LOSS * losses
    weight = _loss_weights(earned, losses)
    most = (_THRESHOLD - 2.5 * earned - 5 * rest) / (5 * _BALANCE_LOSS)
    refused = _balance_losses_up_to(most, rest)
    return np.asarray((weight * refused).sum(axis=1) / weight.sum(axis=1), dtype=np.float64)


def _loss_weights(earned: NDArray[np.int64], losses: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weigh each possible loss of salary by its probability and by that of what was earned."""
    from scipy.stats import poisson

    times, left = np.divmod(earned, _EARNED)
    likely = poisson.pmf(losses, 10) * poisson.pmf(times, 10)
    return np.where(left == 0, likely, 0.0)


def _balance_losses_up_to(
    most: NDArray[np.float64], rest: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Pr(C ≤ most | r), for C the loss of balance in units of 300."""
    from scipy.special import ndtr

    deviation = _BALANCE_NOISE / _BALANCE_LOSS
    mean = -(deviation * rest / _BALANCE_NOISE + deviation**2 / 2)

    def upper_integral(bound: NDArray[np.float64]) -> NDArray[np.float64]:
        """Integrate c times the normal density from a bound to infinity."""
        z = (bound - mean) / deviation
        density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        return np.asarray(mean * ndtr(-z) + deviation * density, dtype=np.float64)

    return 1 - upper_integral(np.maximum(most, 0.0)) / upper_integral(np.zeros_like(rest))
