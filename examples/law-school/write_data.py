"""Write law_school.csv: the published survey with the decision of the paper's admission rule.

The environment variable MUTANDIS_DATA names the folder that holds the published tables.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

folder = Path(os.environ.get("MUTANDIS_DATA", "../../../shared/data"))
applicants = pd.read_csv(folder / "law_school.csv", sep="|")
score = 0.6 * applicants["UGPA"] + 0.4 * applicants["LSAT"]
applicants["admitted"] = (score >= 20.8).astype(int)
applicants.to_csv("law_school.csv", index=False)
