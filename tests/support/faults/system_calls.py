"""What this thread asks the operating system for: no file shows afterwards whether it was synced."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def noted(*names: str) -> Iterator[list[str]]:
    """What the system is asked for meanwhile, in its order."""
    asked: list[str] = []

    def note(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ in names and called.__module__ == os.name:
            asked.append(called.__name__)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield asked
    finally:
        sys.setprofile(before)
