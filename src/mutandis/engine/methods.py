"""The methods, as values over one pipeline.

The four of the paper differ in three choices only: where the test group is searched, whether the
neighbours count, and whether the search centers count. The matched comparison takes its test group
from the counterfactuals of the whole control group.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Center(Enum):
    """Around whom the test group is searched."""

    FACTUAL = "factual"
    """The complainant's facts: all else equal (ceteris paribus)."""
    COUNTERFACTUAL = "counterfactual"
    """The complainant's counterfactual: changing what needs to be changed (mutatis mutandis)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A way to compare a complainant with people of the reference status."""

    # for tables: short, and in words
    name: str
    title: str
    center: Center = Center.COUNTERFACTUAL  # around whom the test group is searched
    count_neighbours: bool = True  # whether the k nearest people count
    count_centers: bool = False  # whether the own outcome and the counterfactual's count
    matched: bool = False  # whether the test group holds the matches of the control group

    @property
    def needs_counterfactual(self) -> bool:
        """Whether D^CF is needed."""
        return self.center is Center.COUNTERFACTUAL

    @property
    def needs_counterfactual_outcome(self) -> bool:
        """Whether somebody must decide on the counterfactual."""
        return self.count_centers

    @property
    def has_tipping(self) -> bool:
        """Whether a part of the effect can be tried: b() is not asked about people on the way."""
        return self.needs_counterfactual and not self.count_centers


ST = Method(name="st", title="ST", center=Center.FACTUAL)
CST_WITHOUT = Method(name="cst_without", title="CST (w/o)")
CST_WITH = Method(name="cst_with", title="CST (w/)", count_centers=True)
CF = Method(name="cf", title="CF", count_neighbours=False, count_centers=True)
CST_MATCHED = Method(name="cst_matched", title="CST (matched)", matched=True)

METHODS = {method.name: method for method in (ST, CST_WITHOUT, CST_WITH, CF, CST_MATCHED)}
"""All methods by name, in the order of the tables."""
