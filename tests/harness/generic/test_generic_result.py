"""What generic harnesses read off outputs, and what they refuse to."""

import pickle
import time
from dataclasses import replace
from typing import Any

import pytest

from farm.core.errors import Blame
from farm.core.runs.measurement import UNKNOWN_ACCELERATOR, Better, Metric, Outcome, Reading, RunFailure
from tests.harness.generic import generic_samples as sample
from tests.support.harness import run_samples

TOOK = {"pattern": "took ([0-9.]+) ms", "unit": "ms"}
RUNS: dict[str, Any] = {
    "arguments": "--runs=${runs}",
    "flags": {"runs": {"default": 3}},
    "iterations_flag": "runs",
}


def test_every_match_is_a_sample() -> None:
    found = sample.reading(sample.harness(samples=TOOK), "took 1.5 ms\r\ntook 2 ms\r\n")
    assert (found.samples_ns, found.expected_samples, found.mean_ns) == ((1_500_000, 2_000_000), 2, None)


def test_json_is_found_behind_and_before_other_lines() -> None:
    infer = sample.harness(samples={"json": "$.runs[*].ms", "unit": "ms"})
    text = 'loading [1] of 3\n[1]\n{\n  "runs": [\n    {"ms": 1}, {"ms": "2.5"}\n  ]\n}\n[done]\nbye\n'
    assert sample.reading(infer, text).samples_ns == (1_000_000, 2_500_000)


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("$.ms", '{"ms": [1, 2]}'),
        ("$", "[1, 2]"),
        ("$.a['p 50'][1][*]", '{"a": {"p 50": [0, [1, 2]]}}'),
        ("$.*", '{"a": 1, "b": 2}'),
    ],
)
def test_paths_point_to_numbers_and_lists_of_them(path: str, document: str) -> None:
    infer = sample.harness(samples={"json": path, "unit": "ms"})
    assert sample.reading(infer, document).samples_ns == (1_000_000, 2_000_000)


def test_the_last_object_printed_is_the_one_that_is_read() -> None:
    infer = sample.harness(value={"json": "$.ms", "unit": "ms"})
    assert sample.reading(infer, '{"ms": 1}\n{"ms": 2}\n').mean_ns == 2e6


@pytest.mark.parametrize(
    ("unit", "printed", "ns"),
    [
        ("ns", "1000", 1e3),
        ("us", "1", 1e3),
        ("ms", "2", 2e6),
        ("s", "1e-3", 1e6),
        ("min", "0.5", 30e9),
        ("fps", "50", 20e6),
        ("img/s", "200", 5e6),
        ("kHz", "2", 5e5),
        ("GFLOP/s", ".5", 2e9),
    ],
)
def test_rates_become_the_time_of_one_piece_of_work(unit: str, printed: str, ns: float) -> None:
    infer = sample.harness(value={"pattern": "= (.*)$", "unit": unit})
    found = sample.reading(infer, f"x = {printed}\n")
    assert found.mean_ns == pytest.approx(ns)
    assert found.samples_ns == ()


def test_a_rate_is_said_where_the_clock_is_explained() -> None:
    infer = sample.harness(value={"pattern": "= (.*)$", "unit": "img/s"}, clock_covers="one batch")
    assert infer.clock_covers == "one batch; time per unit of work, from img/s"


def test_without_a_place_the_whole_process_is_timed_and_that_is_said() -> None:
    infer = sample.harness()
    assert sample.reading(infer, "whatever").mean_ns == 12.5e9
    assert "whole process" in infer.clock_covers
    assert "10 ms" in infer.clock_covers


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("error: device offline", "device.offline"),
        ("adb: error: device unauthorized.", "device.unauthorized"),
        ("error: closed", "device.closed"),
    ],
)
def test_the_time_of_a_script_that_adb_failed_is_no_measurement(line: str, code: str) -> None:
    failed = sample.failure(sample.harness(), f"pushing\n{line}\ndone\n")
    assert (failed.code, failed.outcome, failed.blame) == (code, Outcome.INCONCLUSIVE, Blame.DEVICE)
    assert failed.line == line


