"""What is asked over a network takes time: progress, and a record of what was asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mutandis.decision.endpoint import HttpMaker
from mutandis.decision.threshold import RelabelledMaker, Thresholded

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutandis.decision.maker import DecisionMaker

__all__ = ["query_records", "with_progress"]


def with_progress(maker: DecisionMaker, on_progress: Callable[[int, int], None]) -> DecisionMaker:
    """Give the same decision maker, which tells how far it is; others than slow ones stay silent.

    Parameters
    ----------
    maker
        Who decides.
    on_progress
        Called with the number of rows answered, and of all that are asked about, once before the
        first batch and once after each.

    Examples
    --------
    >>> from mutandis.decision import Rule
    >>> rule = Rule.parse("salary > 15")
    >>> with_progress(rule, lambda done, total: None) is rule
    True
    """
    if isinstance(maker, HttpMaker):
        return replace(maker, on_progress=on_progress)
    if isinstance(maker, Thresholded):
        return replace(maker, scorer=with_progress(maker.scorer, on_progress))
    if isinstance(maker, RelabelledMaker):
        return replace(maker, maker=with_progress(maker.maker, on_progress))
    return maker


def query_records(maker: DecisionMaker | None) -> tuple[dict[str, Any], ...]:
    """Give the requests that a decision maker has made so far; none for one that makes none.

    Examples
    --------
    >>> query_records(None)
    ()
    """
    if isinstance(maker, Thresholded):
        return query_records(maker.scorer)
    if isinstance(maker, RelabelledMaker):
        return query_records(maker.maker)
    return maker.queries if isinstance(maker, HttpMaker) else ()
