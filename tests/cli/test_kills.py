"""Commands that are ended at random moments damage nothing, while the folder is being read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "kills.py"


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names cannot be exchanged there")
def test_a_few_kills_damage_nothing() -> None:
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-W", "ignore", str(TOOL), "--kills", "6", "--seed", "2"],
        capture_output=True,
        check=False,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    assert (seen["killed"], seen["failures"], seen["reads"]["failed"]) == (6, 0, 0)
    assert seen["reads"]["read"] > 0
