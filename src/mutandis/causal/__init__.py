"""Worldviews: causal graphs, structural equations and the counterfactuals they imply."""

from mutandis.causal.counterfactual import (
    Counterfactuals,
    StructuralEquation,
    abduct,
    act,
    predict,
)
from mutandis.causal.diagnostics.check import check_worldview
from mutandis.causal.diagnostics.diagnosis import (
    Diagnosis,
    EquationCheck,
    IndependenceCheck,
    ResidualCheck,
)
from mutandis.causal.diagnostics.independences import Independence, implied_independences
from mutandis.causal.draws import Draws
from mutandis.causal.equations.additive import Additive, FittedAdditive
from mutandis.causal.equations.categorical import Categorical, FittedCategorical
from mutandis.causal.equations.count import Count, FittedCount
from mutandis.causal.equations.dowhy_models import DowhyMechanism, worldview_from_dowhy
from mutandis.causal.equations.equation import Equation, FittedEquation, Predicted, finish
from mutandis.causal.equations.gumbel import counterfactual_probabilities
from mutandis.causal.equations.linear import AdditiveNoise, FittedLinear, Linear
from mutandis.causal.equations.ordinal import FittedOrdinal, Ordinal
from mutandis.causal.equations.stated import FittedStated, Stated
from mutandis.causal.graph import Graph
from mutandis.causal.latent.latent import FittedLatent, Latent
from mutandis.causal.latent.nuts import LatentSample, sample_latent
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
    "Ordinal",
    "Predicted",
    "ResidualCheck",
    "Stated",
    "StructuralEquation",
    "Worldview",
    "abduct",
    "act",
    "check_worldview",
    "counterfactual_probabilities",
    "finish",
    "implied_independences",
    "predict",
    "sample_latent",
    "worldview_from_dowhy",
]