def test_a_process_shorter_than_a_step_of_the_clock_has_no_time() -> None:
    infer = sample.harness()
    found = run_samples.evidence("")
    assert found.exit is not None
    short = replace(found, exit=replace(found.exit, duration_s=0.0))
    failed = infer.parse(sample.plan(infer), short)
    assert isinstance(failed, RunFailure)
    assert failed.code == "run.too_short"


def test_samples_are_counted_against_the_flag_that_says_how_many() -> None:
    infer = sample.harness(samples=TOOK, **RUNS)
    assert sample.reading(infer, "took 1 ms\n" * 2).expected_samples == 3
    assert sample.reading(infer, "took 1 ms\n" * 5, runs=5).expected_samples == 5
    assert "4 numbers" in sample.failure(infer, "took 1 ms\n" * 4).message


@pytest.mark.parametrize(
    ("pattern", "text", "why"),
    [
        ("took ([0-9.]+)", "took 12,5 ms", "`12,5` has a comma"),
        ("([0-9.]+) ms", "took 12,5 ms", "`12,5` has a comma"),
        ("took (.*) ms", "took 1.234,5 ms", "`1.234,5` has a comma"),
        ("([0-9.]+) ms", "took 1,234.5 ms", "`1,234.5` has a comma"),
        ("([0-9.]+) ms", "took 1,234,567.5 ms", "has a comma"),
        ("([0-9.]+) ms", "took 1'234.5 ms", "part of a number, in `1'234.5`"),
        ("took ([0-9.]+)", "took 1_234.5 ms", "part of a number, in `1_234"),
        ("([0-9.]+) ms", "took 1\u202f234.5 ms", "only a part of a number"),
        ("([0-9.]+) ms", "took 1.2e-3 ms", "part of a number, in `1.2e-3`"),
        ("([0-9.]+) ms", "took -1.5 ms", "part of a number, in `-1.5`"),
        ("took ([0-9.]+)", "took 0x1f ms", "part of a number, in `0x1f`"),
        ("took ([0-9]+)", "took 12.5 ms", "part of a number, in `12.5`"),
        ("([0-9]) ms", "took 125 ms", "part of a number, in `125`"),
        ("took ([0-9.]+)", "took 1e3 ms", "part of a number, in `1e3`"),
        ("took (.*)", "took long", "`long` is no number"),
        ("took (.*)", "took inf", "`inf` is no number"),
        ("took (.*)", "took nan", "`nan` is no number"),
        ("took(.*)", "took ", "empty"),
        ("took ([0-9.]+)", "took 0 ms", "not a possible time of a run"),
        ("took ([0-9.]+)", "took 1000000000000 ms", "not a possible time of a run"),
        ("took ([0-9.]+)", "nothing", "no number at /took ([0-9.]+)/"),
    ],
)
def test_what_is_no_time_is_refused_with_the_reason(pattern: str, text: str, why: str) -> None:
    failed = sample.failure(sample.harness(samples={"pattern": pattern, "unit": "ms"}), text)
    assert (failed.code, failed.outcome, failed.blame) == (
        "run.output_unreadable",
        Outcome.FAILED,
        Blame.VARIANT,
    )
    assert why in failed.message


@pytest.mark.parametrize(
    "text",
    [
        "1,12.5\n2,12.5\n",
        "12.5, 12.5\n",
        "12.5 ms.\n12.5\n",
        "1 12.5\n2 12.5\n",
        "- 12.5\n5-12.5\n",
        "1:12.5\nx_12.5\n",
    ],
)
def test_commas_between_numbers_are_none_in_them(text: str) -> None:
    infer = sample.harness(samples={"pattern": "([0-9]+[.][0-9]+)", "unit": "ms"})
    assert sample.reading(infer, text).samples_ns == (12_500_000, 12_500_000)


