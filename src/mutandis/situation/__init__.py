"""Situation testing: spaces, groups, and their comparison."""
