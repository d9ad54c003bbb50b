"""How columns go with the decision: what gives it away, and what it may depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from mutandis.files.column_guesses import Profile

__all__ = ["association", "gives_away"]


def gives_away(table: pd.DataFrame, profile: Profile, outcome: str) -> bool:
    """Tell whether each value of a column goes with one outcome: it records the decision again.

    Examples
    --------
    >>> import pandas as pd
    >>> from mutandis.files.column_guesses import profile_columns
    >>> table = pd.DataFrame({"approved": [0, 1, 1] * 10, "action": [3, 1, 2] * 10})
    >>> gives_away(table, profile_columns(table)[1], "approved")
    True
    """
    # a column with many values gives any outcome away, by chance
    if not profile.levels or profile.rows < 10 * profile.distinct:
        return False
    pairs = table[[profile.name, outcome]].dropna().drop_duplicates()
    return bool(len(pairs) == pairs[profile.name].nunique())


def association(table: pd.DataFrame, profile: Profile, outcome: str) -> float:
    """Measure how far a column goes with a binary outcome, from 0 to 1.

    Numbers by the correlation of their ranks with the outcome, everything else by Cramér's V.

    Examples
    --------
    >>> import pandas as pd
    >>> from mutandis.files.column_guesses import profile_columns
    >>> table = pd.DataFrame({"approved": [0, 0, 1, 1], "job": ["a", "b", "a", "b"],
    ...                       "salary": [1.5, 2, 3, 4]})
    >>> [round(association(table, each, "approved"), 2) for each in profile_columns(table)[1:]]
    [0.0, 0.89]
    """
    values, decided = table[profile.name], table[outcome]
    both = values.notna().to_numpy() & decided.notna().to_numpy()
    present, answers = values[both], decided[both].to_numpy()
    granted = answers == answers[0] if len(answers) else answers
    if len(set(answers.tolist())) != 2 or present.nunique() < 2:
        return 0.0
    if profile.kind == "number" and profile.distinct > 2:
        return abs(float(np.corrcoef(present.rank().to_numpy(), granted)[0, 1]))
    return _cramers_v(present, granted)


def _cramers_v(values: pd.Series[Any], decided: Any) -> float:
    codes, levels = values.factorize()
    observed = np.zeros((len(levels), 2))
    np.add.at(observed, (codes, decided.astype(np.intp)), 1)
    expected = observed.sum(axis=1, keepdims=True) * observed.sum(axis=0) / len(values)
    chi_squared = float(((observed - expected) ** 2 / expected).sum())
    # with two outcomes, V is the root of χ²/n
    return float(np.sqrt(chi_squared / len(values)))
