"""The reckoning after a storm sees what it is there to see."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from agents.virtual.processes import JOURNAL_FILE, RunEvent
from farm.core.runs.samples import encode_samples
from tests.chaos.checks.checker import KILL_BUDGET_S, Books, Proof, alive, disagreements, overlong, refused
from tests.chaos.checks.log import mistakes
from tests.chaos.checks.oracle import Said, Start, find_token, samples_ns
from tests.support.agents.run_spans import RunSpan

_TEXT = 'witness abc\n"value": "5000"\n"value": "5010"\n'


def _books(**changes: Any) -> Books:
    """One attempt that succeeded, with its measurement."""
    whole = Books(
        attempts=[
            {"attempt_id": 1, "device_id": "phone", "fence": 7, "state": "finished", "outcome": "succeeded"}
        ],
        measurements=[
            {"attempt_id": 1, "job_id": 3, "accepted": True, "samples": encode_samples(samples_ns(_TEXT))}
        ],
        outputs=[(1, True, _TEXT)],
    )
    return dataclasses.replace(whole, **changes)


def _proof(**changes: Any) -> Proof:
    """What its phone wrote down."""
    whole = Proof(
        serial="phone",
        starts=[Start(fence=7, token="abc")],
        said=[Said(fence=7, token="abc", text=_TEXT)],
        spans=[],
    )
    return dataclasses.replace(whole, **changes)


def _span(fence: int, first_s: float, last_s: float) -> RunSpan:
    return RunSpan(
        fence=fence,
        first_seen_ns=int(first_s * 1e9),
        last_seen_ns=int(last_s * 1e9),
        serial="phone",
        boot_id="boot",
    )


def test_books_that_agree_with_the_phones_are_right() -> None:
    assert list(disagreements(_books(), [_proof()])) == []


def test_a_token_and_samples_are_read_from_an_output() -> None:
    assert find_token(_TEXT) == "abc"
    assert samples_ns(_TEXT) == (5_000_000, 5_010_000)


@pytest.mark.parametrize(
    ("books", "proof", "seen"),
    [
        (
            _books(),
            _proof(starts=[Start(fence=7, token="abc"), Start(fence=7, token="def")]),
            "I8 phone: run 7 began",
        ),
        (
            _books(),
            _proof(starts=[Start(fence=7, token="abc"), Start(fence=8, token="def")]),
            "I3 phone: no attempt",
        ),
        (_books(), _proof(said=[]), "I5 measurement of attempt 1: phone knows of no run 7"),
        (
            _books(outputs=[(1, True, _TEXT), (2, True, _TEXT)]),
            _proof(),
            "I4 the output with token abc counted 2",
        ),
        (_books(outputs=[(1, True, "else")]), _proof(), "I5 measurement of attempt 1: its evidence"),
        (_books(outputs=[]), _proof(), "I5 measurement of attempt 1: its evidence"),
        (_books(measurements=[]), _proof(), "I5 attempt 1 succeeded without a measurement"),
        (
            _books(measurements=[{**_books().measurements[0], "samples": encode_samples([1, 2])}]),
            _proof(),
            "I5 measurement of attempt 1: its samples",
        ),
    ],
)
def test_a_disagreement_is_seen(books: Books, proof: Proof, seen: str) -> None:
    found = list(disagreements(books, [proof]))
    assert [each for each in found if each.startswith(seen)], found


def test_runs_together_for_longer_than_the_kill_budget_are_seen() -> None:
    assert list(overlong([_span(1, 0, 10), _span(2, 10 - KILL_BUDGET_S - 1, 20)]))
    assert not list(overlong([_span(1, 0, 10), _span(2, 10 - KILL_BUDGET_S + 1, 20)]))


def test_a_process_of_a_run_that_no_one_saw_the_end_of_is_seen(tmp_path: Path) -> None:
    seen = RunEvent(event="seen", at_ns=1, serial="phone", boot_id="boot", fence=7, pid=4711, ticks=1)
    noted = tmp_path / JOURNAL_FILE
    noted.write_text(json.dumps(dataclasses.asdict(seen)) + "\n")
    assert list(alive(tmp_path)) == ["I8 phone: process 4711 of run 7 is alive"]
    gone = dataclasses.replace(seen, event="gone", last_seen_ns=2)
    with noted.open("a") as more:
        more.write(json.dumps(dataclasses.asdict(gone)) + "\n")
    assert not list(alive(tmp_path))


def test_a_report_that_was_refused_is_seen(tmp_path: Path) -> None:
    (tmp_path / "refused").mkdir()
    assert not list(refused(tmp_path))
    (tmp_path / "refused" / "12.json").write_text("{}")
    (found,) = refused(tmp_path)
    assert found.startswith("I12")


def test_an_exception_that_no_one_foresaw_is_seen_in_a_log(tmp_path: Path) -> None:
    log = tmp_path / "farm.log"
    raised = {"exc_type": "KeyError", "exc_value": "x"}
    entries = [
        {"event": "all_is_well", "level": "info"},
        {"event": "phone_lost", "level": "error"},
        {"event": "request_failed", "level": "error", "exception": [raised]},
    ]
    log.write_text("".join(json.dumps(entry) + "\n" for entry in entries) + '{"exception": "cut sh')
    assert list(mistakes(log)) == [f"{log}: request_failed: KeyError: x"]


def test_a_traceback_that_is_all_a_process_left_is_seen(tmp_path: Path) -> None:
    """A phone that died of one only kept its agent waiting."""
    log = tmp_path / "phone.log"
    log.write_text('Traceback (most recent call last):\n  File "x.py", line 1\nKeyError: 1\n')
    assert list(mistakes(log)) == [f"{log}: Traceback (most recent call last):"]
