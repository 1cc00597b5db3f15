"""One attempt as people see it: everything that shows why it ended as it did."""

from typing import Any

import pytest

from farm.cli.jobs.attempt import attempt_report
from farm.cli.matrices.report import log_hint
from farm.cli.shell.output import print_data
from farm.core.base.ids import digest_of
from farm.core.jobs.run_order import Predecessor, RunOrder
from farm.core.runs.measurement import Better, Metric, Outcome, SampleKind
from farm.presentation.text import local_time_text
from farm.wire.documents.results.results import ReadingView
from tests.support.sample_views import NOON, attempt_view, evidence, job_view


def shown(**changes: object) -> str:
    return attempt_report(attempt_view(**changes)).plain


def test_an_attempt_is_shown_with_all_that_tells_why_it_failed() -> None:
    head = shown().split("stdout:")[0]
    assert head.splitlines() == [
        "attempt 12 of job 7 on phone-1: finished, failed, blame variant",
        "why      speed_benchmark_torch crashed [run.crashed]",
        "harness  speed_benchmark_torch, cpu; iter=30",
        f"file     model, 14.2 MB, {digest_of(b'model')}",
        f"claimed  {local_time_text(NOON)}",
        "command  /data/local/tmp/speed_benchmark_torch '--model=a file'",
        f"started  {local_time_text(NOON)}",
        "waited   12 s for gates",
        "pushed   0 B to the device",
        "exit     code 139 after 1.25 s",
        f"before   {local_time_text(NOON)}, thermal status: NONE, battery level: 88 %",
        "after    -",
        "not checked (not reported): skin temperature, battery temperature, free storage, CPU clocks",
    ]


def test_output_that_expired_is_told_with_the_rule_instead_of_being_missing() -> None:
    said = shown(evidence=None, evidence_expired_at=NOON, evidence_expired_by="rule of 30 days")
    assert said.splitlines()[-1] == f"output expired on {local_time_text(NOON)}, by the rule of 30 days"


def test_a_notice_is_a_line_once_and_gates_without_a_value_are_one_line_together() -> None:
    notices = (
        "skin temperature unknown",
        "unknown during the run: CPU ceilings",
        "no energy: it was charging",
    )
    text = shown(notices=notices, reading=reading())
    assert [line for line in text.splitlines() if "unknown" in line or "no energy" in line] == [
        "notice   unknown during the run: CPU ceilings",
        "notice   no energy: it was charging",
    ]
    expired = shown(evidence=None, evidence_expired_at=NOON, evidence_expired_by="rule", notices=notices)
    assert "notice   no energy: it was charging" in expired


def test_a_long_output_shows_its_beginning_and_its_end_and_says_what_is_missing() -> None:
    assert "stdout: 1 line\n  Starting benchmark.\n" in shown()
    lines = shown().split("stderr: ")[1].splitlines()
    assert lines[0] == "100 lines, 4.10 kB more were not collected"
    assert lines[1] == "  line 1"
    assert "  ... 70 lines left out, --json has them ..." in lines
    assert lines[-1] == "  line 100"


def test_what_a_program_printed_cannot_play_with_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_data(shown(evidence=evidence(stdout="\x1b[2J[bold]red[/bold]")))
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "[2J[bold]red[/bold]" in printed


def test_a_run_that_was_killed_or_did_not_start_says_so() -> None:
    killed = {"code": 137, "timed_out": True, "duration_s": 60.0}
    assert "code 137 after 60.00 s, killed at its time-out" in shown(evidence=evidence(exit=killed))
    error = {
        "code": "device.offline",
        "blame": "device",
        "transient": True,
        "message": "gone",
        "hint": "plug in",
    }
    text = shown(evidence=evidence(exit=None, error=error))
    assert "error    gone [device.offline, blame device]\n         hint: plug in" in text
    assert shown(evidence=None).endswith("no report yet")


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
    said = log_hint(jobs)  # type: ignore[arg-type]
    assert said is not None
    assert said.endswith(f"attempt show {attempt}")


def test_jobs_that_were_not_tried_have_nothing_to_look_at() -> None:
    assert log_hint([job_view(attempts=(), outcome=None, state="queued")]) is None


def reading(**changes: object) -> ReadingView:
    values = {
        "kind": SampleKind.SAMPLES,
        "value_ns": 1.25e6,
        "mean_ns": 1.3e6,
        "min_ns": 1_000_000,
        "max_ns": 2_000_000,
        "p90_ns": 1.9e6,
        "scatter": 0.031,
        "samples_ns": (1_000_000, 1_250_000, 2_000_000),
        "metrics": (),
        "actual_backend": "cpu",
        "accelerator": "cpu",
        "proof": "no --vulkan in its command",
        "variant_digest": None,
        "program_digest": digest_of(b"program"),
        "parser_version": 2,
    }
    return ReadingView.model_validate({**values, **changes})


