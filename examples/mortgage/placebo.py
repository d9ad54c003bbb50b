"""What would the same audit find where there is nothing to find? Prints shares of complainants."""

from __future__ import annotations

import mutandis as mm

audit = mm.read_plan("audit.yaml").run()
table = audit.placebo(repeats=20, seed=1).table()
primary = table[(table["method"] == "cst_matched") & (table["k"] == 30)]
print(primary.drop(columns=["method", "k"]).round(3).to_string(index=False))
