"""Models as decision makers: ONNX, skops and pickle files, and Python functions.

Extras: ``onnx``, ``skops`` and ``sklearn``, or ``models`` for all three.
"""

from mutandis.rooms.models.files import (
    load_function,
    load_pickle,
    load_skops,
    make_pickle,
    make_python,
    make_skops,
)
from mutandis.rooms.models.onnx import load_onnx, make_onnx

__all__ = [
    "load_function",
    "load_onnx",
    "load_pickle",
    "load_skops",
    "make_onnx",
    "make_pickle",
    "make_python",
    "make_skops",
]