@pytest.mark.parametrize("text", ["1,234.5\n", "1000,234.5\n"])
def test_a_comma_that_the_pattern_matches_stands_between_numbers(text: str) -> None:
    infer = sample.harness(value={"pattern": "[0-9]+,([0-9.]+)", "unit": "ms"})
    assert sample.reading(infer, text).mean_ns == 234_500_000


def test_no_number_has_four_digits_before_a_comma() -> None:
    infer = sample.harness(value={"pattern": "([0-9]+[.][0-9]+)", "unit": "ms"})
    assert sample.reading(infer, "1000,234.5\n").mean_ns == 234_500_000


def test_a_summary_is_there_once() -> None:
    infer = sample.harness(value=TOOK)
    assert "2 numbers" in sample.failure(infer, "took 1 ms\ntook 2 ms").message


@pytest.mark.parametrize(
    "text", ['{"ms": true}', '{"ms": NaN}', '{"ms": {}}', '{"ms": "1,5"}', '{"ms": 1e999}']
)
def test_json_that_is_no_number_is_refused(text: str) -> None:
    sample.failure(sample.harness(value={"json": "$.ms", "unit": "ms"}), text)


def test_what_was_cut_off_is_neither_read_nor_guessed() -> None:
    """The last line may be half a number, and nobody knows how many lines are missing."""
    cut = replace(run_samples.evidence("took 10 ms\ntook 12"), stdout_dropped_bytes=100)
    open_ended, counted = sample.harness(samples=TOOK), sample.harness(samples=TOOK, **RUNS)
    failed = open_ended.parse(sample.plan(open_ended), cut)
    assert isinstance(failed, RunFailure)
    assert "number of missing samples" in failed.message
    short = counted.parse(sample.plan(counted), cut)
    assert isinstance(short, Reading)
    assert (short.samples_ns, short.expected_samples) == ((10_000_000,), 3)


def test_metrics_are_kept_beside_the_time_and_may_be_missing() -> None:
    infer = sample.harness(
        metrics={
            "memory": {"pattern": "peak ([0-9.]+)", "unit": "MB", "better": "lower"},
            "rate": {"json": "$.rate", "unit": "img/s", "better": "higher"},
        }
    )
    found = sample.reading(infer, "peak 1\npeak 2.5\n")
    assert found.metrics == (Metric(name="memory", value=2.5, unit="MB", better=Better.LOWER),)
    both = sample.reading(infer, 'peak 3\n{"rate": 7}\n')
    assert [metric.value for metric in both.metrics] == [3.0, 7.0]
    # A process that parses large outputs hands its reading over.
    assert pickle.loads(pickle.dumps(both)) == both


@pytest.mark.parametrize(("stream", "ms"), [("stdout", 1), ("stderr", 2)])
def test_numbers_are_read_where_the_program_prints_them(stream: str, ms: int) -> None:
    infer = sample.harness(samples=TOOK, stream=stream)
    found = sample.reading(infer, "took 1 ms\n", stderr="took 2 ms\n")
    assert found.samples_ns == (ms * 1_000_000,)
    both = sample.reading(sample.harness(samples=TOOK, stream="both"), "took 1 ms", stderr="took 2 ms")
    assert both.samples_ns == (1_000_000, 2_000_000)


PLACED = {
    "arguments": "${backend_arguments}",
    "backends": {
        "cpu": {},
        "proven": {"accelerator": "gpu", "proof": "delegate on (.*)", "fallback": "falling back"},
        "declared": {"accelerator": "npu", "proof": "declared"},
        "bare": {"accelerator": "dsp"},
    },
}


