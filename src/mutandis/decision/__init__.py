"""Decision makers, b(): rules, thresholds, functions and fitted models."""

from mutandis.decision.model import with_threshold

__all__ = ["with_threshold"]
