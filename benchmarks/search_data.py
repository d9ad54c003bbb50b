"""The data on which searches are timed: two published tables, and synthetic ones of many shapes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mutandis.data.attribute import Attribute, AttributeKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

PROTECTED_SHARE = 0.35
SHAPES = ((2, 0), (5, 0), (8, 4), (20, 10))
LEVELS = 5
FACTORS = 3
# how much of a correlated attribute the latent factors do not explain
_OWN_NOISE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with who is protected in it: they ask, and the others are searched."""

    frame: pd.DataFrame
    attributes: tuple[Attribute, ...]
    is_protected: NDArray[np.bool_]
    is_negative: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a table comes from, and what is known of it before it is made."""

    name: str
    rows: int
    columns: int
    ks: tuple[int, ...]
    make: Callable[[], Table]
    shape: str = ""
    missing: str = ""


def published(folder: Path) -> list[Source]:
    """Give the loan and the law-school data, with a note where a file is missing."""
    loan = _Published(
        path=folder / "loan_application.csv",
        attributes=("AnnualSalary", "AccountBalance"),
        protected=("Gender", 1),
        reference=0,
        negative=("LoanApproval", -1),
    )
    law = _Published(
        path=folder / "law_school.csv",
        attributes=("LSAT", "UGPA"),
        protected=("sex", "Female"),
        reference="Male",
        # the decision plays no part in the search: any binary outcome does
        negative=("race_nonwhite", "NonWhite"),
    )
    sizes = {"loan": (loan, 4_993), "law school": (law, 21_790)}
    return [
        Source(
            name=name,
            rows=rows,
            columns=len(table.attributes),
            ks=(100,),
            make=table.read,
            missing="" if table.path.exists() else f"skipped: there is no {table.path}",
        )
        for name, (table, rows) in sizes.items()
    ]


def synthetic(
    rows: Sequence[int],
    ks: Sequence[int],
    *,
    shapes: Sequence[tuple[int, int]] = SHAPES,
    dependences: Sequence[str] = ("independent", "correlated"),
) -> list[Source]:
    """Give synthetic tables of every size, shape and dependence, the small ones first."""
    return [
        Source(
            name=f"{describe_shape(numeric, nominal)}, {dependence}",
            shape=f"{describe_shape(numeric, nominal)}, {dependence}",
            rows=size,
            columns=numeric + nominal,
            ks=tuple(ks),
            make=partial(simulate, size, numeric, nominal, correlated=dependence == "correlated"),
        )
        for size in sorted(rows)
        for numeric, nominal in shapes
        for dependence in dependences
    ]


def describe_shape(numeric: int, nominal: int) -> str:
    return f"{numeric} numeric" + (f" + {nominal} nominal" if nominal else "")


def simulate(rows: int, numeric: int, nominal: int, *, correlated: bool) -> Table:
    """Draw standard normal numbers and names with equally likely levels."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(rows, FACTORS)) if correlated else None
    frame: dict[str, NDArray[Any]] = {}
    for place in range(numeric):
        frame[f"number {place}"] = _normal(rng, rows, factors)
    for place in range(nominal):
        hidden = _normal(rng, rows, factors)
        # ranks, cut into fifths: each level is equally likely whatever the numbers are
        fifths = np.quantile(hidden, np.arange(1, LEVELS) / LEVELS)
        frame[f"name {place}"] = np.searchsorted(fifths, hidden)
    kinds = [AttributeKind.CONTINUOUS] * numeric + [AttributeKind.NOMINAL] * nominal
    return Table(
        frame=pd.DataFrame(frame),
        attributes=tuple(
            Attribute(name=name, kind=kind) for name, kind in zip(frame, kinds, strict=True)
        ),
        is_protected=rng.random(rows) < PROTECTED_SHARE,
        is_negative=rng.random(rows) < 0.5,
    )


def _normal(
    rng: np.random.Generator, rows: int, factors: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    own = rng.normal(size=rows)
    if factors is None:
        return own
    loadings = rng.normal(size=FACTORS)
    return np.asarray(factors @ loadings + _OWN_NOISE * own)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Published:
    path: Path
    attributes: tuple[str, ...]
    protected: tuple[str, Any]
    reference: Any
    negative: tuple[str, Any]

    def read(self) -> Table:
        frame = pd.read_csv(self.path, sep="|")
        status, protected = self.protected
        frame = frame[frame[status].isin([protected, self.reference])].reset_index(drop=True)
        outcome, negative = self.negative
        return Table(
            frame=frame[list(self.attributes)],
            attributes=tuple(
                Attribute(name=name, kind=AttributeKind.CONTINUOUS) for name in self.attributes
            ),
            is_protected=(frame[status] == protected).to_numpy(),
            is_negative=(frame[outcome] == negative).to_numpy(),
        )
