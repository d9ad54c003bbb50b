"""What a column of a strange table may be: a guess that its reader is to correct.

Guesses look at types, at how many different values there are, and at the words in a column's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

__all__ = ["Guess", "Profile", "Role", "guess_columns", "profile_columns", "unfavourable"]

Role = Literal["id", "outcome", "protected", "continuous", "ordinal", "nominal", "left out"]

# beginnings of words, the more telling first
_OUTCOME = {
    "approv": False, "grant": False, "accept": False, "admit": False, "admis": False,
    "hire": False, "award": False, "promot": False, "select": False, "pass": False,
    "decision": False, "outcome": False, "reject": True, "denied": True, "denial": True,
    "deny": True, "refus": True, "declin": True,
}  # fmt: skip
"""By word: whether the larger of two values (1, true, yes) is the unfavourable one."""
_PROTECTED = (
    "gender", "sex", "female", "woman", "women", "race", "racial", "ethnic", "nonwhite", "black",
    "hispan", "latin", "asian", "minorit", "foreign", "migrant", "immigra", "nationalit",
    "citizen", "religio", "disab", "handicap", "pregnan", "male", "white", "marital", "married",
)  # fmt: skip
_ID = ("id", "key", "uuid", "identifier", "number", "no", "nr")

_NEGATIVE_WORDS = {"no", "n", "false", "f", "denied", "rejected", "refused", "declined", "fail"}

_FEW = 10  # so many different numbers may be codes or grades
_NAMES = 30  # so many different texts may be categories
_LACKING = 0.05  # a column that lacks more of its values costs more rows than it is worth
_FAR = 100  # so many times the spread of the middle half


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What can be seen of a column without knowing what it means.

    Parameters
    ----------
    name
        Its name.
    kind
        What its values are.
    rows, missing, distinct
        How many rows there are, how many lack a value, and how many different values there are.
    levels
        The different values in order, most frequent ones in `common`, where they are few.
    whole
        Whether all numbers are whole.
    far
        Whether the largest number is so far from the others that it may stand for "unknown".
    lowest
        The smallest number.
    """

    name: str
    kind: Literal["number", "truth", "text", "date", "other"]
    rows: int
    missing: int
    distinct: int
    levels: tuple[Any, ...] = ()
    common: Any = None
    whole: bool = False
    far: bool = False
    lowest: float = float("-inf")

    @property
    def words(self) -> tuple[str, ...]:
        """The words in the name, in lower case.

        Examples
        --------
        >>> Profile(name="LoanApproved_2", kind="text", rows=1, missing=0, distinct=1).words
        ('loan', 'approved', '2')
        """
        parts = re.findall(r"[A-Z]?[a-zà-ÿ]+|[A-Z]+(?![a-z])|\d+", self.name)
        return tuple(part.lower() for part in parts)

    def sounds_like(self, stems: Iterable[str]) -> str | None:
        """Give the first stem that one of the words begins with."""
        return next((s for s in stems if any(word.startswith(s) for word in self.words)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """What a column is taken for.

    Parameters
    ----------
    profile
        What can be seen of it.
    role
        What it is taken for.
    why
        What its reader should know: why it is left out, or what to look at.
    """

    profile: Profile
    role: Role
    why: str = ""

    @property
    def name(self) -> str:
        """The column's name."""
        return self.profile.name


def profile_columns(table: pd.DataFrame) -> list[Profile]:
    """Look at every column of a table.

    Examples
    --------
    >>> import pandas as pd
    >>> [found] = profile_columns(pd.DataFrame({"grade": [3, 1, 2, 3, None]}))
    >>> found.kind, found.levels, found.missing, found.whole
    ('number', (1, 2, 3), 1, True)
    """
    return [_profile(str(name), table.iloc[:, i]) for i, name in enumerate(table.columns)]


def _profile(name: str, column: pd.Series[Any]) -> Profile:
    kind = _kind_of(column)
    present = column.dropna()
    if kind == "other":
        return Profile(name=name, kind=kind, rows=len(column), missing=0, distinct=0)
    counted = present.value_counts()
    numbers = present.to_numpy(dtype=np.float64) if kind == "number" else np.empty(0)
    whole = kind == "number" and bool(np.all(np.mod(numbers, 1) == 0))
    return Profile(
        name=name,
        kind=kind,
        rows=len(column),
        missing=len(column) - len(present),
        distinct=len(counted),
        levels=_levels(counted.index.tolist(), whole=whole) if len(counted) <= _NAMES else (),
        common=_plain(counted.index[0], whole=whole) if len(counted) else None,
        whole=whole,
        far=_is_far(numbers),
        lowest=float(numbers.min()) if len(numbers) else float("-inf"),
    )


def _kind_of(column: pd.Series[Any]) -> Literal["number", "truth", "text", "date", "other"]:
    import pandas as pd

    types = pd.api.types
    if types.is_bool_dtype(column):
        return "truth"
    if types.is_numeric_dtype(column):
        return "number"
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        return "date"
    inferred = types.infer_dtype(column, skipna=True)
    kinds: dict[str, Any] = {"boolean": "truth", "date": "date", "datetime": "date", "time": "date"}
    if inferred in {"string", "empty"} or isinstance(column.dtype, pd.CategoricalDtype):
        return "text"
    found: Literal["number", "truth", "text", "date", "other"] = kinds.get(inferred, "other")
    return found


def _levels(values: Sequence[Any], *, whole: bool) -> tuple[Any, ...]:
    return tuple(sorted(_plain(value, whole=whole) for value in values))


def _plain(value: Any, *, whole: bool) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if whole else value


def _is_far(numbers: Any) -> bool:
    """Tell whether the largest number lies where people write 999999 for what they do not know."""
    finite = numbers[np.isfinite(numbers)]
    if len(finite) < 20:
        return False
    low, high = np.quantile(finite, [0.25, 0.75])
    return bool(high > low and finite.max() - high > _FAR * (high - low))


def guess_columns(
    profiles: Sequence[Profile],
    *,
    outcome: str | None = None,
    protected: str | None = None,
    id: str | None = None,  # noqa: A002 - the public name of the option
) -> list[Guess]:
    """Guess what each column is; what the caller knows is taken for granted.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({
    ...     "approved": [1, 0, 1, 0], "gender": ["f", "m", "f", "m"], "bank": ["A"] * 4,
    ...     "salary": [10.5, 20.0, 30.0, 40.0],
    ... })
    >>> [(guess.name, guess.role) for guess in guess_columns(profile_columns(table))]
    [('approved', 'outcome'), ('gender', 'protected'), ('bank', 'left out'),
    ('salary', 'continuous')]
    """
    chosen = {
        "outcome": _best(profiles, _OUTCOME, most=2) if outcome is None else outcome,
        "protected": protected,
        "id": _find_id(profiles) if id is None else id,
    }
    if protected is None:
        others = [each for each in profiles if each.name != chosen["outcome"]]
        chosen["protected"] = _best(others, _PROTECTED, most=_FEW)
    # the outcome last: a column that the caller names twice is refused later, as the outcome
    order: tuple[Role, ...] = ("id", "protected", "outcome")
    roles: dict[str | None, Role] = {chosen[role]: role for role in order}
    return [
        Guess(profile=each, role=roles[each.name]) if each.name in roles else _guess(each)
        for each in profiles
    ]


def _best(profiles: Sequence[Profile], stems: Iterable[str], *, most: int) -> str | None:
    """Choose the column with the most telling name among those with few values."""
    order = list(stems)
    found = [
        (order.index(stem), place)
        for place, each in enumerate(profiles)
        if 2 <= each.distinct <= most
        and each.kind != "date"
        and (stem := each.sounds_like(order)) is not None
    ]
    return profiles[min(found)[1]].name if found else None


def _find_id(profiles: Sequence[Profile]) -> str | None:
    for each in profiles:
        unique = each.distinct == each.rows and each.rows > 1
        plain = each.whole or each.kind == "text"
        if unique and plain and any(word in _ID for word in each.words):
            return each.name
    return None


def _guess(profile: Profile) -> Guess:
    reason = _reason_to_leave_out(profile)
    if reason:
        return Guess(profile=profile, role="left out", why=reason)
    if profile.distinct == 2 or profile.kind != "number":
        return Guess(profile=profile, role="nominal", why=_lacking(profile))
    if profile.whole and profile.distinct <= _FEW:
        why = "grades, low to high? Codes are nominal, amounts continuous"
        return Guess(profile=profile, role="ordinal", why=_and(why, _lacking(profile)))
    far = "its largest value may stand for 'unknown': look" if profile.far else ""
    return Guess(profile=profile, role="continuous", why=_and(far, _lacking(profile)))


def _and(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _lacking(profile: Profile) -> str:
    return f"{profile.missing:,} values are missing" if profile.missing else ""


def _reason_to_leave_out(profile: Profile) -> str:
    """Say why a column can be nothing that people are compared on; nothing if it can."""
    reasons = (
        (profile.kind == "other", "values of several types"),
        (profile.distinct == 0, "no values"),
        (profile.distinct == 1, "the same value in every row"),
        (profile.kind == "date", "a date: turn it into a number, such as an age"),
        (
            profile.missing > _LACKING * profile.rows,
            f"{profile.missing / max(profile.rows, 1):.0%} of its values are missing",
        ),
        (bool(profile.sounds_like(_OUTCOME)), "sounds like a record of the decision"),
        (
            profile.distinct <= _FEW and bool(profile.sounds_like(_PROTECTED)),
            "sounds like a protected ground",
        ),
        (
            profile.kind == "text" and profile.distinct > _NAMES,
            "free text, or too many names to compare people on",
        ),
        (
            profile.whole and profile.distinct == profile.rows and profile.rows > _FEW,
            "another value in every row, like an identifier",
        ),
    )
    return next((reason for found, reason in reasons if found), "")


def unfavourable(profile: Profile) -> Any:
    """Guess which of two outcome values is the unfavourable one.

    Examples
    --------
    >>> unfavourable(Profile(name="approved", kind="number", rows=2, missing=0, distinct=2,
    ...                      levels=(0, 1)))
    0
    """
    low, high = profile.levels[0], profile.levels[-1]
    stem = profile.sounds_like(_OUTCOME)
    if stem is not None and _OUTCOME[stem]:
        return high
    return high if str(high).lower() in _NEGATIVE_WORDS else low
