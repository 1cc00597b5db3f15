"""What the adapter plans, and what it makes of the tool's output in every version."""

from dataclasses import replace
from pathlib import Path

import pytest

from farm.core.devices.condition import Gates
from farm.core.models.variant import Format
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import UNKNOWN_ACCELERATOR, Outcome, Quality, Reading, RunFailure
from farm.core.runs.plan import fill_argv
from farm.core.runs.quality import assess_quality
from farm.core.runs.stats import summarize_samples
from farm.harness.torch.speed_benchmark_torch import SpeedBenchmarkTorch
from tests.support.harness import run_samples as sample

HARNESS = SpeedBenchmarkTorch()
CAPTURES = Path(__file__).parents[4] / "shared" / "captures" / "speed_benchmark_torch"


def read(stdout: str, *, iterations: int) -> Reading:
    reading = HARNESS.parse(sample.plan(iter=iterations), sample.evidence(stdout))
    assert isinstance(reading, Reading), reading
    return reading


def refused(stdout: str, *, iterations: int) -> RunFailure:
    failure = HARNESS.parse(sample.plan(iter=iterations), sample.evidence(stdout))
    assert isinstance(failure, RunFailure), failure
    return failure


def test_the_plan_is_the_command_line_of_the_android_binary() -> None:
    plan = sample.plan(iter=50)
    paths = {"program": "/w/c/sbt", "model": "/w/c/m.ptl"}
    assert fill_argv(plan, work="/w/7", path_by_name=paths) == [
        "/w/c/sbt",
        "--model=/w/c/m.ptl",
        "--iter=50",
        "--warmup=5",
        "--pthreadpool_size=1",
        "--use_bundled_input=0",
        "--report_pep=true",
    ]


def test_only_the_program_of_a_plan_is_executable() -> None:
    executable = {file.name: file.executable for file in sample.plan().files}
    assert executable == {"program": True, "model": False}


def test_settings_that_are_not_the_default_reach_the_command_line() -> None:
    plan = sample.plan(use_bundled_input=-1, input_dims="1,3,$x", input_type="float", no_inputs=True)
    words = fill_argv(plan, work="/w", path_by_name={"program": "p", "model": "m"})
    assert {"--use_bundled_input=-1", "--input_dims=1,3,$x", "--input_type=float", "--no_inputs=true"} <= set(
        words
    )


def test_settings_that_a_program_may_lack_are_left_out_of_its_command() -> None:
    plain = sample.plan().argv
    assert not [word for word in plain if word.startswith(("--vulkan", "--print_output", "--pytext_len"))]


def test_the_backend_vulkan_is_a_word_of_the_command() -> None:
    assert "--vulkan=true" in sample.plan("vulkan").argv
    assert "--vulkan=true" not in sample.plan("nnapi").argv


@pytest.mark.parametrize("backend", ["nnapi", "vulkan"])
def test_a_run_whose_placement_cannot_be_shown_is_read_and_unproven(backend: str) -> None:
    stdout = sample.printed([900, 904], sample.in_microseconds(902.5))
    plan = sample.plan(backend, iter=2)
    reading = HARNESS.parse(plan, replace(sample.evidence(stdout), argv=plan.argv))
    assert isinstance(reading, Reading)
    assert (reading.actual_backend, reading.accelerator) == (backend, UNKNOWN_ACCELERATOR)
    judged = assess_quality(
        reading,
        summarize_samples(reading),
        requested_backend=backend,
        evidence=Evidence(fence=1),
        gates=Gates(),
        noise_limit=0.25,
    )
    assert judged.quality is Quality.UNPROVEN
    assert "no pass after the run shows" in judged.reasons[0]


def test_the_flag_vulkan_in_a_cell_of_the_cpu_is_no_number_of_the_cpu() -> None:
    plan = sample.plan(iter=1, vulkan=True)
    stdout = sample.printed([900], sample.in_microseconds(902))
    reading = HARNESS.parse(plan, replace(sample.evidence(stdout), argv=plan.argv))
    assert isinstance(reading, Reading)
    assert reading.actual_backend == "vulkan"


