"""One route from worlds to counts: exact sums of marks over control and test groups."""
