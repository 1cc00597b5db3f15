"""The registry of harnesses by name."""

from difflib import get_close_matches

from farm.core.errors import NotFound
from farm.harness.base.adapter import Harness
from farm.harness.base.options import HarnessOptions
from farm.harness.base.tool_harness import ToolHarness
from farm.harness.executorch.executor_runner import ExecutorRunner
from farm.harness.mnn import MnnBenchmark
from farm.harness.ncnn import Benchncnn
from farm.harness.onnxruntime.onnxruntime_perf_test import OnnxruntimePerfTest
from farm.harness.tflite.benchmark_model import BenchmarkModel
from farm.harness.tflite.litert_benchmark import LitertBenchmark
from farm.harness.torch.speed_benchmark_torch import SpeedBenchmarkTorch

_HARNESSES: tuple[ToolHarness, ...] = (
    SpeedBenchmarkTorch(),
    BenchmarkModel(),
    LitertBenchmark(),
    ExecutorRunner(),
    OnnxruntimePerfTest(),
    Benchncnn(),
    MnnBenchmark(),
)
_HARNESS_BY_NAME = {harness.name: harness for harness in _HARNESSES}


def harness_names() -> list[str]:
    """Return every harness's name, sorted."""
    return sorted(_HARNESS_BY_NAME)


def get_harness(name: str) -> Harness:
    """Return the adapter of that name.

    Raises:
        NotFound: there is none; the hint names the closest ones.
    """
    harness = _HARNESS_BY_NAME.get(name)
    if harness is None:
        raise _unknown(name)
    return harness


def get_options(name: str) -> HarnessOptions:
    """Return the settings and backends of that harness; raises like `get_harness`."""
    options = _HARNESS_BY_NAME.get(name)
    if options is None:
        raise _unknown(name)
    return options


def _unknown(name: str) -> NotFound:
    close = get_close_matches(name, harness_names(), n=3, cutoff=0.4) or harness_names()
    return NotFound(f"there is no harness {name!r}", hint=f"did you mean {' or '.join(close)}?")
