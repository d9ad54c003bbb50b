"""Nearest-neighbour search: exact distances, fair ties, exact results."""
