"""Verdicts: pure functions of sums over groups and a rule."""
