"""The harnesses this farm knows, by name."""

from difflib import get_close_matches

from farm.core.errors import NotFound
from farm.harness.adapter import Harness
from farm.harness.benchmark_model import BenchmarkModel
from farm.harness.benchncnn import Benchncnn
from farm.harness.executor_runner import ExecutorRunner
from farm.harness.litert_benchmark import LitertBenchmark
from farm.harness.mnn_benchmark import MnnBenchmark
from farm.harness.onnxruntime_perf_test import OnnxruntimePerfTest
from farm.harness.speed_benchmark_torch import SpeedBenchmarkTorch

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
    """Every harness's name, sorted."""
    return sorted(harness.name for harness in _HARNESSES)


def get_harness(name: str) -> Harness:
    """The adapter of that name.

    Raises:
        NotFound: there is none; the hint names the closest ones.
    """
    for harness in _HARNESSES:
        if harness.name == name:
            return harness
    close = get_close_matches(name, harness_names(), n=3, cutoff=0.4) or harness_names()
    raise NotFound(f"there is no harness {name!r}", hint=f"did you mean {' or '.join(close)}?")
