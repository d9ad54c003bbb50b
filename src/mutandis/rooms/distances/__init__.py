"""Distances other than Gower's, HEOM and Mahalanobis'."""

from mutandis.rooms.distances.effects import ZHANG
from mutandis.rooms.distances.learned import HVDM, IVDM, PROPENSITY, THANH

__all__ = ["HVDM", "IVDM", "PROPENSITY", "THANH", "ZHANG"]
