"""docs/states.md is drawn from the transition tables; BENCHFARM_DRAW=1 draws it anew."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from farm.core.devices import admin, host_state
from farm.core.devices.device import Admin
from farm.core.jobs import attempt, job

PAGE = Path(__file__).resolve().parents[3] / "docs" / "states.md"
HEAD = """\
# States

Drawn from `job.py`, `attempt.py`, `host_state.py` and `admin.py` in `farm/core`; a test keeps page and
tables alike. Each arrow is a compare-and-set in the database, with one row in `events` in the same
transaction.
"""


def diagram(transitions: Mapping[tuple[StrEnum, StrEnum], StrEnum], start: str) -> str:
    """A Mermaid state diagram, which most Markdown viewers draw."""
    arrows = sorted(f"    {state} --> {to}: {event}" for (state, event), to in transitions.items())
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {start}", *arrows, "```"])


def page() -> str:
    drawn = {
        "A job": diagram(job.TRANSITIONS, job.JobState.QUEUED),
        "An attempt": diagram(attempt.TRANSITIONS, attempt.AttemptState.CLAIMED),
        "The session of an agent": diagram(host_state.SESSION_TRANSITIONS, host_state.SessionState.LIVE),
        "What operators want of a host": diagram(host_state.HOST_TRANSITIONS, host_state.HostState.ACTIVE),
        "What operators want of a phone": diagram(admin.TRANSITIONS, Admin.PENDING),
    }
    sections = [f"## {title}\n\n{picture}\n" for title, picture in drawn.items()]
    return "\n".join([HEAD, *sections])


def test_the_page_of_states_shows_what_the_code_does() -> None:
    if os.environ.get("BENCHFARM_DRAW"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()
