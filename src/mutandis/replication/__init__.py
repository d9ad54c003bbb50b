"""The published runs, computed on their own and set next to the printed tables."""
