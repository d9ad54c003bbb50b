"""A model behind an HTTP address: it stays where it is, and is asked row by row."""

from mutandis.decision.endpoint.maker import HttpMaker
from mutandis.decision.endpoint.retry_policy import RetryPolicy

__all__ = ["HttpMaker", "RetryPolicy"]
