"""Every capture of accelerators and delegates that lies beside the checkout; skipped where there is none."""

from collections.abc import Callable
from pathlib import Path

import pytest

from farm.core.runs.placement import Placement, placement_text, resolve_actual_backend
from farm.harness.base.log_lines import log_lines
from farm.harness.executorch.placement import executorch_placement
from farm.harness.nnapi.armnn import armnn_placement
from farm.harness.nnapi.placement import nnapi_accelerators, nnapi_placement
from farm.harness.onnxruntime.placement import ort_placement
from farm.harness.tflite.placement import tflite_placement
from farm.harness.torch.placement import pytorch_vulkan_placement

CAPTURES = Path(__file__).parents[4] / "shared" / "captures"
FILES = sorted(CAPTURES.glob("*/*"))
Parser = Callable[[str], Placement | None]
PARSERS: list[Parser] = [
    *[tflite_placement, nnapi_placement, ort_placement, executorch_placement, armnn_placement],
    pytorch_vulkan_placement,
]
needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason="no captures beside the checkout")


def captured(name: str) -> str:
    path = CAPTURES / name
    if not path.is_file():
        pytest.skip("no captures here")
    return path.read_text(errors="replace")


@needs_captures
@pytest.mark.parametrize("parse", PARSERS)
def test_no_parser_raises_on_any_capture(parse: Callable[[str], object]) -> None:
    for path in FILES:
        if path.is_file():
            parse(path.read_bytes().decode(errors="replace"))


@pytest.mark.parametrize(
    ("name", "asked", "backend", "words"),
    [
        ("accelerator/tflite_gpu_97_gpu_200_cpu_movenet.txt", "gpu", "cpu", "cpu 200/297, gpu 97"),
        ("accelerator/tflite_gpu_opencl_missing_a12_batch_dim_fail.txt", "gpu", "cpu", "cpu"),
        ("accelerator/tflite_gpu_opencl_missing_opengl_fallback.txt", "gpu", "gpu", "gpu"),
        ("accelerator/tflite_hexagon_replacing_136_of_139.txt", "hexagon", "hexagon", "dsp 136/139, cpu 3"),
        ("accelerator/tflite_nnapi_ipuadaptor_not_executed_by_delegate.txt", "nnapi", "cpu", "cpu"),
        ("accelerator/tflite_qnn_external_delegate_0_of_31.txt", "qnn", "cpu", "cpu 31/31"),
        ("benchmark_model/benchmark_apk_logcat_brief_xnnpack_539_of_548.txt", "cpu", "cpu", "cpu 548/548"),
        ("benchmark_model/benchmark_model_2.4_nnapi_qtidefault_opfailed_mi11.txt", "nnapi", "cpu", "cpu"),
        ("benchmark_model/benchmark_model_2020_gpu_opencl_full_delegation.txt", "gpu", "gpu", "gpu"),
        ("benchmark_model/benchmark_model_hexagon_not_created_cpu_fallback.txt", "hexagon", "cpu", "cpu"),
        (
            "benchmark_model/litert_benchmark_model_int4_24_runs_termux.txt",
            "xnnpack",
            "xnnpack",
            "cpu 2168/2168",
        ),
        (
            "benchmark_model/litert_benchmark_model_xnnpack_1000_runs_termux.txt",
            "cpu",
            "cpu",
            "cpu 2168/2168",
        ),
        ("benchmark_model/tflite_2.20_benchmark_model_xnnpack_am62.txt", "xnnpack", "xnnpack", "cpu"),
        ("ios/tflite_ios_benchmark_app_fp32_cpu.txt", "cpu", "cpu", "cpu"),
    ],
)
def test_what_a_delegate_took(name: str, asked: str, backend: str, words: str) -> None:
    found = tflite_placement(captured(name))
    assert found is not None
    assert placement_text(found) == words
    assert resolve_actual_backend(found, asked).backend == backend


