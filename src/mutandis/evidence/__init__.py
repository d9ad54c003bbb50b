"""Evidence: methods, groups, their comparison, intervals, multiplicity, power."""
