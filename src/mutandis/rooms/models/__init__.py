"""Models as decision makers: ONNX, skops and pickle files, Python functions, and their reasons.

Extras: ``onnx``, ``skops`` and ``sklearn``, or ``models`` for all three.
"""

from mutandis.rooms.models.files import (
    explain_change,
    load_function,
    load_pickle,
    load_skops,
    make_pickle,
    make_python,
    make_skops,
)
from mutandis.rooms.models.onnx import load_onnx, make_onnx

__all__ = [
    "explain_change",
    "load_function",
    "load_onnx",
    "load_pickle",
    "load_skops",
    "make_onnx",
    "make_pickle",
    "make_python",
    "make_skops",
]
