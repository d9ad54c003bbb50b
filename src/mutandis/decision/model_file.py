"""A model's file: its bytes, and the hash that says later which model was asked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutandis.errors import DecisionError

__all__ = ["ModelFile", "read_model_file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """Which file a model came from; not where on the machine it was.

    Parameters
    ----------
    name
        The file's name.
    sha256
        Of its content.
    """

    name: str
    sha256: str

    def describe(self) -> dict[str, Any]:
        """Describe it as plain data."""
        return {"file": self.name, "sha256": self.sha256}


def read_model_file(path: str | Path, *, what: str) -> tuple[bytes, ModelFile]:
    """Read a file whole: what is hashed is what is loaded, even if the file changes in between.

    Parameters
    ----------
    path
        The file.
    what
        What error messages call it: "ONNX model".
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DecisionError(
            f"There is no file {path.name!r} where the {what} should be. Check the path; it is "
            "read relative to the folder of the settings."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is no path"
        raise DecisionError(
            f"The {what} {path.name!r} cannot be opened: {reason}. Check the path."
        ) from None
    if not content:
        raise DecisionError(f"The {what} {path.name!r} is empty. Check that it was saved.")
    return content, ModelFile(name=path.name, sha256=hashlib.sha256(content).hexdigest())
