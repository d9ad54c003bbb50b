"""What a check of a worldview found, as records."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from mutandis.causal.diagnostics.dependence import Dependence

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Aspect", "Diagnosis", "EquationCheck", "IndependenceCheck", "ResidualCheck"]

Aspect = Literal["level", "spread", "interaction", "distribution"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EquationCheck:
    """How much an equation explains.

    Parameters
    ----------
    child, family, parents
        The attribute, the family of its equation and its causes.
    measure
        How the fit is measured: "R²", "deviance explained" …, or "not available".
    fit
        The fit by that measure.
    hidden
        The hidden common cause that drives it too; the fit does not count what that explains.
    """

    child: str
    family: str
    parents: tuple[str, ...]
    measure: str
    fit: float | None = None
    hidden: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualCheck(Dependence):
    """Whether what an equation leaves over still depends on a column.

    Parameters
    ----------
    child
        The attribute.
    on
        The column; missing for the aspect "distribution", which is of the residuals alone.
    with_column
        For the aspect "interaction", the column that the effect of `on` may change with.
    aspect
        Whether the mean of the residuals changes with the column ("level"), how far they spread
        ("spread"), whether the effects of two causes change with each other ("interaction"), or
        whether values are spread as the family says ("distribution").
    p_adjusted
        The p-value, adjusted for the number of tests in the diagnosis by Holm's method.
    """

    child: str
    on: str | None
    with_column: str | None = None
    aspect: Aspect
    p_adjusted: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependenceCheck(Dependence):
    """Whether two attributes are independent where the graph says so.

    Parameters
    ----------
    first, second, given
        The worldview says: among people alike in `given`, `first` tells nothing about `second`.
    p_adjusted
        The p-value, adjusted for the number of tests in the diagnosis by Holm's method.
    """

    first: str
    second: str
    given: tuple[str, ...] = ()
    p_adjusted: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What a table says about a worldview.

    Parameters
    ----------
    rows
        How many rows the worldview was checked on.
    alpha
        A test whose adjusted p-value is below it is a problem.
    equations, residuals, independences
        The checks. One without a p-value was not done; its note says why.
    roots
        Attributes that nothing in the worldview causes.
    changed
        How many rows the intervention changes; missing without one.
    clipped
        For each attribute that moves, the share of these rows whose counterfactual was cut off at
        the bounds of its equation.
    outside
        For each, the share of these rows whose counterfactual lies outside the range of the facts.
    couplings
        Attributes whose counterfactuals rest on an assumed coupling, with its name.
    """

    rows: int
    alpha: float
    equations: tuple[EquationCheck, ...] = ()
    residuals: tuple[ResidualCheck, ...] = ()
    independences: tuple[IndependenceCheck, ...] = ()
    roots: tuple[str, ...] = ()
    changed: int | None = None
    clipped: Mapping[str, float] = field(default_factory=dict)
    outside: Mapping[str, float] = field(default_factory=dict)
    couplings: Mapping[str, str] = field(default_factory=dict)

    @property
    def checks(self) -> tuple[ResidualCheck | IndependenceCheck, ...]:
        """All checks that could have a p-value."""
        return (*self.residuals, *self.independences)

    @property
    def tests(self) -> int:
        """How many tests were done, and p-values are adjusted for."""
        return sum(check.p_value is not None for check in self.checks)

    @property
    def problems(self) -> tuple[ResidualCheck | IndependenceCheck, ...]:
        """The checks that contradict the worldview: adjusted p-value below alpha."""
        return tuple(check for check in self.checks if self.is_problem(check))

    def is_problem(self, check: ResidualCheck | IndependenceCheck) -> bool:
        """Tell whether a check of this diagnosis contradicts the worldview."""
        return check.p_adjusted is not None and check.p_adjusted < self.alpha

    def sentences(self) -> tuple[str, ...]:
        """Say what was found in plain sentences, problems first."""
        from mutandis.causal.diagnostics.sentences import sentences_of

        return sentences_of(self)

    def __str__(self) -> str:
        """Give the sentences, one a line."""
        return "\n".join(self.sentences())

    def as_dict(self) -> dict[str, Any]:
        """Give everything in types that JSON has."""
        return {
            "rows": self.rows,
            "alpha": self.alpha,
            "tests": self.tests,
            "adjustment": "holm",
            "equations": [_plain(check) for check in self.equations],
            "residuals": [
                {**_plain(check), "problem": self.is_problem(check)} for check in self.residuals
            ],
            "independences": [
                {**_plain(check), "problem": self.is_problem(check)} for check in self.independences
            ],
            "roots": list(self.roots),
            "changed": self.changed,
            "clipped": dict(self.clipped),
            "outside": dict(self.outside),
            "couplings": dict(self.couplings),
            "sentences": list(self.sentences()),
        }


def _plain(check: EquationCheck | ResidualCheck | IndependenceCheck) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(check).items()
    }
