"""The decision table: columns, attributes, protection, outcome, safe formulas."""
