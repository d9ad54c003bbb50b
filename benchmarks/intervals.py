"""How long comparisons with every interval take for a million complainants at five k.

python benchmarks/intervals.py [ROWS]

Refusals are drawn uniformly, so that every pair occurs: the most work that whole counts can be. The
last column has places split among ties (k = 15 only), where nearly every complainant is a case of
her own. Seconds of the processor, since others use the machine too.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from time import process_time

import numpy as np

from mutandis.engine.tally import Sums
from mutandis.outcomes.binary import REFUSED
from mutandis.outcomes.intervals import INTERVALS
from mutandis.outcomes.measures import RISK_DIFFERENCE
from mutandis.outcomes.outcome import Rule
from mutandis.verdicts.compare import compare

KS = (15, 30, 50, 75, 100)


def drawn(rng: np.random.Generator, rows: int, k: int, most_split: int) -> Sums:
    size, split = np.full(rows, k), rng.integers(1, most_split + 1, rows)
    return Sums.of(marks=rng.integers(0, k * split + 1), places=size, parts=split)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rng = np.random.default_rng(0)
    whole = [[drawn(rng, rows, k, 1) for _ in range(2)] for k in KS]
    tied = [drawn(rng, rows // 10, 15, 20) for _ in range(2)]
    print(f"{'interval':<20} {rows:,} × {len(KS)} k, whole   {rows // 10:,} × 1 k, tied")
    for name in INTERVALS:
        rule = Rule(
            kind=REFUSED,
            measure=RISK_DIFFERENCE,
            interval=name,
            tau=Fraction(0),
            alpha=0.05,
        )
        compare(drawn(rng, 9, 3, 1), drawn(rng, 9, 3, 1), rule)  # imports
        start = process_time()
        for control, test in whole:
            compare(control, test, rule)
        middle = process_time()
        compare(*tied, rule)
        print(f"{name:<20} {middle - start:18.2f} s {process_time() - middle:20.2f} s")


if __name__ == "__main__":
    main()
