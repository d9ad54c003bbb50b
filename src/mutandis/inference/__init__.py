"""How sure: intervals, tests and many complainants."""

from mutandis.inference.adjusted import agresti_caffo, newcombe
from mutandis.inference.fisher import fisher
from mutandis.inference.intervals import (
    DEFAULT_INTERVAL,
    INTERVALS,
    REJECTS,
    TESTS,
    IntervalMethod,
    IntervalName,
)
from mutandis.inference.multiplicity import Adjustment, adjust
from mutandis.inference.power import PowerAnalysis, analyse_power
from mutandis.inference.score import miettinen_nurminen
from mutandis.inference.wald_interval import wald

__all__ = [
    "DEFAULT_INTERVAL",
    "INTERVALS",
    "REJECTS",
    "TESTS",
    "Adjustment",
    "IntervalMethod",
    "IntervalName",
    "PowerAnalysis",
    "adjust",
    "agresti_caffo",
    "analyse_power",
    "fisher",
    "miettinen_nurminen",
    "newcombe",
    "wald",
]