def test_a_file_converted_for_nnapi_runs_on_nnapi_alone() -> None:
    converted = sample.manifest(backends=("nnapi",), target="nnapi")
    assert HARNESS.unsupported(converted, "nnapi") is None
    assert "made for nnapi, not for cpu" in (HARNESS.unsupported(converted, "cpu") or "")


def test_a_file_that_was_not_converted_does_not_run_on_nnapi() -> None:
    assert "made for cpu" in (HARNESS.unsupported(sample.manifest(), "nnapi") or "")
    said_to = sample.manifest(backends=("cpu", "nnapi"))
    assert "not converted for nnapi" in (HARNESS.unsupported(said_to, "nnapi") or "")


def test_only_files_that_name_vulkan_run_on_it() -> None:
    assert "not for vulkan" in (HARNESS.unsupported(sample.manifest(), "vulkan") or "")
    assert HARNESS.unsupported(sample.manifest(backends=("cpu", "vulkan")), "vulkan") is None


def test_a_backend_no_one_offers_is_refused() -> None:
    assert "offers cpu, nnapi, vulkan" in (HARNESS.unsupported(sample.manifest(), "qnn") or "")


@pytest.mark.parametrize("format", [Format.TFLITE, Format.ONNX, Format.ORT, Format.EXECUTORCH])
def test_files_of_other_runtimes_are_refused_by_their_format(format: Format) -> None:
    why = HARNESS.unsupported(sample.manifest(format=format), "cpu")
    assert f"this one is {format}" in (why or "")


def test_a_cpu_file_runs_on_the_cpu() -> None:
    assert HARNESS.unsupported(sample.manifest(), "cpu") is None


def test_microseconds_become_integer_nanoseconds_in_order() -> None:
    reading = read(sample.printed([25012, 24987, 25101], sample.in_microseconds("25034.1")), iterations=3)
    assert reading.samples_ns == (25_012_000, 24_987_000, 25_101_000)
    assert reading.mean_ns is None


def test_the_oldest_version_says_us_and_means_milliseconds() -> None:
    reading = read(sample.printed([25, 24, 25], sample.in_milliseconds("25.2")), iterations=3)
    assert reading.samples_ns == (25_000_000, 24_000_000, 25_000_000)


def test_milliseconds_cut_to_zero_leave_the_mean() -> None:
    reading = read(sample.printed([0, 0, 1], sample.in_milliseconds("0.7")), iterations=3)
    assert reading.samples_ns == ()
    assert reading.mean_ns == pytest.approx(700_000)


def test_values_from_a_second_on_come_in_exponent_form() -> None:
    stdout = sample.printed(["1.2e+06", "1.21e+06"], sample.in_microseconds("1.205e+06", "0.829876"))
    assert read(stdout, iterations=2).samples_ns == (1_200_000_000, 1_210_000_000)


def test_values_with_decimals_are_read_to_the_nanosecond() -> None:
    stdout = sample.printed(["812.25", "812.75"], sample.in_microseconds("812.6"))
    assert read(stdout, iterations=2).samples_ns == (812_250, 812_750)


def test_without_observer_lines_the_tools_mean_counts() -> None:
    reading = read(sample.printed([], sample.in_microseconds("25635.7", "39.0081")), iterations=200)
    assert reading.samples_ns == ()
    assert reading.mean_ns == pytest.approx(25_635_700)
    assert reading.expected_samples == 200


def test_the_two_lines_of_ios_are_one_summary() -> None:
    stdout = "Main run finished. Milliseconds per iter: 31.250\nIters per second: : 32.000\n"
    assert read(stdout, iterations=10).mean_ns == pytest.approx(31_250_000)


