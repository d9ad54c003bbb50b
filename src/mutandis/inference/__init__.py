"""How sure: intervals, tests and many complainants."""

from mutandis.inference.intervals import INTERVALS, IntervalMethod, IntervalName, wald
from mutandis.inference.multiplicity import Adjustment, adjust

__all__ = ["INTERVALS", "Adjustment", "IntervalMethod", "IntervalName", "adjust", "wald"]
