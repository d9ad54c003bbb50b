"""Worldviews: causal graphs, structural equations and the counterfactuals they imply."""

from mutandis.causal.counterfactual import (
    Counterfactuals,
    Draws,
    StructuralEquation,
    abduct,
    act,
    predict,
)
from mutandis.causal.diagnostics.diagnosis import (
    Diagnosis,
    EquationCheck,
    IndependenceCheck,
    Movement,
    ResidualCheck,
)
from mutandis.causal.diagnostics.independences import Independence, implied_independences
from mutandis.causal.equations.additive import Additive, FittedAdditive
from mutandis.causal.equations.categorical import (
    Categorical,
    FittedCategorical,
    counterfactual_probabilities,
)
from mutandis.causal.equations.count import Count, FittedCount
from mutandis.causal.equations.dowhy_models import DowhyMechanism
from mutandis.causal.equations.equation import Equation, FittedEquation, Predicted
from mutandis.causal.equations.linear import FittedLinear, Linear
from mutandis.causal.equations.numeric import AdditiveNoise, finish
from mutandis.causal.equations.ordinal import FittedOrdinal, Ordinal
from mutandis.causal.equations.stated import FittedStated, Stated
from mutandis.causal.graph import Graph
from mutandis.causal.latent.latent import FittedLatent, Latent
from mutandis.causal.latent.nuts import LatentSample
from mutandis.causal.worldview import FittedWorldview, Worldview

__all__ = [
    "Additive",
    "AdditiveNoise",
    "Categorical",
    "Count",
    "Counterfactuals",
    "Diagnosis",
    "DowhyMechanism",
    "Draws",
    "Equation",
    "EquationCheck",
    "FittedAdditive",
    "FittedCategorical",
    "FittedCount",
    "FittedEquation",
    "FittedLatent",
    "FittedLinear",
    "FittedOrdinal",
    "FittedStated",
    "FittedWorldview",
    "Graph",
    "Independence",
    "IndependenceCheck",
    "Latent",
    "LatentSample",
    "Linear",
    "Movement",
    "Ordinal",
    "Predicted",
    "ResidualCheck",
    "Stated",
    "StructuralEquation",
    "Worldview",
    "abduct",
    "act",
    "counterfactual_probabilities",
    "finish",
    "implied_independences",
    "predict",
]
