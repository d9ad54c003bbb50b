"""Exact sums of marks over control and test groups."""
