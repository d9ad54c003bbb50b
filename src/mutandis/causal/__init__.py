"""Worldviews: causal graphs, structural equations and the counterfactuals they imply."""

from mutandis.causal.diagnostics.diagnosis import Diagnosis
from mutandis.causal.equations.additive import Additive
from mutandis.causal.equations.categorical import Categorical
from mutandis.causal.equations.count import Count
from mutandis.causal.equations.linear import Linear
from mutandis.causal.equations.ordinal import Ordinal
from mutandis.causal.equations.stated import Stated
from mutandis.causal.latent.latent import Latent
from mutandis.causal.worldview import Worldview

__all__ = [
    "Additive",
    "Categorical",
    "Count",
    "Diagnosis",
    "Latent",
    "Linear",
    "Ordinal",
    "Stated",
    "Worldview",
]
