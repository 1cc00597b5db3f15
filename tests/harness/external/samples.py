"""Files as other tools write them, with numbers of our own."""

import json
import struct
from typing import Any

EXECUTORCH_V3: list[dict[str, Any]] = [
    {
        "benchmark": {"name": "ExecuTorch", "mode": "inference", "extra_info": {"app_type": "android"}},
        "model": {"name": "tiny_net", "type": "OSS model", "backend": "xnnpack_q8"},
        "metric": {
            "name": "avg_inference_latency(ms)",
            "benchmark_values": [4.25],
            "target_value": 0.0,
            "extra_info": {"method": ""},
        },
        "runners": [
            {"name": "Phone A 5G", "type": "Android 15", "avail_mem_in_gb": "", "total_mem_in_gb": ""}
        ],
    },
    {
        "benchmark": {"name": "ExecuTorch", "mode": "inference"},
        "model": {"name": "tiny_net", "type": "OSS model", "backend": "xnnpack_q8"},
        "metric": {"name": "FAILURE_REPORT", "benchmark_values": 0, "target_value": 0},
        "runners": [{"name": "Phone B", "type": "Android 14"}],
    },
]
EXECUTORCH_APP = [
    {
        "actualValue": 12.5,
        "benchmarkModel": {"backend": "", "name": "tiny_net", "quantization": "q8"},
        "deviceInfo": {"arch": "PA-100", "device": "maker", "os": "Android 14", "availMem": 0, "totalMem": 0},
        "metric": "model_load_time(ms)",
        "targetValue": 0.0,
    },
    {
        "actualValue": 0.0,
        "benchmarkModel": {"backend": "", "name": "tiny_net", "quantization": "q8"},
        "deviceInfo": {"arch": "PA-100", "device": "maker", "os": "Android 14", "availMem": 0, "totalMem": 0},
        "metric": "load_status",
        "targetValue": 0.0,
    },
]
LLAMA_BENCH: list[dict[str, Any]] = [
    {
        "build_commit": "0badcafe",
        "build_number": 77,
        "cpu_info": "Some CPU",
        "gpu_info": "",
        "backends": "CPU",
        "model_filename": "models/tiny-q4.gguf",
        "model_type": "tiny 1B Q4",
        "n_threads": 4,
        "flash_attn": False,
        "n_prompt": prompt,
        "n_gen": generated,
        "n_depth": depth,
        "test_time": "2026-05-01T10:00:00Z",
        "avg_ns": 2_000_000,
        "stddev_ns": 1_000,
        "avg_ts": 640.5,
        "stddev_ts": 0.5,
        "samples_ns": [1_999_000, 2_001_000],
        "samples_ts": [641.0, 640.0],
    }
    for prompt, generated, depth in ((64, 0, 0), (0, 16, 512))
]
MLPERF: dict[str, Any] = {
    "meta": {"uuid": "0", "upload_date": "2026-05-01T10:00:00.000Z"},
    "results": [
        {
            "benchmark_id": "image_classification",
            "benchmark_name": "Image classification",
            "loadgen_scenario": "SingleStream",
            "backend_settings": {"accelerator_code": "gpu", "batch_size": 0, "extra_settings": []},
            "backend_info": {"filename": "libx", "backend_name": "TFLite", "accelerator_name": "GPU"},
            "performance_run": {
                "throughput": 250.5,
                "accuracy": None,
                "measured_duration": 60.1,
                "measured_samples": 1024,
                "start_datetime": "2026-05-01T09:59:00.000",
                "loadgen_info": {"validity": True, "duration": 60.0},
            },
            "accuracy_run": {"throughput": None, "accuracy": {"normalized": 0.75, "formatted": "75%"}},
        }
    ],
    "environment_info": {
        "platform": "android",
        "value": {"android": {"os_version": "15", "model_code": "PA-100", "model_name": "Phone A"}},
    },
    "build_info": {"version": "5.0", "build_number": "1", "git_commit": "abc"},
}
AI_HUB: dict[str, Any] = {
    "execution_summary": {
        "estimated_inference_time": 1200,
        "estimated_inference_peak_memory": 1_000_000,
        "first_load_time": 90_000,
        "warm_load_time": None,
        "all_inference_times": [1200, 1300, 1250],
    },
    "execution_detail": [
        {"name": "a", "type": "CONV", "compute_unit": "NPU"},
        {"name": "b", "type": "CONV", "compute_unit": "NPU"},
        {"name": "c", "type": "SOFTMAX", "compute_unit": "CPU"},
    ],
}
LEADERBOARD: dict[str, Any] = {
    "row_id": "org/Net:net.tflite@9.1.0/android/phone-a/gpu",
    "model": "org/Net",
    "file": "net.tflite",
    "platform": "android",
    "device_id": "phone-a",
    "device": "Phone A",
    "os": "Android 15 (API 35)",
    "accelerator": "gpu",
    "delegate": "LITERT_CL",
    "nodes_delegated": 60,
    "nodes_total": 70,
    "latency_ms": {
        "median": 5.5,
        "avg": 5.6,
        "p5": 5.25,
        "p95": 6.0,
        "min": 5.0,
        "max": 7.0,
        "stddev": 0.25,
        "init": 200.0,
        "first_inference": 20.0,
        "warm_up_avg": 5.75,
    },
    "memory_mb": {"init_footprint": 50.5, "overall_footprint": None},
    "runs": 120,
    "warmup_runs": 60,
    "runtime": "litert",
    "runtime_version": "9.1.0",
    "status": "measured",
    "date": "2026-05-01",
}
XCTEST = (
    "Test Case '-[Benchmarks.Tests test_forward_tiny_net_pte_iOS_17_2_1_iPhone15_4]' started.\n"
    "/a/Tests.mm:10: Test Case '-[Benchmarks.Tests test_forward_tiny_net_pte_iOS_17_2_1_iPhone15_4]' measured"
    " [Clock Monotonic Time, s] average: 0.012, relative standard deviation: 10.000%, values: [0.011, 0.013],"
    ' performanceMetricID:com.apple.dt.XCTMetric_Clock.time.monotonic, baselineName: "", baselineAverage: ,'
    " polarity: prefers smaller\n"
    "Test Case '-[Benchmarks.Tests test_forward_tiny_net_pte_iOS_17_2_1_iPhone15_4]' passed (3.1 seconds).\n"
)
TEST_APP = (
    "2026-05-01 10:00:00.1 TestApp[100:2000] Running warmup runs\n"
    "2026-05-01 10:00:01.1 TestApp[100:2000] Main runs\n"
    "2026-05-01 10:00:02.1 TestApp[100:2000] Main run finished. Milliseconds per iter: 41.500\n"
    "2026-05-01 10:00:02.1 TestApp[100:2000] Iters per second: : 24.096\n"
    "2026-05-01 10:00:02.1 TestApp[100:2000] Done.\n"
)
BENCHMARK_MODEL = (
    "INFO: STARTING!\n"
    "INFO: Num threads: [4]\n"
    "INFO: Graph: [/data/local/tmp/tiny.tflite]\n"
    "INFO: Loaded model /data/local/tmp/tiny.tflite\n"
    "INFO: Created TensorFlow Lite XNNPACK delegate for CPU.\n"
    "VERBOSE: Replacing 64 out of 64 node(s) with delegate (TfLiteXNNPackDelegate) node, yielding 1"
    " partitions for subgraph 0.\n"
    "INFO: Running benchmark for at least 1 iterations and at least 0.5 seconds but terminate if exceeding"
    " 150 seconds.\n"
    "INFO: count=10 first=6000 curr=5000 min=5000 max=6000 avg=5100 std=300 p5=5000 median=5000 p95=6000\n"
    "INFO: Running benchmark for at least 50 iterations and at least 1 seconds but terminate if exceeding"
    " 150 seconds.\n"
    "INFO: count=200 first=5000 curr=5000 min=4900 max=5400 avg=5000.5 std=20 p5=4950 median=5000 p95=5050\n"
    "INFO: Inference timings in us: Init: 9000, First inference: 6000, Warmup (avg): 5100,"
    " Inference (avg): 5000.5\n"
)
LIVE_TIMING = {
    "driven": "live",
    "tool": "time_evaluator",
    "tool_version": "0.27",
    "tvm_ffi": "0.1",
    "model": "tiny_net",
    "library_digest": "ab" * 32,
    "key": "pixel",
    "device": "PA-1",
    "program": "cd" * 32,
    "threads": "1",
    "inputs": "1x3x32x32:float32",
    "number": 3,
    "repeat": 4,
    "times_ns": [1000.5, 1200.0, 1100.0, 4000.0],
    "upload_ms": 80.5,
    "load_ms": 20.25,
    "measured_at": "2026-05-01T10:00:00.000+00:00",
}


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def float_field(number: int, value: float) -> bytes:
    return varint(number << 3 | 5) + struct.pack("<f", value)


