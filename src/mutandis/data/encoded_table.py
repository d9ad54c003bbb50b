"""A table whose text is kept as codes: what lets ten million decisions fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EncodedTable", "with_text"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedTable:
    """A pandas frame some of whose categoricals stand for ordinary text.

    A file has no categoricals of its own. They are how its text is held; whoever is handed the
    table, a decision maker above all, gets text. Whoever makes one hands its frame over, and does
    not write to it any more.

    Parameters
    ----------
    frame
        The table.
    text
        Its categorical columns that are text in truth.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"job": pd.Categorical(["cook", "clerk", "cook"])})
    >>> table = EncodedTable(frame=frame, text=frozenset({"job"}))
    >>> len(table), table.to_pandas()["job"].tolist()
    (3, ['cook', 'clerk', 'cook'])
    """

    frame: pd.DataFrame
    text: frozenset[str]

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.frame)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [str(name) for name in self.frame.columns]

    def to_pandas(self) -> pd.DataFrame:
        """Give an ordinary frame, text as text."""
        return with_text(self.frame, self.text)


def with_text(frame: pd.DataFrame, names: frozenset[str]) -> pd.DataFrame:
    """Write the categoricals among the named columns out as text; the frame itself stays."""
    import pandas as pd

    written = {
        name: _written(frame[name])
        for name in frame.columns
        if name in names and isinstance(frame[name].dtype, pd.CategoricalDtype)
    }
    return frame.assign(**written)


def _written(series: Any) -> pd.Series[Any]:
    import pandas as pd

    # one more at the end, where code -1 (missing) finds it
    values = np.array([*series.cat.categories, None], dtype=np.object_)
    return pd.Series(values[series.cat.codes.to_numpy()], index=series.index, name=series.name)
