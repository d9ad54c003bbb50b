"""Worldviews: causal graphs, structural equations and the counterfactuals they imply."""

from mutandis.causal.counterfactual import (
    Counterfactuals,
    StructuralEquation,
    abduct,
    act,
    predict,
)
from mutandis.causal.equations import (
    AdditiveNoise,
    Equation,
    FittedEquation,
    FittedLinear,
    Linear,
    Predicted,
    finish,
)
from mutandis.causal.graph import Graph
from mutandis.causal.worldview import FittedWorldview, Worldview

__all__ = [
    "AdditiveNoise",
    "Counterfactuals",
    "Equation",
    "FittedEquation",
    "FittedLinear",
    "FittedWorldview",
    "Graph",
    "Linear",
    "Predicted",
    "StructuralEquation",
    "Worldview",
    "abduct",
    "act",
    "finish",
    "predict",
]