def varint_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def message_field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def benchmark_result() -> bytes:
    """What benchmark_model writes to --result_file_path."""
    latency = b"".join(
        float_field(number, value)
        for number, value in enumerate((5.5, 5.0, 7.0, 0.25, 5.25, 5.125, 6.5, 200.0, 20.0, 5.75), start=1)
    )
    memory = varint_field(1, 2048) + varint_field(2, 4096) + float_field(3, 12.5)
    misc = float_field(1, 13.5) + varint_field(2, 120) + varint_field(3, 60)
    return (
        message_field(1, b"tiny")
        + message_field(2, latency)
        + message_field(3, memory)
        + message_field(4, misc)
    )


def json_bytes(document: object) -> bytes:
    return json.dumps(document).encode()


def json_lines(*documents: object) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


#: Of phones and numbers that are made up for tests.
PUBLISHED = """\
device,os,chip,model,precision,backend,value,unit,tool,source,threads
Phone B,,,tiny_net,int8-full,nnapi,3000,us,speed_benchmark_torch,https://example.com/b,
Phone A,Android 12,Chip 1,tiny_net,int8-full,nnapi,5,ms,speed_benchmark_torch,https://example.com/a,1
Phone A,Android 12,Chip 1,tiny_net,int8-full,cpu,10,ms,speed_benchmark_torch,https://example.com/a,1
Phone A,Android 12,Chip 1,tiny_net,float32,cpu,20,ms,speed_benchmark_torch,https://example.com/a,1
"""

#: A file of each format.
FILES: dict[str, bytes] = {
    "executorch_v3.json": json_bytes(EXECUTORCH_V3),
    "executorch_app.json": json_bytes(EXECUTORCH_APP),
    "llama.json": json_bytes(LLAMA_BENCH),
    "llama.jsonl": json_lines(*LLAMA_BENCH),
    "mlperf.json": json_bytes(MLPERF),
    "ai_hub.json": json_bytes(AI_HUB),
    "measurements.jsonl": json_lines(LEADERBOARD, LEADERBOARD | {"row_id": "other", "status": "failed"}),
    "results.pb": benchmark_result(),
    "xctest.log": XCTEST.encode(),
    "testapp.log": TEST_APP.encode(),
    "benchmark_model.log": BENCHMARK_MODEL.encode(),
    "live.json": json_bytes(LIVE_TIMING),
    "published.csv": PUBLISHED.encode(),
}