@pytest.mark.parametrize("prefix", ["TestApp[77:8123] ", "2021-04-02 10:11:12.123456+0200 TestApp[77:8123] "])
def test_the_two_lines_of_ios_are_one_summary_with_its_logs_prefix_too(prefix: str) -> None:
    text = f"{prefix}Main run finished. Milliseconds per iter: 31.25\n{prefix}Iters per second: : 32\n"
    assert read(text, iterations=10).mean_ns == pytest.approx(31_250_000)


def test_the_first_line_of_ios_may_be_two() -> None:
    text = "Main run finished. \nMilliseconds per iter: 31.250\nIters per second: : 32.000\n"
    assert read(text, iterations=10).mean_ns == pytest.approx(31_250_000)


def test_caffe2s_nets_speak_of_runs() -> None:
    text = "[I net.cc:217] Main runs finished. Milliseconds per iter: 81.5. Iters per second: 12.2699\n"
    assert read(text, iterations=10).mean_ns == pytest.approx(81_500_000)


def test_carriage_returns_prompts_and_linker_warnings_are_no_obstacle() -> None:
    noise = "WARNING: linker: /data/local/tmp/sbt: unsupported flags DT_FLAGS_1=0x8000001\n"
    prompt = "star:/data/local/tmp $ ./speed_benchmark_torch --iter=2\n"
    stdout = noise + prompt + sample.printed([900, 904], sample.in_microseconds(902.5))
    assert read(stdout.replace("\n", "\r\n"), iterations=2).samples_ns == (900_000, 904_000)


def test_lines_that_run_into_each_other_are_still_read() -> None:
    stdout = sample.printed([900, 904], sample.in_microseconds(902.5)).replace('"}\n', '"}')
    assert read(stdout, iterations=2).samples_ns == (900_000, 904_000)


def test_observer_lines_of_single_operators_are_not_samples() -> None:
    operator = sample.observer_line(3).replace("NET", "OPERATOR")
    stdout = operator + "\n" + sample.printed([900, 904], sample.in_microseconds(902.5))
    assert read(stdout, iterations=2).samples_ns == (900_000, 904_000)


def test_a_line_broken_by_noise_leaves_fewer_samples_than_asked_for() -> None:
    stdout = sample.printed([900, 904, 910], sample.in_microseconds(905))
    reading = read(stdout.replace('"904"', '"9\n[log] 04"'), iterations=3)
    assert reading.samples_ns == (900_000, 910_000)
    assert reading.expected_samples == 3


def test_a_reading_says_that_cpu_follows_from_the_command() -> None:
    reading = read(sample.printed([900], sample.in_microseconds(902)), iterations=1)
    assert (reading.actual_backend, reading.accelerator) == ("cpu", "cpu")
    assert "no --vulkan" in reading.proof
    assert sample.PROGRAM in reading.proof


@pytest.mark.parametrize(
    ("stdout", "iterations", "why"),
    [
        ("", 2, "printed nothing"),
        ("\x00\x01garbage \ufffd\n", 2, "no complete line"),
        (sample.printed([900, 904], ""), 2, "no complete line"),
        (sample.printed([900], "Main run finished. Microseconds per iter: 25"), 1, "no complete line"),
        (sample.printed([900], sample.in_microseconds("inf", 0)), 1, "no complete line"),
        (sample.printed([900] * 3, sample.in_microseconds(901)), 2, "3 values for 2 iterations"),
        (sample.printed([900], sample.in_microseconds(901)) * 2, 2, "2 runs are in it"),
        (sample.printed([25, 25], sample.in_microseconds(25034)), 2, "average 25 us"),
        (sample.printed([], sample.in_microseconds(0)), 2, "no iteration takes no time"),
    ],
)
def test_output_that_cannot_be_right_is_unreadable(stdout: str, iterations: int, why: str) -> None:
    failure = refused(stdout, iterations=iterations)
    assert failure.code == "run.output_unreadable"
    assert why in failure.message


