"""Structural equations: the protocol, and one file per family."""