@pytest.mark.parametrize(
    ("name", "parse", "by"),
    [
        ("accelerator/tflite_external_delegate_edgetpu_segfault.txt", tflite_placement, "libedgetpu"),
        ("accelerator/tflite_gpu_unsupported_ops_logcat.txt", tflite_placement, "GPU"),
        ("accelerator/tflite_nnapi_pixel3a_accelerators.txt", tflite_placement, "NNAPI"),
        ("accelerator/nnapi_manager_pixel4_google_edgetpu.txt", tflite_placement, "NNAPI"),
        ("accelerator/armnn_delegate_v33.0_khadas_edge2.txt", armnn_placement, "Arm NN"),
        ("accelerator/armnn_delegate_v33.2_two_runs.txt", armnn_placement, "Arm NN"),
        ("accelerator/armnn_tflite_mobilenet_quant_v33.1.txt", armnn_placement, "Arm NN"),
        ("benchmark_model/benchmark_model_2.4_nnapi_qtigpu_opprofile_mi11.txt", tflite_placement, "NNAPI"),
        ("other-tools/ort_perf_test_spacemit_k1_ep_yolov8n.txt", ort_placement, "SpaceMIT"),
        ("other-tools/ort_perf_test_android_acl_ep_squeezenet.txt", ort_placement, "acl"),
        ("other-tools/executorch_qnn_executor_runner_x86_emulator.txt", executorch_placement, "Qnn"),
    ],
)
def test_what_was_made_or_asked_for_only_stays_unknown(name: str, parse: Parser, by: str) -> None:
    found = parse(captured(name))
    assert found is not None
    assert resolve_actual_backend(found, "asked").accelerator == "unknown"
    assert found.shares[0].by.startswith(by)


@pytest.mark.parametrize(
    "name",
    [
        "accelerator/tflite_nnapi_edgetpu_studio_logcat_format.txt",
        "accelerator/getprop_nnapi_props_pixel8pro_darwinn.txt",
        "accelerator/service_list_galaxy_tab_s10plus_mtk_shims.txt",
        "accelerator/vintf_manifest_pixel8pro_neuralnetworks_darwinn.xml",
        "accelerator/lshal_no_neuralnetworks_honor_x8.txt",
        "benchmark_model/tflite_2.20_benchmark_model_cpu_am62.txt",
    ],
)
def test_what_is_there_or_was_not_asked_for_has_no_placement(name: str) -> None:
    text = captured(name)
    assert [parse(text) for parse in PARSERS] == [None] * len(PARSERS)


def test_a_driver_without_its_manifest_and_operators_that_are_refused_are_warned_of() -> None:
    missing = nnapi_placement(captured("accelerator/armnn_driver_hwservicemanager_missing_manifest.txt"))
    assert missing is not None
    assert missing.shares == ()
    assert "IDevice/armnn in either framework or device manifest" in missing.warnings[0]
    refused = ort_placement(captured("accelerator/ort_nnapi_ep_qlinearconv_not_supported.txt"))
    assert refused is not None
    assert any("Node supported: [0] Operator type: [QLinearConv]" in line for line in refused.warnings)


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("nnapi_manager_pixel4_google_edgetpu", "google-edgetpu"),
        (
            "tflite_nnapi_edgetpu_studio_logcat_format",
            "qti-default,qti-dsp,qti-gpu,google-edgetpu,nnapi-reference",
        ),
        ("tflite_nnapi_ipuadaptor_not_executed_by_delegate", "ipuadaptor,nnapi-reference"),
        ("tflite_nnapi_pixel3a_accelerators", "qti-default,qti-dsp,qti-gpu,paintbox,nnapi-reference"),
    ],
)
def test_the_accelerators_that_there_are_are_named(name: str, offered: str) -> None:
    text = captured(f"accelerator/{name}.txt")
    assert nnapi_accelerators(log_lines(text)) == tuple(offered.split(","))
