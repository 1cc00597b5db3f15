"""Virtual phones with root."""

import time
from pathlib import Path

from agents.virtual.faults import Faults, set_faults


def make_rooted(state: Path) -> None:
    """Have the phone's su work; blocks until it does."""
    set_faults(state, Faults(rooted=True))
    deadline = time.monotonic() + 120
    while not (state / "rooted").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
