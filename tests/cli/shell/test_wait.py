"""Waiting for the farm: what is said meanwhile, and when it ends."""

from collections.abc import Callable, Iterator

import pytest

from farm.cli.shell.wait import wait_for


def answers(*script: str) -> Callable[[], str]:
    left: Iterator[str] = iter(script)
    return lambda: next(left)


def is_over(found: str) -> bool:
    return found == "over"


def test_what_is_over_already_is_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert wait_for(answers("over"), is_over, str, detached="") == "over"
    assert capsys.readouterr().err == ""


def test_without_a_terminal_a_line_is_said_at_each_change_only(capsys: pytest.CaptureFixture[str]) -> None:
    look = answers("job 7 runs", "job 7 runs", "cleaning up", "cleaning up", "over")
    assert wait_for(look, is_over, str, detached="", poll_s=0) == "over"
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "job 7 runs\ncleaning up\n")


def test_on_a_terminal_a_spinner_says_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert wait_for(answers("job 7 runs", "over"), is_over, str, detached="", poll_s=0) == "over"
    assert "job 7 runs" in capsys.readouterr().err
