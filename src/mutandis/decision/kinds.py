"""Kinds of decision makers that the section `decision` of an audit file can name.

A kind is a function in the registry: ``make(settings, context)``. `settings` are the keys of the
section as plain data, the name of the kind among them. What answers with scores is cut by a
`threshold`, and answers in words are translated, after the maker is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mutandis.decision.maker import DecisionMaker

__all__ = ["DecisionContext", "Made", "MakerKind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionContext:
    """What the other sections of an audit file, and the command line, contribute to a decision.

    Parameters
    ----------
    folder
        Where relative paths start.
    columns
        What a decision maker gets unless `columns` is set: the attributes that people are compared
        on, then the protected ones; no ids and no outcomes.
    trust_code
        Whether the caller allows to run code that the file names. No file can allow it.
    scores
        Whether scores are expected: the outcome is one, or a threshold is set.
    """

    folder: Path = Path()
    columns: tuple[str, ...] = ()
    trust_code: bool = False
    scores: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A decision maker, and the files that it was made from."""

    maker: DecisionMaker
    files: tuple[Path, ...] = ()


class MakerKind(Protocol):
    """Makes a decision maker of the settings of a section."""

    def __call__(self, settings: dict[str, Any], context: DecisionContext) -> Made:
        """Make it; a setting that a threshold must not read again is removed from `settings`."""
        ...
