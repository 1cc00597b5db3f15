"""docs/events.md lists the kinds of events as the code has them; BENCHFARM_DRAW=1 writes it anew."""

import ast
import inspect
import os
import re
import textwrap
from enum import StrEnum
from pathlib import Path

import pytest

from farm.core.operations.event import KINDS, Subject, kind_names

PAGE = Path(__file__).resolve().parents[3] / "docs" / "events.md"
HEAD = """\
# Events

Each change of state on the farm writes one row to `events` in the same transaction: when, who (`user:ann`,
`agent:bench-1`, `farm`), what happened (its kind) to which thing, from which state to which, and why. Played
back in order, the events give the states that the tables have.

    farm events --follow                                  what happens from now on
    farm events --subject device:pixel-8 --since 2d       the story of a phone
    farm events --subject job:17                          a job with its attempts
    farm events --subject host:bench-1                    a host with the sessions of its agent
    farm events --actor ann --limit 200                   what somebody did
    farm events --kind device_health_changed --json       one JSON object a line

`GET /api/v1/events` answers the same, with `after` and `wait_s` for who follows: `next` of an answer is the
`after` of the next call. Nobody who follows misses an event or sees one twice, however many farm processes
write to one database: an event is shown once no earlier number can come any more. A transaction that hangs
therefore keeps who follows waiting, and nobody else.

This page is made from `farm/core`, and a test keeps it so.
"""


def meaning_by_kind(kinds: type[StrEnum]) -> dict[str, str]:
    """What the `#:` above each member says."""
    source = textwrap.dedent(inspect.getsource(kinds))
    lines = source.splitlines()
    (found,) = ast.parse(source).body
    assert isinstance(found, ast.ClassDef)
    members = [node for node in found.body if isinstance(node, ast.Assign)]
    return {
        ast.literal_eval(member.value): " ".join(reversed(_above(lines, member.lineno))) for member in members
    }


def _above(lines: list[str], number: int) -> list[str]:
    """The comment that ends above a line, from its last line upwards."""
    said = []
    for line in reversed(lines[: number - 1]):
        if (comment := re.match(r"\s*#: ?(.*)", line)) is None:
            break
        said.append(comment[1])
    return said


def section(kinds: type[StrEnum]) -> str:
    rows = [f"| `{kind}` | {meaning} |" for kind, meaning in meaning_by_kind(kinds).items()]
    about = (inspect.getdoc(kinds) or "").partition(":")[0].partition(". ")[0].rstrip(".")
    return "\n".join([f"## {about}", "", "| kind | means |", "| --- | --- |", *rows, ""])


def page() -> str:
    subjects = ", ".join(f"`{subject}`" for subject in Subject)
    return "\n".join([HEAD, *map(section, KINDS), "## What events are told of", "", f"{subjects}.", ""])


def test_the_page_of_events_lists_what_the_code_has() -> None:
    if os.environ.get("BENCHFARM_DRAW"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "BENCHFARM_DRAW=1 writes the page anew"


@pytest.mark.parametrize("kinds", KINDS)
def test_every_kind_says_what_it_means_and_is_called_noun_verbed(kinds: type[StrEnum]) -> None:
    for kind, meaning in meaning_by_kind(kinds).items():
        assert meaning.endswith("."), f"{kind} has no `#:` that says what it means"
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", kind)


def test_no_two_events_have_one_name() -> None:
    assert len(kind_names()) == sum(len(kinds) for kinds in KINDS)