def test_what_was_read_is_shown_with_how_it_scatters_and_where_it_ran() -> None:
    text = shown(quality="valid", reading=reading())
    assert "time     1.25 ms, the median of 3 samples; mean 1.30 ms\n" in text
    assert "samples  1.00 ms to 2.00 ms, 90 % within 1.90 ms, scatter 3.1%\n" in text
    assert "actual   cpu, cpu: no --vulkan in its command\n" in text


def test_what_nnapi_had_is_named_where_it_said_so() -> None:
    assert "offered" not in shown(reading=reading())
    text = shown(reading=reading(offered=("acme-npu", "nnapi-reference")))
    assert "offered  acme-npu, nnapi-reference: devices that NNAPI offered\n" in text


def test_a_summary_says_that_it_is_one_and_an_unknown_place_that_nothing_shows_it() -> None:
    memory = Metric(name="memory", value=12.5, unit="MB", better=Better.LOWER)
    text = shown(reading=reading(kind=SampleKind.SUMMARY, accelerator="unknown", metrics=(memory,)))
    assert "the tool's own mean, deviation 3.1%: it prints no samples\n" in text
    assert "samples " not in text
    assert "metric   memory 12.5 MB (lower is better)\n" in text
    assert "actual   cpu, unknown accelerator: " in text
    unknown = shown(reading=reading(kind=SampleKind.SUMMARY, scatter=None))
    assert "the tool's own mean: it prints no samples\n" in unknown


def test_files_and_variables_of_a_bundle_are_shown_with_their_places() -> None:
    library = {"name": "part_1", "digest": digest_of(b"x"), "size_bytes": 10, "path": "lib/libx.so"}
    plan = attempt_view().plan
    text = shown(plan={**plan, "files": [library], "env": {"LD_LIBRARY_PATH": "${work}/lib"}})
    assert f"file     part_1 at lib/libx.so, 10 B, {digest_of(b'x')}\n" in text
    assert "variable LD_LIBRARY_PATH=${work}/lib\n" in text


def test_a_pass_is_shown_as_uncounted_with_the_log_it_was_for() -> None:
    done = {"name": "placement", "exit": {"code": 0, "duration_s": 1.5}, "log": "I ExecutionPlan: told\n"}
    error = {
        "code": "device.offline",
        "blame": "device",
        "transient": True,
        "message": "phone-1 went away",
        "hint": "plug in",
    }
    lost = {"name": "memory", "error": error}
    text = shown(evidence=evidence(passes=[done, lost]))
    assert "pass     placement, not measured: code 0 after 1.50 s" in text
    assert "log of pass placement: 1 line\n  I ExecutionPlan: told\n" in text
    assert "pass     memory, not measured: did not end" in text
    assert "phone-1 went away" in text


def test_what_was_set_and_what_gates_could_not_see_stand_beside_the_conditions() -> None:
    cool = {"taken_at": "2031-02-03T04:05:06Z", "thermal_status": 0, "battery_level_pct": 80, "battery_c": 30}
    clock = {"name": "policy4", "current_hz": 1_200_000_000, "max_hz": 2_000_000_000}
    cores = {"name": "cores", "requested": "4-7", "actual_before": "4-7", "actual_after": "4-6"}
    ended = {"code": 0, "duration_s": 2.0, "cpu_s": 1.5}
    looked = {**cool, "plugged": "usb", "screen_on": True, "cpus": [clock]}
    text = shown(evidence=evidence(before=looked, controls=[cores], exit=ended))
    assert "plugged in: usb, screen: on, policy4: at 1.20 limit 2.00 GHz" in text
    assert "not checked (not reported): skin temperature, free storage, CPU clocks" in text
    assert "control  cores 4-7, 4-7 before the run, 4-6 after it" in text
    assert "after 2.00 s, 1.50 s of CPU time" in text


def before(**changes: object) -> Predecessor:
    known: dict[str, Any] = {
        "attempt_id": 11,
        "job_id": 6,
        "matrix_id": 4,
        "same_matrix": True,
        "cell_id": 3,
        "label": "int8-core",
        "series_id": 2,
        "outcome": Outcome.SUCCEEDED,
        "ran_s": 4.2,
        "pause_s": 63.0,
    }
    return Predecessor(**{**known, **changes})


@pytest.mark.parametrize(
    ("order", "text"),
    [
        (
            RunOrder(block=0, place=2, predecessor=before()),
            "place 2 in its block, after int8-core (attempt 11), which ran 4 s and ended 1 min 3 s before",
        ),
        (
            RunOrder(block=0, place=None, predecessor=before(same_matrix=False, ran_s=None, pause_s=None)),
            "after int8-core of matrix 4 (attempt 11)",
        ),
        (
            RunOrder(block=0, place=1, predecessor=None),
            "place 1 in its block, after no benchmark: the first on its device, or after a health check",
        ),
    ],
)
def test_a_run_says_what_ran_on_its_device_before_it(order: RunOrder, text: str) -> None:
    assert f"order    {text}" in shown(order=order).splitlines()