def test_a_contradiction_names_both_figures() -> None:
    message = refused(sample.printed([300, 300], sample.in_microseconds(900)), iterations=2).message
    assert "300 us" in message
    assert "900 us" in message


def test_a_loop_that_was_put_aside_between_iterations_is_no_contradiction() -> None:
    # Ten iterations on a busy machine: 4 ms are in the last line's clock only.
    stdout = sample.printed([32_540] * 10, sample.in_microseconds(32_950.5, 30.3486))
    assert read(stdout, iterations=10).samples_ns == (32_540_000,) * 10


def test_samples_above_the_mean_of_their_loop_are_a_contradiction() -> None:
    assert "910 us" in refused(sample.printed([930, 930], sample.in_microseconds(910)), iterations=2).message


def test_output_over_the_limit_is_said_to_be_incomplete() -> None:
    cut = replace(sample.evidence("Main runs.\n"), stdout_dropped_bytes=5000)
    failure = HARNESS.parse(sample.plan(), cut)
    assert isinstance(failure, RunFailure)
    assert "5000 bytes" in failure.message


def test_a_crash_after_the_numbers_is_a_crash() -> None:
    stdout = sample.printed([900], sample.in_microseconds(901))
    failure = HARNESS.parse(sample.plan(iter=1), sample.evidence(stdout, code=139))
    assert isinstance(failure, RunFailure)
    assert failure.code == "run.crashed"


def captured(name: str) -> str:
    path = CAPTURES / name
    if not path.is_file():
        pytest.skip("no captures here")
    return path.read_text()


@pytest.mark.parametrize(
    ("name", "iterations", "samples", "mean_us"),
    [
        ("sbt_report_pep_10_iters.txt", 10, 10, None),
        ("sbt_report_pep_resnet18_v1.7.1.txt", 3, 3, None),
        ("sbt_nnapi_galaxy_s20_mobilenetv2_quant.txt", 200, 0, 25635.7),
    ],
)
def test_captured_runs_are_read(name: str, iterations: int, samples: int, mean_us: float | None) -> None:
    reading = read(captured(name), iterations=iterations)
    assert len(reading.samples_ns) == samples
    assert reading.mean_ns == (None if mean_us is None else pytest.approx(mean_us * 1000))


@pytest.mark.parametrize(
    ("name", "code", "expected", "outcome"),
    [
        ("err_bad_cast_abort_assertion.txt", 134, "run.crashed", Outcome.FAILED),
        ("err_cannot_link_needed_by_main_executable.txt", 1, "run.cannot_link", Outcome.FAILED),
        ("err_cant_execute_permission_denied_sdcard.txt", 126, "run.not_executable", Outcome.INCONCLUSIVE),
        ("err_missing_ops_lite_interpreter_1.9.txt", 134, "variant.missing_operator", Outcome.UNSUPPORTED),
        ("err_model_central_directory_native_terminate.txt", 134, "variant.unreadable", Outcome.FAILED),
        ("err_nnapi_model_load_nonetype.txt", 134, "variant.too_new", Outcome.UNSUPPORTED),
        ("err_not_executable_64bit_elf.txt", 126, "run.wrong_abi", Outcome.UNSUPPORTED),
        ("err_vulkan_device_unsupported_unpickler_1.10.txt", 134, "run.backend_missing", Outcome.UNSUPPORTED),
        ("sbt_err_segfault_optimized_model_pixel3a.txt", 139, "run.crashed", Outcome.FAILED),
        (
            "sbt_err_vulkan_missing_op_linker_warning.txt",
            134,
            "variant.missing_operator",
            Outcome.UNSUPPORTED,
        ),
    ],
)
def test_captured_failures_are_told_apart(name: str, code: int, expected: str, outcome: Outcome) -> None:
    failure = HARNESS.parse(sample.plan(), sample.evidence(captured(name), code=code))
    assert isinstance(failure, RunFailure)
    assert (failure.code, failure.outcome) == (expected, outcome)
    assert failure.line
    assert failure.hint
