"""Worldviews: causal graphs, structural equations and the counterfactuals they imply."""

from mutandis.scm.additive import Additive, Linear
from mutandis.scm.categorical import Categorical
from mutandis.scm.count import Count
from mutandis.scm.diagnosis import Diagnosis
from mutandis.scm.ordinal import Ordinal
from mutandis.scm.stated import Stated
from mutandis.scm.worldview import Worldview

__all__ = [
    "Additive",
    "Categorical",
    "Count",
    "Diagnosis",
    "Linear",
    "Ordinal",
    "Stated",
    "Worldview",
]
