"""How numbers, values and lists are written in a document."""

from __future__ import annotations

from functools import wraps
from io import StringIO
from math import isinf, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from mutandis.data.columns import jsonable, plain_value, write_number
from mutandis.outcomes.outcome import MISSING, capitalised, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["FILTERS", "MISSING", "as_yaml", "capitalised", "group_by_value", "known", "listed"]


def _for_numbers(write: Callable[[Any], str]) -> Callable[[float | str | None], str]:
    """Write what is missing as a dash; a text ("withheld", a band) is written already."""

    @wraps(write)
    def written(number: float | str | None) -> str:
        if isinstance(number, str):
            return number
        # numpy's round() is not Python's
        return MISSING if number is None or isnan(number) else write(plain_value(number))

    return written


@_for_numbers
def count(number: int) -> str:
    return f"{number:,}"


@_for_numbers
def percent(share: float) -> str:
    return f"{share:.1%}"


@_for_numbers
def signed(number: float) -> str:
    """Write a difference with three decimals and a real minus."""
    if isinf(number):
        return "∞" if number > 0 else "−∞"
    # what rounds to zero has no sign
    return f"{round(number, 3) + 0.0:.3f}".replace("-", "−")


@_for_numbers
def p_value(number: float) -> str:
    return "<0.001" if number < 0.001 else f"{number:.3f}"


@_for_numbers
def distance(number: float) -> str:
    return f"{number:.4f}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Write how many there are of something."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def value(shown: Any) -> str:
    """Write a value of a table."""
    if shown is None:
        return MISSING
    if isinstance(shown, float | np.floating):
        return write_number(float(shown))
    return str(shown)


def group_by_value(values: Mapping[str, str]) -> dict[str, list[str]]:
    """Collect the names that have the same value: one sentence serves all of them."""
    names: dict[str, list[str]] = {}
    for name, each in values.items():
        names.setdefault(each, []).append(name)
    return names


def known(shown: Any) -> Any:
    """Convert to a value of Python, and a missing number to None."""
    shown = plain_value(shown)
    return None if isinstance(shown, float) and isnan(shown) else shown


def as_yaml(data: Any) -> str:
    """Write plain data as YAML."""
    from ruamel.yaml import YAML

    writer = YAML(typ="safe", pure=True)
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.default_flow_style = None  # short lists stay on one line
    writer.width = 78
    text = StringIO()
    writer.dump(jsonable(data), text)
    return text.getvalue()


# what templates write with
FILTERS: Mapping[str, Callable[..., str]] = {
    write.__name__: write
    for write in (capitalised, count, distance, listed, p_value, percent, plural, signed, value)
}
