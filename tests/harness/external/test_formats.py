"""Each format is recognized by its content, and nothing of it is converted."""

from collections.abc import Mapping
from typing import Any

import pytest

from farm.harness.external.recognition import read_external_file
from farm.harness.external.results import ExternalFile, ExternalResult, ImportFormat, Statistic
from farm.harness.registry import get_harness
from tests.harness.external.samples import (
    BENCHMARK_MODEL,
    EXECUTORCH_V3,
    FILES,
    LEADERBOARD,
    LLAMA_BENCH,
    MLPERF,
    TEST_APP,
    XCTEST,
    json_bytes,
    json_lines,
)


def results(name: str) -> tuple[ExternalResult, ...]:
    return read_external_file(FILES[name]).results


def test_every_format_is_recognized_by_its_content() -> None:
    formats = {name: read_external_file(content).format for name, content in FILES.items()}
    assert set(formats.values()) == set(ImportFormat)
    assert formats["executorch_app.json"] is formats["executorch_v3.json"] is ImportFormat.EXECUTORCH
    assert formats["testapp.log"] is formats["benchmark_model.log"] is ImportFormat.LOG


def test_an_executorch_record_keeps_its_unit_and_a_failed_run_is_left_out() -> None:
    file = read_external_file(FILES["executorch_v3.json"])
    (result,) = file.results
    assert (result.metric, result.value, result.unit) == ("avg_inference_latency(ms)", 4.25, "ms")
    assert result.statistic is Statistic.MEAN
    assert (result.model, result.backend) == ("tiny_net", "xnnpack_q8")
    assert (result.device, result.os) == ("Phone A 5G", "Android 15")
    assert (result.tool_version, result.sample_count, result.date) == (None, None, None)
    assert file.notes == ("[1] is left out: it reports a run that failed",)


def test_several_values_of_an_executorch_record_are_samples() -> None:
    record: dict[str, Any] = EXECUTORCH_V3[0] | {
        "schema_version": "v3",
        "head_sha": "beef",
        "metric": {"name": "generate_time(ms)", "benchmark_values": [3.0, 1.0, 2.0]},
    }
    (result,) = read_external_file(json_lines(record, EXECUTORCH_V3[1])).results
    assert (result.value, result.statistic, result.sample_count) == (2.0, Statistic.MEDIAN, 3)
    assert (result.samples, result.tool_version) == ((3.0, 1.0, 2.0), "beef")


def test_a_record_of_the_executorch_app_has_maker_and_model_of_its_device() -> None:
    (result,) = results("executorch_app.json")
    assert (result.device, result.os, result.backend) == ("maker PA-100", "Android 14", None)
    assert (result.metric, result.value, result.statistic) == ("model_load_time(ms)", 12.5, Statistic.VALUE)
    assert dict(result.settings) == {"quantization": "q8"}
    (note,) = file_of("executorch_app.json").notes
    assert note.endswith("is left out: load_status is a code, no measurement")


def test_llama_bench_gives_the_time_and_the_rate_of_each_test() -> None:
    assert results("llama.json") == results("llama.jsonl")
    found = {result.metric: result for result in results("llama.json")}
    assert set(found) == {"pp64 time", "pp64 rate", "tg16 @ d512 time", "tg16 @ d512 rate"}
    time = found["pp64 time"]
    assert (time.value, time.unit, time.deviation) == (2_000_000.0, "ns", 1000.0)
    assert (time.samples, time.sample_count) == ((1_999_000.0, 2_001_000.0), 2)
    assert (time.tool_version, time.date) == ("0badcafe (77)", "2026-05-01T10:00:00Z")
    assert (time.model, time.device, time.backend) == ("tiny-q4.gguf", "Some CPU", "CPU")
    assert "without tokenization" in str(time.clock_covers)
    assert (found["tg16 @ d512 rate"].value, found["tg16 @ d512 rate"].unit) == (640.5, "tokens/s")


def test_a_throughput_of_mlperf_has_no_unit_for_its_format_does_not_say_one() -> None:
    throughput, accuracy = results("mlperf.json")
    assert (throughput.metric, throughput.value, throughput.unit) == ("throughput", 250.5, None)
    assert (throughput.device, throughput.os) == ("Phone A", "android 15")
    assert (throughput.sample_count, throughput.date) == (1024, "2026-05-01T09:59:00.000")
    assert (throughput.backend, throughput.tool_version) == ("TFLite GPU", "5.0 (abc)")
    assert throughput.settings["validity"] is True
    assert (accuracy.metric, accuracy.value) == ("accuracy accuracy", 0.75)


def test_earlier_versions_of_the_mlperf_app_have_the_device_one_level_higher() -> None:
    flat = MLPERF | {"environment_info": {"os": "ios", "os_version": "17", "model_name": "iPhone Z"}}
    first = read_external_file(json_bytes(flat)).results[0]
    assert (first.device, first.os) == ("iPhone Z", "ios 17")


def test_a_profile_of_ai_hub_has_its_iterations_and_layers() -> None:
    time, load, memory = results("ai_hub.json")
    assert (time.value, time.unit, time.statistic) == (1200.0, "us", Statistic.VALUE)
    assert time.samples == (1200.0, 1300.0, 1250.0)
    assert dict(time.settings) == {"layers on CPU": 1, "layers on NPU": 2}
    assert (load.metric, load.value, load.unit) == ("first_load_time", 90_000.0, "us")
    assert (memory.metric, memory.unit, memory.device, memory.model) == (
        "estimated_inference_peak_memory",
        "bytes",
        None,
        None,
    )


