"""The errors that mutandis raises on purpose.

Every message says what was found, what is allowed and what to do. Messages name columns, counts
and what the caller declared; they never quote cells, which may identify a person.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from unicodedata import category

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_SHOWN = 60
_LISTED = 12
_COMPARED = 200  # characters of a name
_ALIKE = 0.5  # of names that share half of their letters in the same order
_ADDRESS = re.compile(r"://[^\s\'\"]*")
# control characters, half and unknown ones, separators of lines; marks that turn the direction
_NOT_SHOWN = {"Cc", "Cs", "Cn", "Zl", "Zp"}
_BIDI_CONTROLS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def printable(text: str, *, keep: str = "\n\t") -> str:
    r"""Replace what a terminal or a page would obey, rather than show, by a mark.

    Names of columns, ids and files are whatever their authors want them to be.

    Examples
    --------
    >>> printable("\x1b[2J is not obeyed\n")
    '�[2J is not obeyed\n'
    """
    return "".join(
        "�" if (category(c) in _NOT_SHOWN or c in _BIDI_CONTROLS) and c not in keep else c
        for c in text
    )


class MutandisError(Exception):
    """Base of all errors that mutandis raises on purpose.

    Examples
    --------
    >>> import mutandis as mm
    >>> try:
    ...     mm.Protection("gender", value="f", reference="f")
    ... except mm.MutandisError as error:
    ...     print(type(error).__name__)
    PlanError
    """

    def __str__(self) -> str:
        """Show the sentence; `KeyError`, which one of these is too, would show its repr."""
        return printable(str(self.args[0])) if self.args else ""


class PlanError(MutandisError, ValueError):
    """The settings of an audit contradict each other or leave something out."""


class SettingsError(PlanError):
    """A file of settings or of a worldview that cannot be read as it is written."""


class InputError(MutandisError, ValueError):
    """The table of decisions cannot be audited as it is."""


class UnknownColumnError(InputError):
    """A name that is no column of the table."""


class KindError(InputError):
    """A column whose values do not fit the kind that was declared for it."""


class MissingValuesError(InputError):
    """Missing or infinite values in columns that the audit needs."""


class OutcomeError(InputError):
    """An outcome that is not binary, or whose negative value does not occur."""


class ProtectionError(InputError):
    """No protected rows, or no reference rows."""


class GroupSizeError(InputError):
    """A group size k that a search space cannot fill."""


class AlignmentError(InputError):
    """Ready-made counterfactuals whose rows are not those of the table."""


class UnknownIdError(InputError, KeyError):
    """An id that no row, or no complainant, has."""


class OutputError(MutandisError):
    """Results that cannot be written where they should be, or are not what they were."""


class WorldviewError(MutandisError, ValueError):
    """A causal graph or structural equation that cannot be used."""


class CycleError(WorldviewError):
    """A worldview in which something causes itself."""


class RootError(WorldviewError):
    """A worldview in which the protected attribute has causes."""


class EquationError(WorldviewError):
    """A structural equation that cannot be fitted to the table, or applied to it."""


class FormulaError(MutandisError, ValueError):
    """A formula outside the safe expression language."""


class DecisionError(MutandisError, ValueError):
    """A decision maker that does not answer as agreed."""


class MutandisWarning(UserWarning):
    """Something that an auditor should know, but that does not stop the audit.

    Examples
    --------
    >>> import warnings
    >>> import mutandis as mm
    >>> warnings.simplefilter("error", mm.MutandisWarning)  # to stop at the first one
    """

    def __str__(self) -> str:
        """Show the sentence."""
        return printable(super().__str__())


def shown(name: object) -> str:
    """Quote a name in a message, its middle left out if it is long."""
    # an address may contain a password
    quoted = _ADDRESS.sub("://…", repr(name))
    half = _SHOWN // 2
    return quoted if len(quoted) <= _SHOWN else f"{quoted[:half]}…{quoted[-half:]}"


def listed(names: Collection[str], *, near: object = None, most: int = _LISTED) -> str:
    """Quote names one after the other; of more than `most`, those that are like `near` come first.

    Examples
    --------
    >>> listed([*(f"column_{n}" for n in range(30)), "annual_salary"], near="salary")[:28]
    "'annual_salary', 'column_0',"
    """
    order = list(names)
    if near is not None and len(order) > most:
        from difflib import get_close_matches

        short = [str(name)[:_COMPARED] for name in order]
        close = get_close_matches(str(near)[:_COMPARED], short, n=most, cutoff=_ALIKE)
        order.sort(key=lambda name: -_place(close, str(name)[:_COMPARED]))
    some = ", ".join(map(shown, order[:most]))
    return some if len(order) <= most else f"{some} and {len(order) - most} more"


def _place(close: list[str], name: str) -> int:
    return len(close) - close.index(name) if name in close else 0


def suggest(name: object, known: Iterable[str]) -> str:
    """Suggest the known name that is most like an unknown one, as a sentence; or nothing.

    Examples
    --------
    >>> suggest("Linnear", ["linear", "count"])
    " Did you mean 'linear'?"
    """
    from difflib import get_close_matches

    folded = {other.casefold(): other for other in known}
    close = get_close_matches(str(name).casefold()[:_COMPARED], folded, n=1)
    return f" Did you mean {shown(folded[close[0]])}?" if close else ""
