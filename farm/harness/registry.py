"""The registry of harnesses by name."""

from difflib import get_close_matches

from farm.core.errors import NotFound
from farm.harness.base.adapter import Harness
from farm.harness.executorch.executor_runner import ExecutorRunner
from farm.harness.mnn.mnn_benchmark import MnnBenchmark
from farm.harness.ncnn.benchncnn import Benchncnn
from farm.harness.onnxruntime.onnxruntime_perf_test import OnnxruntimePerfTest
from farm.harness.tflite.benchmark_model import BenchmarkModel
from farm.harness.tflite.litert_benchmark import LitertBenchmark
from farm.harness.torch.speed_benchmark_torch import SpeedBenchmarkTorch

_HARNESSES: tuple[Harness, ...] = (
    SpeedBenchmarkTorch(),
    BenchmarkModel(),
    LitertBenchmark(),
    ExecutorRunner(),
    OnnxruntimePerfTest(),
    Benchncnn(),
    MnnBenchmark(),
)


def harness_names() -> list[str]:
    """Return every harness's name, sorted."""
    return sorted(harness.name for harness in _HARNESSES)


def get_harness(name: str) -> Harness:
    """Return the adapter of that name.

    Raises:
        NotFound: there is none; the hint names the closest ones.
    """
    for harness in _HARNESSES:
        if harness.name == name:
            return harness
    close = get_close_matches(name, harness_names(), n=3, cutoff=0.4) or harness_names()
    raise NotFound(f"there is no harness {name!r}", hint=f"did you mean {' or '.join(close)}?")
