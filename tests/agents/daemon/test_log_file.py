"""An agent's log in a file is rotated, and holds every event in one of the files."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from farm.logconfig import OLDER_LOGS, RepeatedLines, configure_logging


@pytest.fixture
def logging_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, configuration = root.handlers[:], root.level, structlog.get_config()
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**configuration)


@pytest.mark.usefixtures("logging_restored")
def test_a_log_file_is_renamed_at_its_limit_and_the_oldest_goes(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "agent.log"
    configure_logging(file=file, max_bytes=1000)
    log = structlog.get_logger("agents.test")
    for number in range(200):
        log.info("event_logged", number=number)
    files = sorted(file.parent.iterdir())
    older = [f"agent.log.{number}" for number in range(1, OLDER_LOGS + 1)]
    assert [each.name for each in files] == ["agent.log", *older]
    assert all(each.stat().st_size <= 1000 for each in files)
    newest = json.loads(file.read_text().splitlines()[-1])
    assert (newest["event"], newest["number"]) == ("event_logged", 199)


@pytest.mark.usefixtures("logging_restored")
def test_a_terminal_gets_no_control_sequences_by_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(form="text")
    structlog.get_logger("agents.test").info("device_seen", label="a\x1b]52;c;ZXZpbA==\x07b", count=1)
    printed = capsys.readouterr().err
    assert "52;c;" in printed
    assert "\x1b" not in printed


@pytest.mark.usefixtures("logging_restored")
def test_a_message_that_callers_cause_is_logged_once_in_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(form="json")
    for _ in range(1000):
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
        logging.getLogger("other").warning("%s happened", "something else")
        # A tick that lasts longer than its period: nothing that anyone could do.
        logging.getLogger("apscheduler.scheduler").warning("maximum number of running instances reached")
    for number in range(3):
        structlog.get_logger("farm.test").warning("call_failed", number=number)
    logged = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert logged == ["Invalid HTTP request received.", "something else happened", *["call_failed"] * 3]


def test_the_next_line_of_a_message_says_how_many_were_left_out() -> None:
    seconds = iter([0.0, 5.0, 9.0, 10.0, 11.0])
    lines = RepeatedLines(lambda: next(seconds))
    records = [logging.LogRecord("x", 30, "", 0, "no %s", ("room",), None) for _ in range(5)]
    assert [lines.filter(record) for record in records] == [True, False, False, True, False]
    assert records[3].getMessage() == "no room (2 more since the last)"
