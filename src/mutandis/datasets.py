"""The paper's illustrative loan applications, generated, and their true counterfactuals (Sec. 4.1).

Since the equations are known and each person's noise is recorded, the true counterfactual is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mutandis.errors import PlanError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["loan", "loan_counterfactuals"]


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
