"""Results of tools that no agent here starts, read off what they printed, and samples of our own."""

import pytest

from farm.harness.foreign.executorch_llm import LlmStats, llm_stats
from farm.harness.foreign.gatord import gatord_output
from farm.harness.foreign.litert_run_model import model_runs
from farm.harness.foreign.loadgen import loadgen_summary
from farm.harness.foreign.mobile_ai_bench import bench_results
from farm.harness.foreign.nnpackage_run import package_runs
from farm.harness.foreign.tvm_tracker import TrackerQueue, tracker_queues
from farm.harness.foreign.xctest import measured
from tests.support.harness import tool_samples as sample

OTHER = "other-tools/"


def test_xctest_measures_in_seconds_with_every_value() -> None:
    (found,) = measured(sample.captured("ios/xctest_measure_time_seconds_2014.txt"))
    assert (found.mean, found.relative_deviation_pct, len(found.values)) == (0.316, 0.759, 10)
    assert (found.metric, found.unit) == ("Time", "seconds")


def test_newer_xcode_names_other_metrics_and_units() -> None:
    line = (
        "/x/T.swift:9: Test Case '-[T.Net testRun]' measured [Clock Monotonic Time, s] average: 0.021,"
        " relative standard deviation: 4.100%, values: [0.020000, 0.022000], performanceMetricID:x\r\n"
    )
    (found,) = measured(line)
    assert (found.metric, found.unit, found.values) == ("Clock Monotonic Time", "s", (0.02, 0.022))


def test_a_mean_of_nothing_has_no_deviation() -> None:
    (found,) = measured(
        "Test Case '-[T.Net testRun]' measured [Time, seconds] average: 0.000, relative standard deviation:"
        " nan%, values: [0.000000, 0.000000]\n"
    )
    assert (found.mean, found.relative_deviation_pct) == (0.0, None)


def test_a_summary_of_loadgen_is_read_off_a_log_and_has_nothing_of_the_next() -> None:
    lines = ["SUT name : X", "Scenario : Offline", "Result is : VALID", "Mean latency (ns) : 70"]
    lines += ["SUT name : Y", "Scenario : SingleStream", "Max latency (ns) : 90"]
    found = loadgen_summary("\n".join(f"I mlperf  : {line}" for line in lines))
    assert found is not None
    assert (found.system, found.mean_ns, found.max_ns) == ("X", 70.0, None)


def test_loadgen_says_whether_its_result_counts() -> None:
    found = loadgen_summary(sample.captured("ios/mlperf_loadgen_summary_coreml_ios.txt"))
    assert found is not None
    assert (found.system, found.valid, found.mean_ns) == ("Core ML", True, 1737005)
    assert found.percentile_ns[90.0] == 1790000


def test_an_invalid_result_of_loadgen_is_no_valid_one() -> None:
    found = loadgen_summary("SUT name : X\r\nScenario : SingleStream\r\nResult is : INVALID\r\n")
    assert found is not None
    assert not found.valid


def test_mobile_ai_bench_names_framework_and_runtime_above_the_result() -> None:
    (found,) = bench_results(sample.captured(f"{OTHER}mobile_ai_bench_tflite_cpu_sdm845.txt"))
    assert (found.framework, found.runtime, found.model) == ("TFLITE", "CPU", "MobileNetV1")
    assert (found.init_ms, found.run_ms) == (8.184, 52.478)


def test_samsungs_runs_are_apart_from_their_warm_ups() -> None:
    found = package_runs(sample.captured(f"{OTHER}samsung_one_nnpackage_run_s20.txt"))
    assert found.runs_ms == (1.161, 1.167, 1.223, 1.2, 1.242)
    assert (len(found.warmups_ms), found.warmups_ms[0]) == (10, 1.807)


@pytest.mark.parametrize(
    ("name", "queue"),
    [
        ("tvm_rpc_tracker_query_android_queue", TrackerQueue(key="android", total=1, free=1, pending=0)),
        ("tvm_rpc_tracker_query_proxy_format", TrackerQueue(key="RPC_KEY0", total=0, free=0, pending=3)),
    ],
)
def test_tvms_tracker_counts_devices_and_who_waits(name: str, queue: TrackerQueue) -> None:
    assert tracker_queues(sample.captured(f"{OTHER}{name}.txt")) == [queue]


def test_a_runner_of_language_models_tells_tokens_and_rates_and_no_load_that_was_not_measured() -> None:
    found = llm_stats(sample.captured(f"{OTHER}executorch_voxtral_runner_stats.txt"))
    assert found is not None
    assert (found.prompt_tokens, found.generated_tokens, found.tokens_per_s) == (388, 99, 8.865407)
    assert (found.load_s, found.first_token_s) == (None, 5.054)


