"""Findings of multiple discrimination: flagged only if flagged on every attribute."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mutandis.evidence.findings import Comparison, Findings, Group
from mutandis.evidence.interval import Interval
from mutandis.search.share import Share

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["MultipleFindings", "combine_findings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipleFindings(Findings):
    """Findings about people who are protected on several attributes, all of them together.

    Groups and Δp are those of the attribute with the weakest evidence, complainant by complainant.

    Parameters
    ----------
    parts
        The findings on each attribute: the same complainants in the same order.
    """

    parts: Mapping[str, Findings] = field(default_factory=dict)

    def take(self, complainants: NDArray[np.intp]) -> Self:
        """Give the chosen complainants' findings, on each attribute too."""
        # zero-argument super() does not work in a class with slots
        chosen = Findings.take(self, complainants)
        parts = {name: found.take(complainants) for name, found in self.parts.items()}
        return replace(chosen, parts=parts)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Compute the findings table; after the usual columns, those of each attribute."""
        # zero-argument super() does not work in a class with slots
        table = Findings.columns(self)
        for attribute, found in self.parts.items():
            table[f"delta_p_{attribute}"] = found.comparison.delta_p
            table[f"p_value_{attribute}"] = found.comparison.interval.p_value
            table[f"verdict_{attribute}"] = found.verdicts()
            if found.draw_share is not None:
                table[f"draw_share_{attribute}"] = found.draw_share
        return table


def combine_findings(
    parts: Mapping[str, Findings],
    *,
    outcome_cf: NDArray[Any] | None,
    weakest: Callable[[NDArray[np.float64]], NDArray[np.intp]],
    adjust: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> MultipleFindings:
    """Put the findings on each attribute together (an intersection-union test).

    The claim is "on every attribute", so each of its tests must reject at level α, and no
    correction is due: p is the largest of the p-values. The bounds are the outermost ones; both
    are at least as safe for the smallest difference as for each of them.

    Parameters
    ----------
    parts
        The findings by attribute.
    outcome_cf
        What would have been decided, whichever attribute is intervened on.
    weakest
        Finds, among the differences (attributes × complainants), each one's weakest evidence.
    adjust
        Adjusts p-values for the number of complainants.
    """
    found = list(parts.values())
    first = found[0]
    delta_p = np.stack([each.comparison.delta_p for each in found])
    chosen = weakest(delta_p)
    intervals = [each.comparison.interval for each in found]
    p_value = np.max([each.p_value for each in intervals], axis=0)
    return MultipleFindings(
        method=first.method,
        k=first.k,
        ids=first.ids,
        outcome=first.outcome,
        outcome_cf=outcome_cf,
        is_negative=first.is_negative,
        control=_pick_groups([each.control for each in found], chosen),
        test=_pick_groups([each.test for each in found], chosen),
        comparison=Comparison(
            delta_p=_pick(delta_p, chosen),
            evidence=np.all([each.comparison.evidence for each in found], axis=0),
            significant=np.all([each.comparison.significant for each in found], axis=0),
            interval=Interval(
                low=np.min([each.low for each in intervals], axis=0),
                high=np.max([each.high for each in intervals], axis=0),
                p_value=p_value,
                degenerate=np.any([each.degenerate for each in intervals], axis=0),
            ),
        ),
        q_value=adjust(p_value),
        alpha=first.alpha,
        insufficient=_any([each.insufficient for each in found]),
        parts=parts,
    )


def _any(masks: Sequence[NDArray[np.bool_] | None]) -> NDArray[np.bool_] | None:
    """Who cannot be compared on some attribute cannot be on all of them."""
    known = [mask for mask in masks if mask is not None]
    return np.any(known, axis=0) if known else None


def _pick(columns: Sequence[NDArray[Any]] | NDArray[Any], chosen: NDArray[np.intp]) -> NDArray[Any]:
    return np.stack(list(columns))[chosen, np.arange(len(chosen))]


def _pick_groups(groups: Sequence[Group], chosen: NDArray[np.intp]) -> Group:
    return Group(
        share=Share(
            negatives=_pick([group.share.negatives for group in groups], chosen),
            size=_pick([group.share.size for group in groups], chosen),
            split=_pick([group.share.split for group in groups], chosen),
        ),
        rows=_pick([group.rows for group in groups], chosen),
        radius=_pick([group.radius for group in groups], chosen),
    )