@pytest.mark.parametrize(
    ("backend", "stderr", "actual", "accelerator", "proof"),
    [
        ("cpu", "", "cpu", "cpu", "cpu by the definition of infer"),
        ("proven", "I: delegate on Mali\nbye", "proven", "gpu", "I: delegate on Mali"),
        ("proven", "nothing", "proven", UNKNOWN_ACCELERATOR, "nothing in its output matches"),
        ("proven", "delegate on Mali\nW: falling back", "something else", UNKNOWN_ACCELERATOR, "W: falling"),
        ("declared", "", "declared", "npu", "declared by its definition, not proven by its output"),
        ("bare", "", "bare", UNKNOWN_ACCELERATOR, "its definition names no proof"),
    ],
)
def test_where_it_ran_is_what_the_output_proves(
    backend: str, stderr: str, actual: str, accelerator: str, proof: str
) -> None:
    found = sample.reading(sample.harness(**PLACED), "", backend=backend, stderr=stderr)
    assert (found.actual_backend, found.accelerator) == (actual, accelerator)
    assert found.proof.startswith(proof)


@pytest.mark.parametrize(
    "failed",
    [
        "E: Failed to restore context from cache",
        "Could not create OpenCL context",
        "E [HTP] graph execute error 6031",
        "delegate: execution failed, running on CPU",
        "qnn: unable to execute graph",
        "Failed to deserialize the network",
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_what_was_planned_and_then_failed_is_no_proof(failed: str, is_first: bool) -> None:
    infer = sample.harness(**PLACED)
    lines = ["delegate on Mali", failed]
    text = "\n".join(reversed(lines) if is_first else lines)
    found = sample.reading(infer, "", backend="proven", stderr=text)
    assert (found.actual_backend, found.accelerator) == ("proven", UNKNOWN_ACCELERATOR)
    assert found.proof == f"delegate on Mali; {failed}: gpu failed"
    declared = sample.reading(infer, failed, backend="declared")
    assert declared.accelerator == UNKNOWN_ACCELERATOR
    assert failed in declared.proof
    # The CPU has no context to lose: what it computed counts.
    assert sample.reading(infer, failed, backend="cpu").accelerator == "cpu"


def test_a_line_that_says_unsupported_is_an_answer_whatever_the_exit_code() -> None:
    infer = sample.harness(unsupported=["no (GPU|NPU) here"])
    for code in (0, 3):
        found = sample.failure(infer, "hello\nE: no NPU here, sorry\n", code=code)
        assert (found.outcome, found.line) == (Outcome.UNSUPPORTED, "E: no NPU here, sorry")


def test_other_exit_codes_may_mean_success() -> None:
    infer = sample.harness(success_exit_codes=[0, 3])
    assert sample.reading(infer, "", code=3).mean_ns == 12.5e9
    failed = sample.failure(infer, "bad luck\n", code=4)
    assert (failed.outcome, failed.line) == (Outcome.FAILED, "bad luck")


def test_failures_of_phones_are_told_and_those_of_torch_are_not_seen() -> None:
    infer = sample.harness()
    linker = 'CANNOT LINK EXECUTABLE "./x": library "libvendor.so" not found'
    assert sample.failure(infer, code=1, stderr=linker).code == "run.cannot_link"
    assert sample.failure(infer, code=1, stderr="file not found: settings.ini").code == "run.failed"


def test_a_failure_names_the_program_and_not_the_shell_that_starts_it() -> None:
    assert sample.failure(sample.harness(), code=139).message.startswith("infer crashed")


@pytest.mark.parametrize("line", ["[INFO] hello", "[2026-01-01 12:00] hello", "[", '{"a":'])
def test_a_log_that_looks_like_json_is_gone_through_in_time(line: str) -> None:
    """Python's decoder counts all lines before each error: for every line of a log, that is minutes."""
    infer = sample.harness(value={"json": "$.ms", "unit": "ms"})
    started_s = time.process_time()
    sample.failure(infer, f"{line}\n" * 200_000)
    assert time.process_time() - started_s < 10


def test_json_over_several_lines_is_found_in_a_log_that_looks_like_it() -> None:
    infer = sample.harness(value={"json": "$.ms", "unit": "ms"})
    log = "[INFO] {\n[2026-01-01 12:00] x\n{ not\n"
    assert sample.reading(infer, f'{log}{{\n  "ms":\n  5\n}}\n{log}').mean_ns == 5e6
