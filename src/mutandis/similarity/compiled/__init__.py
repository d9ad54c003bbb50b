"""Search kernels compiled to machine code by numba: one idea per file, each with its proof.

`jit.py`        how kernels are compiled and cached
`tree.py`       points put in an order in which neighbours lie together; nodes with boxes
`bounds.py`     how near the points of a box can be, at best
`selection.py`  the k-th nearest among weighted candidates, in linear time
`descent.py`    k nearest, and all within a limit, by descending the tree
`scan.py`       k nearest by a scan of one-byte coordinates: for many dimensions

All distances in here are float64 that hold integers: see `exact_in_floats` in `tree.py` for why no
operation ever rounds. Nothing outside this folder imports numba, and this folder is imported only
when a search is large enough to pay for it (`choose.py`).
"""
