"""Canonical order of rows and least squares: independent of row order and threads."""
