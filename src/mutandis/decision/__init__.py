"""Decision makers: b(), who or what decided."""

from mutandis.decision.adapters import (
    FunctionMaker,
    ModelMaker,
    Rule,
    as_decision_maker,
    required_columns,
)
from mutandis.decision.maker import DecisionMaker, decide

__all__ = [
    "DecisionMaker",
    "FunctionMaker",
    "ModelMaker",
    "Rule",
    "as_decision_maker",
    "decide",
    "required_columns",
]
