"""Columns and populations, written down shortly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mutandis.data.columns import Categories, Numbers
from mutandis.data.population import Population

if TYPE_CHECKING:
    from collections.abc import Mapping


def numbers(*values: float) -> Numbers:
    return Numbers(np.array(values, dtype=np.float64))


def names(codes: Any, levels: Any) -> Categories:
    return Categories(np.array(codes, dtype=np.int32), tuple(levels))


def people(table: Mapping[str, Any] | pd.DataFrame) -> Population:
    return Population.from_frame(pd.DataFrame(table), columns=map(str, table))
