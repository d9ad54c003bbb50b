"""Estimation without a trace of row order or threads."""
