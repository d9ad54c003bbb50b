"""Fixtures that rooms share with other folders."""

from tests.scm.conftest import newton_step

__all__ = ["newton_step"]
