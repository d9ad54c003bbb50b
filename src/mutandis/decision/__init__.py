"""Decision makers: b(), who or what decided."""

from mutandis.decision.agreement import RecordAgreement, compare_with_record
from mutandis.decision.endpoint import HttpMaker, RetryPolicy
from mutandis.decision.maker import (
    DecisionMaker,
    DescribedMaker,
    decide,
    describe_maker,
    query_records,
    required_columns,
    with_progress,
)
from mutandis.decision.model import FunctionMaker, ModelMaker, as_decision_maker
from mutandis.decision.model_files import load_function, load_pickle, load_skops
from mutandis.decision.onnx_model import load_onnx
from mutandis.decision.rule import Rule
from mutandis.decision.threshold import RelabelledMaker, Thresholded, with_threshold

__all__ = [
    "DecisionMaker",
    "DescribedMaker",
    "FunctionMaker",
    "HttpMaker",
    "ModelMaker",
    "RecordAgreement",
    "RelabelledMaker",
    "RetryPolicy",
    "Rule",
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
