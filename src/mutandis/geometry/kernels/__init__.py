"""Search kernels compiled to machine code by numba: one idea per file, each with its proof.

`jit.py`        how kernels are compiled and cached
`tree.py`       what is searched: points in an order in which neighbours lie together, nodes, boxes
`bounds.py`     how near the points of a box can be, at best, and boxes with slanted sides
`steps.py`      points of a leaf in 16-bit steps: which may be near, a dozen at a time
`reservoir.py`  the k-th nearest among weighted candidates, and bins that shrink the radius
`descent.py`    k nearest, and all within a limit, by descending the tree
`scan.py`       k nearest by a scan of one-byte coordinates: for many dimensions

Distances in here are float64 that hold integers: see `exact_in_floats` in `tree.py` for why none is
ever rounded. Bounds may be; each proof says how much, and on which side. Nothing outside this
folder imports numba, and this folder is imported only when a search is large enough to pay for it
(`choose.py`).
"""
