"""The registry of harnesses by name."""

from difflib import get_close_matches

from farm.core.errors import NotFound
from farm.harness.base.adapter import Harness
from farm.harness.base.options import HarnessOptions
from farm.harness.base.tool_harness import ToolHarness
from farm.harness.engines.mnn import MnnBenchmark
from farm.harness.engines.ncnn import Benchncnn
from farm.harness.engines.tvm import TvmBenchmark
from farm.harness.executorch.executor_runner import ExecutorRunner
from farm.harness.llm.executorch.llama_main import LlamaMain
from farm.harness.llm.litert_lm.advanced_main import LitertLmAdvancedMain
from farm.harness.llm.llama_cpp.llama_bench import LlamaBench
from farm.harness.llm.mnn.llm_bench import LlmBench
from farm.harness.llm.onnxruntime.model_benchmark import ModelBenchmark
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
    TvmBenchmark(),
    LlamaBench(),
    LitertLmAdvancedMain(),
    LlamaMain(),
    ModelBenchmark(),
    LlmBench(),
)
_HARNESS_BY_NAME = {harness.name: harness for harness in _HARNESSES}


def harness_names() -> list[str]:
    """Return every harness's name, sorted."""
    return sorted(_HARNESS_BY_NAME)


def has_adapter(name: str) -> bool:
    """Tell whether the farm has an adapter of its own for a harness, also in a person's name space."""
    return _base_name(name) in _HARNESS_BY_NAME


def get_harness(name: str) -> Harness:
    """Return the adapter of that name, which is the same in every name space.

    Raises:
        NotFound: there is none; the hint names the closest ones.
    """
    _check_known(name)
    return _HARNESS_BY_NAME[_base_name(name)]


def get_options(name: str) -> HarnessOptions:
    """Return the settings and backends of that harness; raises like `get_harness`."""
    _check_known(name)
    return _HARNESS_BY_NAME[_base_name(name)]


def _check_known(name: str) -> None:
    if not has_adapter(name):
        close = get_close_matches(name, harness_names(), n=3, cutoff=0.4) or harness_names()
        raise NotFound(f"there is no harness {name!r}", hint=f"did you mean {' or '.join(close)}?")


def _base_name(name: str) -> str:
    return name.rpartition("/")[2]
