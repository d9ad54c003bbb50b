"""A model behind an HTTP address: it stays where it is, and is asked row by row."""

from mutandis.decision.endpoint.maker import HttpMaker
from mutandis.decision.endpoint.patience import Patience

__all__ = ["HttpMaker", "Patience"]