def test_times_of_a_language_model_that_were_not_measured_are_zeros_and_left_out() -> None:
    found = llm_stats(
        "I 00:00:28.4 executorch:stats.h:84]\tPrompt Tokens: 61    Generated Tokens: 30\n"
        "I 00:00:28.4 executorch:stats.h:90]\tModel Load Time:\t\t4.250000 (seconds)\n"
        "I 00:00:28.4 executorch:stats.h:100]\tTotal inference time:\t\t0.000000 (seconds)\t\t Rate: \tinf\n"
        "I 00:00:28.4 executorch:stats.h:119]\t\tGenerated 30 tokens:\t0.000000 (seconds)\t\t Rate: \tinf\n"
        "I 00:00:28.4 executorch:stats.h:127]\tTime to first generated token:\t0.000000 (seconds)\n"
    )
    assert found == LlmStats(prompt_tokens=61, generated_tokens=30, load_s=4.25)


def test_the_app_of_language_models_prints_stamps() -> None:
    found = llm_stats(sample.captured(f"{OTHER}executorch_llm_benchmark_activity_2024.txt"))
    assert found is not None
    assert (found.generate_s, found.load_s, found.tokens_per_s) == (1.205, 0.921, 105.445114)


def test_gatord_is_ready_although_it_says_errors() -> None:
    found = gatord_output(sample.captured(f"{OTHER}gatord_daemon_and_local_capture_v8.9.txt"))
    assert (found.version, found.release, found.ready, found.killed) == (890, "v8.9", True, True)
    assert any("socket" in line for line in found.errors)


def test_gatord_names_the_cores() -> None:
    found = gatord_output(sample.captured(f"{OTHER}gatord_debug_cpuinfo_lines_2023.txt"))
    assert found.cpuid_by_core == {0: "0x41d05", 1: "0x41d05", 2: "0x41d0b", 3: "0x41d0b"}


def test_litert_runs_a_model_so_often_and_tells_the_mean_of_all() -> None:
    text = """I0000 00:00:1770000011.992481   21214 run_model.cc:460] Run model for 20 times
I0000 00:00:1770000011.992482   21214 run_model.cc:472] First run took 8204 microseconds
I0000 00:00:1770000011.992483   21214 run_model.cc:474] Slowest run took 8204 microseconds
I0000 00:00:1770000011.992484   21214 run_model.cc:476] Fastest run took 2950 microseconds
I0000 00:00:1770000011.992485   21214 run_model.cc:479] All runs took average 3417 microseconds
"""
    found = model_runs(text)
    assert found is not None
    assert (found.runs, found.mean_us) == (20, 3417)
    assert found.times_us == {"first": 8204, "slowest": 8204, "fastest": 2950}
    assert model_runs(text + text.replace("3417", "3418")) is None


def test_a_text_of_something_else_has_none_of_it() -> None:
    text = "hello\nworld\n"
    assert not measured(text)
    assert not bench_results(text)
    assert not tracker_queues(text)
    assert not package_runs(text).runs_ms
    assert loadgen_summary(text) is None
    assert model_runs(text) is None
    assert llm_stats(text) is None
    assert not gatord_output(text).ready


def test_stamps_of_a_language_models_run_are_the_times_of_its_report() -> None:
    found = llm_stats(
        'PyTorchObserver {"prompt_tokens":20,"generated_tokens":40,"model_load_start_ms":1000,'
        '"model_load_end_ms":4500,"inference_start_ms":5000,"inference_end_ms":7250,"prompt_eval_end_ms":5250,'
        '"first_token_ms":5250,"aggregate_sampling_time_ms":9,"SCALING_FACTOR_UNITS_PER_SECOND":1000}\n'
    )
    assert found == LlmStats(
        prompt_tokens=20,
        generated_tokens=40,
        load_s=3.5,
        inference_s=2.25,
        prompt_s=0.25,
        generate_s=2.0,
        first_token_s=0.25,
    )


def test_stamps_beyond_any_clock_are_no_times() -> None:
    stamp = "9" * 400
    found = llm_stats(
        f'PyTorchObserver {{"model_load_start_ms":0,"model_load_end_ms":{stamp},"prompt_tokens":3,'
        '"SCALING_FACTOR_UNITS_PER_SECOND":1000}'
    )
    assert found == LlmStats(prompt_tokens=3)


def test_mediateks_language_models_say_their_speed_in_words_of_their_own() -> None:
    prefix = "I 00:00:09.1 executorch:mtk_llama_executor_runner.cpp:9] "
    found = llm_stats(
        f"{prefix}Done analyzing prompt in 0.500000 sec (256.0 tok/s)\n"
        f"{prefix}Token generation speed: 8.750000 tok/s\n"
    )
    assert found == LlmStats(prompt_s=0.5, tokens_per_s=8.75)
