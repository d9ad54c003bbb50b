"""Decision makers, b(): what users make them with."""

from mutandis.decision.endpoint import HttpMaker, RetryPolicy
from mutandis.decision.model_files import load_function, load_pickle, load_skops
from mutandis.decision.onnx_model import load_onnx
from mutandis.decision.threshold import with_threshold

__all__ = [
    "HttpMaker",
    "RetryPolicy",
    "load_function",
    "load_onnx",
    "load_pickle",
    "load_skops",
    "with_threshold",
]
