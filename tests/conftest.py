"""What tests of several folders share: the published data, and one table in every frame type."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import settings

import mutandis

# With --import-mode=importlib, pytest loads a module of src twice if it comes to it before its
# package, and then no class is itself. Walking the packages loads them; one that cannot be loaded
# is reported by its own tests.
for _ in pkgutil.walk_packages(mutandis.__path__, "mutandis.", onerror=lambda name: None):
    pass

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

PUBLISHED = (
    "law_school.csv",
    "law_school_do_male.csv",
    "law_school_do_white.csv",
    "loan_application.csv",
    "loan_application_do_male.csv",
)

Columns = Mapping[str, Sequence[Any]]
AsFrame = Callable[[Columns], Any]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Find the folder with the published data, or skip the test and say what to set."""
    named = os.environ.get("MUTANDIS_DATA")
    shared = Path(__file__).parents[2] / "shared"
    folder = Path(named) if named else shared / "data"
    absent = [name for name in PUBLISHED if not (folder / name).is_file()]
    if not absent:
        return folder
    reason = (
        f"The published data is not in {named or '../shared/data'} (no {', '.join(absent)}). "
        "Set MUTANDIS_DATA to the folder that holds it."
    )
    # where the data was promised, its absence is no reason to leave tests out
    if named or (os.environ.get("CI") and shared.is_dir()):
        pytest.fail(reason)
    pytest.skip(reason)


def _arrow(columns: Columns) -> pa.Table:
    return pa.table({name: list(values) for name, values in columns.items()})


FRAMES: dict[str, AsFrame] = {
    "pandas": lambda columns: pd.DataFrame(dict(columns)),
    "polars": lambda columns: pl.DataFrame(dict(columns)),
    "polars-lazy": lambda columns: pl.LazyFrame(dict(columns)),
    "pyarrow": _arrow,
    "duckdb": lambda columns: duckdb.from_arrow(_arrow(columns)),
    "dict": dict,
}


@pytest.fixture(params=FRAMES)
def as_frame(request: pytest.FixtureRequest) -> AsFrame:
    """Give a maker of frames; a test that asks for it runs once for every frame type."""
    return FRAMES[request.param]
