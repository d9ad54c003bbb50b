"""How numbers and lists are written in a document."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "by_value",
    "count",
    "listed",
    "p_value",
    "percent",
    "plain",
    "plural",
    "signed",
    "value",
]

MISSING = "–"


def count(number: int) -> str:
    """Write a whole number.

    Examples
    --------
    >>> count(12345)
    '12,345'
    """
    return f"{number:,}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Write how many there are of something.

    Examples
    --------
    >>> plural(1, "row"), plural(2000, "person", "people")
    ('1 row', '2,000 people')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def percent(share: float) -> str:
    """Write a share as a percentage with one decimal.

    Examples
    --------
    >>> percent(0.1684), percent(float("nan"))
    ('16.8%', '–')
    """
    return MISSING if isnan(share) else f"{share:.1%}"


def signed(number: float) -> str:
    """Write a difference with three decimals and a real minus.

    Examples
    --------
    >>> signed(-0.25), signed(0.5), signed(float("nan"))
    ('−0.250', '0.500', '–')
    """
    # what rounds to zero has no sign
    return MISSING if isnan(number) else f"{round(number, 3) + 0.0:.3f}".replace("-", "−")


def p_value(number: float) -> str:
    """Write a p-value or a q-value.

    Examples
    --------
    >>> p_value(0.0001), p_value(0.0314), p_value(float("nan"))
    ('<0.001', '0.031', '–')
    """
    if isnan(number):
        return MISSING
    return "<0.001" if number < 0.001 else f"{number:.3f}"


def value(shown: Any) -> str:
    """Write a value of a table.

    Examples
    --------
    >>> value(1234567.891), value("clerk"), value(None)
    ('1,234,568', 'clerk', '–')
    """
    if shown is None:
        return MISSING
    if isinstance(shown, float | np.floating):
        shown = float(shown)
        return f"{shown:,.0f}" if abs(shown) >= 10_000 else f"{shown:,.6g}"
    return str(shown)


def listed(names: Iterable[object], *, last: str = "and") -> str:
    """Join names as one does in a sentence.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *others, final = [*map(str, names)] or [""]
    return f"{', '.join(others)} {last} {final}" if others else final


def by_value(values: Mapping[str, str]) -> dict[str, list[str]]:
    """Turn a mapping round: one sentence serves all names that have the same value.

    Examples
    --------
    >>> by_value({"a": "x", "b": "y", "c": "x"})
    {'x': ['a', 'c'], 'y': ['b']}
    """
    names: dict[str, list[str]] = {}
    for name, value in values.items():
        names.setdefault(value, []).append(name)
    return names


def plain(shown: Any) -> Any:
    """Give settings as data that YAML has: numpy's numbers as Python's, anything else as text."""
    if isinstance(shown, dict):
        return {str(key): plain(part) for key, part in shown.items()}
    if isinstance(shown, list | tuple):
        return [plain(part) for part in shown]
    if isinstance(shown, np.generic):
        return plain(shown.item())
    return shown if isinstance(shown, str | int | float | bool | None) else str(shown)
