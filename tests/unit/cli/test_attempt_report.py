"""One attempt as people see it: everything that shows why it ended as it did."""

import pytest
from sample_views import NOON, attempt_view, evidence, job_view

from farm.cli.attempt_report import attempt_report
from farm.cli.matrix_report import look_closer
from farm.cli.words import moment
from farm.core.ids import digest_of


def shown(**changes: object) -> str:
    return attempt_report(attempt_view(**changes)).plain


def test_an_attempt_is_shown_with_all_that_tells_why_it_failed() -> None:
    head = shown().split("stdout:")[0]
    assert head.splitlines() == [
        "attempt 12 of job 7 on phone-1: finished, failed, blame variant",
        "why      speed_benchmark_torch crashed [run.crashed]",
        "harness  speed_benchmark_torch, cpu; iter=30",
        f"file     model, 14.2 MB, {digest_of(b'model')}",
        f"claimed  {moment(NOON)}",
        "command  /data/local/tmp/speed_benchmark_torch '--model=a file'",
        f"started  {moment(NOON)}",
        "waited   12 s for gates",
        "exit     code 139 after 1.25 s",
        f"before   {moment(NOON)}, thermal status NONE, battery 88 %",
        "after    -",
    ]


def test_a_long_output_shows_its_beginning_and_its_end_and_says_what_is_missing() -> None:
    assert "stdout: 1 line\n  Starting benchmark.\n" in shown()
    lines = shown().split("stderr: ")[1].splitlines()
    assert lines[0] == "100 lines, 4.10 kB more were not brought back"
    assert lines[1] == "  line 1"
    assert "  ... 70 lines left out, --json has them ..." in lines
    assert lines[-1] == "  line 100"


def test_what_a_program_printed_cannot_play_with_the_terminal() -> None:
    text = shown(evidence=evidence(stdout="\x1b[2J[bold]red[/bold]"))
    assert "\x1b" not in text
    assert "[2J[bold]red[/bold]" in text


def test_a_run_that_was_killed_or_did_not_start_says_so() -> None:
    killed = {"code": 137, "timed_out": True, "duration_s": 60.0}
    assert "code 137 after 60.00 s, killed at its time-out" in shown(evidence=evidence(exit=killed))
    trouble = {
        "code": "device.offline",
        "blame": "device",
        "transient": True,
        "message": "gone",
        "hint": "plug in",
    }
    text = shown(evidence=evidence(exit=None, trouble=trouble))
    assert "trouble  gone [device.offline, blame device]\n         hint: plug in" in text
    assert shown(evidence=None).endswith("nothing has come back of it")


def test_a_quality_comes_with_its_reasons() -> None:
    text = shown(
        outcome="succeeded", quality="noisy", quality_reasons=("spans 30 %",), code=None, message=None
    )
    assert "quality  noisy: spans 30 %" in text
    assert "why" not in text


@pytest.mark.parametrize(
    ("jobs", "attempt"),
    [
        ([job_view(attempts=(9, 12)), job_view(outcome="succeeded", attempts=(13,))], "12"),
        ([job_view(outcome="succeeded", attempts=(13,))], "13"),
    ],
)
def test_a_list_of_jobs_names_the_attempt_that_is_worth_a_look(jobs: list[object], attempt: str) -> None:
    said = look_closer(jobs)  # type: ignore[arg-type]
    assert said is not None
    assert said.endswith(f"attempt show {attempt}")


def test_jobs_that_were_not_tried_have_nothing_to_look_at() -> None:
    assert look_closer([job_view(attempts=(), outcome=None, state="queued")]) is None