def test_a_row_of_the_leaderboard_has_all_its_statistics() -> None:
    file = read_external_file(FILES["measurements.jsonl"])
    inference = {result.statistic: result for result in file.results if result.metric == "inference"}
    assert {statistic: result.value for statistic, result in inference.items()} == {
        Statistic.MEAN: 5.6,
        Statistic.MEDIAN: 5.5,
        Statistic.P5: 5.25,
        Statistic.P95: 6.0,
    }
    mean = inference[Statistic.MEAN]
    assert (mean.minimum, mean.maximum, mean.deviation, mean.sample_count) == (5.0, 7.0, 0.25, 120)
    assert (mean.tool_version, mean.backend, mean.date) == ("litert 9.1.0", "gpu", "2026-05-01")
    assert mean.settings["nodes_delegated"] == 60
    assert [r.metric for r in file.results if r.unit == "MB"] == ["init_footprint"]
    assert file.notes == ("[1] is left out: its status is failed",)


def test_a_live_timing_is_marked_and_has_mean_median_and_load_time() -> None:
    mean, median, load = results("live.json")
    assert (mean.value, mean.statistic, mean.unit) == (1825.125, Statistic.MEAN, "ns")
    assert (median.value, median.statistic) == (1150.0, Statistic.MEDIAN)
    assert (load.metric, load.value, load.unit) == ("load time", 20.25, "ms")
    assert (mean.minimum, mean.maximum, mean.sample_count) == (1000.5, 4000.0, 4)
    assert mean.deviation == pytest.approx(1257.6, abs=0.1)
    assert (mean.tool, mean.tool_version, mean.model, mean.device) == (
        *("time_evaluator", "0.27"),
        *("tiny_net", "PA-1"),
    )
    assert {each.settings["driven"] for each in (mean, median, load)} == {"live"}
    assert (mean.settings["library_digest"], mean.settings["number"]) == ("ab" * 32, 3)


def test_an_xctest_line_has_its_values_and_the_name_says_model_and_device() -> None:
    (result,) = read_external_file((XCTEST + XCTEST).encode()).results
    assert (result.metric, result.value, result.unit) == ("Clock Monotonic Time", 0.012, "s")
    assert (result.samples, result.sample_count) == ((0.011, 0.013), 2)
    assert result.deviation == pytest.approx(0.0012)
    assert (result.model, result.device, result.os) == ("tiny_net", "iPhone15_4", "iOS 17.2.1")
    assert result.settings["method"] == "forward"


def test_a_log_of_benchmark_model_tells_model_flags_and_what_ran() -> None:
    time, *others = results("benchmark_model.log")
    assert (time.tool, time.value, time.unit) == ("benchmark_model", 5_000_500.0, "ns")
    assert (time.sample_count, time.minimum, time.maximum) == (200, 4_900_000.0, 5_400_000.0)
    assert (time.model, time.backend) == ("tiny.tflite", "XNNPACK")
    assert dict(time.settings) == {"Num threads": "4"}
    assert ("load_time", 9000.0, "us") in {(other.metric, other.value, other.unit) for other in others}


def test_what_ran_is_unknown_where_the_log_does_not_show_it() -> None:
    quiet = "\n".join(line for line in BENCHMARK_MODEL.splitlines() if "elegate" not in line)
    assert read_external_file(quiet.encode()).results[0].backend is None


def test_ios_testapp_prints_milliseconds_over_two_lines() -> None:
    (result,) = results("testapp.log")
    assert (result.value, result.unit, result.statistic) == (41_500_000.0, "ns", Statistic.MEAN)
    assert (result.sample_count, result.model, result.backend) == (None, None, None)


def test_a_log_is_read_by_the_adapter_that_is_named() -> None:
    log = (
        'PyTorchObserver {"type": "NET", "unit": "us", "metric": "latency", "value": "1000"}\n'
        'PyTorchObserver {"type": "NET", "unit": "us", "metric": "latency", "value": "1200"}\n'
        'PyTorchObserver {"type": "NET", "unit": "us", "metric": "latency", "value": "1100"}\n'
        "Main run finished. Microseconds per iter: 1100. Iters per second: 909.091\n"
    )
    file = read_external_file(log.encode(), harness=get_harness("speed_benchmark_torch"))
    (result,) = file.results
    assert (result.value, result.statistic) == (1_100_000.0, Statistic.MEDIAN)
    assert result.samples == (1_000_000.0, 1_200_000.0, 1_100_000.0)


def test_text_of_windows_shells_is_read_too() -> None:
    for encoding in ("utf-16", "utf-8-sig"):
        assert read_external_file(BENCHMARK_MODEL.encode(encoding)) == file_of("benchmark_model.log")
        assert (
            read_external_file(json_text(LLAMA_BENCH[0]).encode(encoding)).format is ImportFormat.LLAMA_BENCH
        )


def test_lines_of_loggers_that_begin_with_a_bracket_are_no_json() -> None:
    bracketed = "\n".join(f"[INFO] {line}" for line in BENCHMARK_MODEL.splitlines())
    assert read_external_file(bracketed.encode()).results[0].value == 5_000_500.0


def test_a_time_of_0_was_not_measured() -> None:
    zero = LEADERBOARD | {"latency_ms": LEADERBOARD["latency_ms"] | {"init": 0.0}}
    file = read_external_file(json_lines(zero, zero))
    assert "load_time" not in {result.metric for result in file.results}
    assert file.notes[0] == "result 5 is left out: load_time of 0 ms is no measured time"


def test_testapp_and_speed_benchmark_torch_are_told_by_their_last_line() -> None:
    assert read_external_file(TEST_APP.encode()).results[0].tool == "speed_benchmark_torch"


def file_of(name: str) -> ExternalFile:
    return read_external_file(FILES[name])


def json_text(document: Mapping[str, Any]) -> str:
    return json_bytes(document).decode()
