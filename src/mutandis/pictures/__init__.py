"""Pictures: plots of findings and drawings of worldviews."""
