"""What several pages about published data are checked with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from mutandis.engine.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    import mutandis as mm


@pytest.fixture(scope="session")
def share_of_draws() -> Callable[[mm.Audit, str, int], NDArray[np.float64]]:
    """Give the share of draws that find a difference, each looked at alone."""

    def share(audit: mm.Audit, method: str, k: int) -> NDArray[np.float64]:
        index = audit.ks.index(k)
        tallies = audit.engine.tallies(audit.world.alone(), [METHODS[method]])
        pairs = [each.at(METHODS[method], index) for each in tallies]
        found = [pair.control.share.mean() - pair.test.share.mean() > 1e-12 for pair in pairs]
        return np.asarray(np.mean(found, axis=0), dtype=np.float64)

    return share
