"""What tools printed on phones; the facts are those that the captures' index has."""

from pathlib import Path

import pytest

from farm.core.errors import InvalidInput
from farm.harness.external.recognition import read_external_file
from farm.harness.external.results import ImportFormat

CAPTURES = Path(__file__).parents[4] / "shared" / "captures"


def capture(name: str) -> bytes:
    if not CAPTURES.is_dir():
        pytest.skip("no captures here")
    return (CAPTURES / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "format", "value", "unit", "model"),
    [
        (
            "other-tools/executorch_android_benchmark_json_s24plus_mv2.json",
            "executorch",
            9.3611927,
            "ms",
            "mv2_xnnpack",
        ),
        ("ios/xctest_measure_time_seconds_2014.txt", "xctest", 0.316, "s", None),
        (
            "benchmark_model/tflite_2.20_benchmark_model_cpu_am62.txt",
            "log",
            1.24027e9,
            "ns",
            "ssd_mobilenet_v2_coco.tflite",
        ),
        (
            "benchmark_model/benchmark_model_2019_avg_inference_timings_full.txt",
            "log",
            66_767_600.0,
            "ns",
            None,
        ),
        ("speed_benchmark_torch/sbt_report_pep_resnet18_v1.7.1.txt", "log", 583_396_000.0, "ns", None),
    ],
)
def test_a_capture_is_read_as_it_tells(
    name: str, format: str, value: float, unit: str, model: str | None
) -> None:
    file = read_external_file(capture(name))
    assert file.format is ImportFormat(format)
    first = file.results[0]
    assert (first.value, first.unit, first.model) == (value, unit, model)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ios/tflite_ios_benchmark_app_fp32_cpu.txt", "one complete run is not in it"),
        ("benchmark_model/benchmark_model_2.4_nnapi_qtidefault_opfailed_mi11.txt", "did not end well"),
        ("getprop/getprop_pixel8_tensor_g3_a14.txt", "is not JSON"),
    ],
)
def test_a_capture_without_a_whole_run_is_refused(name: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        read_external_file(capture(name))


def test_every_capture_is_read_or_refused_for_a_reason() -> None:
    if not CAPTURES.is_dir():
        pytest.skip("no captures here")
    refused = []
    paths = sorted(path for path in CAPTURES.rglob("*") if path.is_file())
    for path in paths:
        try:
            read_external_file(path.read_bytes())
        except InvalidInput as error:
            refused.append(error)
    assert all(error.message and error.hint for error in refused)
    assert len(paths) - len(refused) >= 13
