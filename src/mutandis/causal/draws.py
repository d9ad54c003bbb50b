"""Draws: many counterfactual populations instead of one.

Where the facts do not determine a person's noise, one counterfactual is a choice among many. Draws
show the others. Each is made when it is asked for, from a generator of its own: the i-th draw is
the same whichever were made before it, and on however many threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, overload

from mutandis.errors import PlanError

if TYPE_CHECKING:
    import numpy as np

    from mutandis.data.population import Population

__all__ = ["Draws", "spawn"]


@dataclass(frozen=True, slots=True)
class Draws(Sequence["Population"]):
    """A sequence of counterfactual populations, computed when looked at.

    Parameters
    ----------
    states
        The seed of each draw.
    make
        Makes a draw from a generator.
    """

    states: tuple[np.random.SeedSequence, ...] = ()
    make: Callable[[np.random.Generator], Population] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        """Count the draws."""
        return len(self.states)

    @overload
    def __getitem__(self, index: int) -> Population: ...
    @overload
    def __getitem__(self, index: slice) -> Draws: ...
    def __getitem__(self, index: int | slice) -> Population | Draws:
        """Make a draw, or choose some of them."""
        import numpy as np

        if isinstance(index, slice):
            return Draws(self.states[index], self.make)
        state = self.states[index]
        if self.make is None:
            raise IndexError("these counterfactuals were made without draws")
        return self.make(np.random.default_rng(state))


def spawn(draws: int, rng: np.random.Generator | None) -> tuple[np.random.SeedSequence, ...]:
    """Derive one seed a draw from the generator that was passed."""
    if draws < 0:
        raise PlanError(f"draws={draws} is negative. Give how many to make, or 0.")
    if not draws:
        return ()
    if rng is None:
        raise PlanError(
            f"draws={draws} needs a generator, so that the draws can be repeated. "
            "Pass rng=numpy.random.default_rng(SEED)."
        )
    # four words of the generator's own stream, then a tree of seeds: no draw depends on another
    import numpy as np

    root = np.random.SeedSequence(rng.integers(0, 2**32, size=4).tolist())
    return tuple(root.spawn(draws))
