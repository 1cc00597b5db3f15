"""Whatever tools print, cut anywhere, garbled or in UTF-16, every parser and every adapter answers."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.base.output_lines import plain_lines
from farm.harness.engines.mnn import mnn_output
from farm.harness.engines.ncnn import ncnn_output
from farm.harness.executorch.executor_runner import executions
from farm.harness.executorch.placement import inspector_table_rows
from farm.harness.llm.llama_cpp.placement import llama_placement
from farm.harness.onnxruntime.onnxruntime_perf_test import ort_output
from farm.harness.registry import get_harness, harness_names
from farm.harness.tflite.litert_benchmark import litert_output
from farm.harness.tflite.output import operator_times, tflite_output

FILES = sorted(
    (
        path
        for path in (Path(__file__).parents[2] / "support" / "harness" / "outputs").rglob("*")
        if path.is_file()
    ),
    key=lambda path: path.name,
)
OUTPUTS = [path.read_text() for path in FILES]
LINES = sorted({line for text in OUTPUTS for line in text.splitlines() if line})
PARSERS = [
    executions,
    inspector_table_rows,
    litert_output,
    llama_placement,
    mnn_output,
    ncnn_output,
    operator_times,
    ort_output,
    plain_lines,
    tflite_output,
]
NAMES = [name for name in harness_names() if name != "speed_benchmark_torch"]
#: Figures no tool prints, and forms that Python reads and nobody means.
WILD = st.sampled_from(
    ["1e99", "inf", "nan", "-5", "0", "1_000", "٣", "9" * 30, "1e-99", "[", '{"model": 3}']
)
LINE = st.sampled_from(LINES)
NOISE = st.lists(LINE | WILD | st.text(max_size=30), max_size=25).map("\n".join)


@st.composite
def garbled(draw: st.DrawFn) -> str:
    """An output with a word exchanged, in any of the line ends, maybe cut or read as something else."""
    text = draw(st.sampled_from(OUTPUTS) | NOISE)
    words = text.split(" ")
    words[draw(st.integers(0, len(words) - 1))] = draw(WILD | st.text(max_size=8))
    text = draw(st.sampled_from(["", "INFO: ", "I tflite  : "])) + " ".join(words)
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"])))
    text = text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text
    return text.encode("utf-16", "replace").decode("utf-8", "replace") if draw(st.booleans()) else text


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.__name__)
@given(text=garbled())
@example(text="")
def test_no_parser_raises(parser: object, text: str) -> None:
    assert callable(parser)
    parser(text)


@pytest.mark.parametrize("name", NAMES)
@given(stdout=garbled(), stderr=NOISE, code=st.integers(-300, 300), told=garbled(), backend=st.data())
def test_every_adapter_answers_with_times_that_can_be_kept(
    name: str, stdout: str, stderr: str, code: int, told: str, backend: st.DataObject
) -> None:
    harness = get_harness(name)
    asked = backend.draw(st.sampled_from(list(harness.backends)))
    plan = RunPlan(harness=name, backend=asked, files=(), argv=("tool",), timeout_s=60.0)
    ended, ended_well = ExitRecord(code=code, duration_s=1.0), ExitRecord(code=0, duration_s=1.0)
    passes = tuple(
        PassEvidence(name=each, exit=ended_well, stdout=told)
        for each in ("op_profile", "memory", "placement", "result_files")
    )
    evidence = Evidence(fence=1, exit=ended, stdout=stdout, stderr=stderr, passes=passes)
    answer = harness.parse(plan, evidence)
    assert isinstance(answer, Reading | RunFailure)
    assert answer == harness.parse(plan, evidence)
    if isinstance(answer, Reading):
        assert bool(answer.samples_ns) != (answer.mean_ns is not None)
        assert all(0 < value < 2**63 for value in (*answer.samples_ns, answer.mean_ns or 1))
        assert answer.summed_samples is None or 0 <= answer.summed_samples < 10**10
