"""Hidden common causes: one unobserved U behind several attributes."""
