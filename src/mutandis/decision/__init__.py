"""Decision makers, b(): what users make them with, imported when it is first asked for."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOME_OF = {
    "HttpMaker": "endpoint",
    "RetryPolicy": "endpoint",
    "load_function": "model_files",
    "load_onnx": "onnx_model",
    "load_pickle": "model_files",
    "load_skops": "model_files",
    "with_threshold": "threshold",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for (PEP 562)."""
    from importlib import import_module

    if name not in _HOME_OF:
        raise AttributeError(f"module 'mutandis.decision' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"mutandis.decision.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
