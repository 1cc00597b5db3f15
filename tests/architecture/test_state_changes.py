"""No state changes without an event (I17), as far as the sources tell; the replay tells the rest."""

from pathlib import Path

import pytest

from farm.database import tables
from tests.architecture.state_changes import STATE_COLUMNS, silent_changes

ROOT = Path(__file__).parent.parent.parent
#: What has no state: it is registered or measured once, or only counted up.
STATELESS = {
    "events": "the log itself",
    "variants": "a file under a name",
    "programs": "the one registered last is in use",
    "program_files": "part of a program",
    "variant_files": "part of a variant",
    "cells": "part of a matrix",
    "rejections": "part of a matrix",
    "name_trigrams": "parts of the name of a matrix, which never changes",
    "cancellations": "the progress of a cancellation, whose jobs have their events",
    "job_templates": "part of a matrix, until its last job is queued",
    "round_growths": "a cursor, told by the rounds that it adds",
    "looks": "never changed",
    "device_facts": "a snapshot",
    "reference_runs": "told by the end of its check",
    "series": "a name for what is measured",
    "measurements": "told by the end of its job",
    "points": "computed from measurements",
    "changes": "computed from points; what people say of them has its events",
    "changed_series": "part of a change",
    "confirmations": "told by the matrix that measures them",
    "imports": "what people do with it has its events",
    "external_results": "part of an import",
    "stale_points": "the progress of computing points",
    "standing_matrices": "what people and the farm do with it has its events",
    "standing_cells": "told by the matrix that measures them",
    "point_progress": "the progress of computing points",
    "page_sessions": "a browser that is signed in with a token, which has its events",
}


def farm_sources() -> dict[str, str]:
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text()
        for path in (ROOT / "farm").rglob("*.py")
    }


@pytest.mark.invariant("I17")
def test_nothing_changes_a_state_without_an_event() -> None:
    assert silent_changes(farm_sources()) == []


def test_of_every_table_it_is_known_whether_it_has_a_state() -> None:
    assert {*STATE_COLUMNS, *STATELESS} == set(tables.metadata.tables)
    for name, columns in STATE_COLUMNS.items():
        assert columns <= set(tables.metadata.tables[name].columns.keys())


STORE = "from farm.store.operations.events import record_event\nfrom farm.database.tables import jobs\n"
#: Ways to change a state, in a module of their own, with what is found there.
WRITTEN: dict[str, tuple[str, list[str]]] = {
    "told": ("def move(c):\n    c.execute(jobs.update().values(state=1))\n    record_event(c)\n", []),
    "silent": ("def move(c):\n    c.execute(jobs.update().values(state=1))\n", ["move"]),
    "another column": ("def move(c):\n    c.execute(jobs.update().values(priority=1))\n", []),
    "columns of run time": ("def move(c, v):\n    c.execute(jobs.update().values(v))\n", ["move"]),
    "columns by name": ("def move(c):\n    c.execute(jobs.update().values({'outcome': 1}))\n", ["move"]),
    "more columns": ("def move(c, v):\n    c.execute(jobs.update().values(priority=1, **v))\n", ["move"]),
    "by the library": ("def move(c):\n    c.execute(sa.update(jobs).values(state=1))\n", ["move"]),
    "an insert": ("def add(c, rows):\n    c.execute(jobs.insert(), rows)\n", ["add"]),
    "a delete": ("def drop(c):\n    c.execute(jobs.delete())\n", ["drop"]),
    "built once": ("_ADD = jobs.insert()\n\n\ndef add(c):\n    c.execute(_ADD)\n", ["add"]),
    "in a class": ("class Jobs:\n    def add(self, c):\n        c.execute(jobs.insert())\n", ["Jobs.add"]),
    "noted by another of the module": (
        "def move(c):\n    c.execute(jobs.update().values(state=1))\n    _note(c)\n\n\n"
        "def _note(c):\n    record_event(c)\n",
        [],
    ),
    "told by who uses it": (
        "def _update():\n    return jobs.update().values(state=1)\n\n\n"
        "def move(c):\n    c.execute(_update())\n    record_event(c)\n",
        [],
    ),
    "told by some who use it only": (
        "def _update():\n    return jobs.update().values(state=1)\n\n\n"
        "def move(c):\n    c.execute(_update())\n    record_event(c)\n\n\n"
        "def push(c):\n    c.execute(_update())\n",
        ["_update"],
    ),
    "used in a circle": (
        "def move(c):\n    c.execute(jobs.delete())\n    again(c)\n\n\ndef again(c):\n    move(c)\n",
        ["move"],
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_change_is_found_however_it_is_written(name: str) -> None:
    text, silent = WRITTEN[name]
    events = "def record_event(c):\n    pass\n"
    found = silent_changes({"farm.store.operations.events": events, "farm.store.some": STORE + text})
    assert found == [f"farm.store.some.{each}: jobs" for each in silent]


def test_what_another_module_tells_is_told() -> None:
    sources = {
        "farm.store.operations.events": "def record_event(c):\n    pass\n",
        "farm.store.some": STORE + "def add(c):\n    c.execute(jobs.insert())\n",
        "farm.services.verb": (
            "from farm.store import some\nfrom farm.store.operations.events import record_event\n\n\n"
            "def submit(c):\n    some.add(c)\n    record_event(c)\n"
        ),
    }
    assert silent_changes(sources) == []
    sources["farm.services.other"] = "from farm.store.some import add\n\n\ndef sneak(c):\n    add(c)\n"
    assert silent_changes(sources) == ["farm.store.some.add: jobs"]
