"""The contract of hidden common causes, which a worldview can have next to its equations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutandis.data.columns import Columns
    from mutandis.scm.family import Equation, Fitted, Rng

__all__ = ["FittedHiddenCause", "HiddenCause"]


class HiddenCause(Protocol):
    """An unobserved cause of several attributes, as declared."""

    @property
    def name(self) -> str:
        """Its name, which is no column."""
        ...

    @property
    def equations(self) -> Mapping[str, Equation]:
        """The equation of each attribute that it drives."""
        ...

    @property
    def residual_noise(self) -> bool:
        """Whether each attribute keeps its own noise in the counterfactual world."""
        ...

    @property
    def couplings(self) -> Mapping[str, str]:
        """The attributes whose counterfactuals rest on an assumption about it, with its name."""
        ...

    def fit(self, columns: Columns) -> FittedHiddenCause:
        """Estimate it from factual columns."""
        ...


class FittedHiddenCause(Protocol):
    """A hidden common cause with its coefficients."""

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that it is learned from."""
        ...

    @property
    def equations(self) -> Mapping[str, Fitted[Any]]:
        """The equation of each attribute given the hidden cause."""
        ...

    def abduct(self, columns: Columns, *, rng: Rng = None) -> Mapping[str, Any]:
        """Recover it from the facts, and the noise of each attribute that it drives."""
        ...
