"""Decision makers: b(), who or what decided."""

from mutandis.decision.adapters import (
    FormulaScores,
    FunctionMaker,
    Rule,
    as_decision_maker,
    required_columns,
    with_threshold,
)
from mutandis.decision.agreement import RecordAgreement, compare_with_record
from mutandis.decision.endpoint import HttpMaker, RetryPolicy
from mutandis.decision.maker import (
    DecisionMaker,
    DescribedMaker,
    decide,
    describe_maker,
)
from mutandis.decision.models import ModelMaker, ModelScores
from mutandis.decision.onnx_models import OnnxMaker, load_onnx
from mutandis.decision.pickle_files import load_pickle
from mutandis.decision.progress import query_records, with_progress
from mutandis.decision.python_function import load_function
from mutandis.decision.skops_files import load_skops
from mutandis.decision.threshold import RelabelledMaker, Threshold, Thresholded

__all__ = [
    "DecisionMaker",
    "DescribedMaker",
    "FormulaScores",
    "FunctionMaker",
    "HttpMaker",
    "ModelMaker",
    "ModelScores",
    "OnnxMaker",
    "RecordAgreement",
    "RelabelledMaker",
    "RetryPolicy",
    "Rule",
    "Threshold",
    "Thresholded",
    "as_decision_maker",
    "compare_with_record",
    "decide",
    "describe_maker",
    "load_function",
    "load_onnx",
    "load_pickle",
    "load_skops",
    "query_records",
    "required_columns",
    "with_progress",
    "with_threshold",
]
