"""TVM's program: how it is called, and what its output means."""

import pytest

from farm.harness.engines.tvm import FLAGS
from tests.core.matrices.expansion.test_expansion_inputs import expanded, file_of, refusal
from tests.support.harness import tool_samples as sample

NAME = "tvm_benchmark"


def printed(*times_ms: float, mean_ms: float | None = None) -> str:
    count = len(times_ms)
    lines = [f"Iteration {number} of {count}: {each:.6f} ms" for number, each in enumerate(times_ms, 1)]
    mean = sum(times_ms) / count if mean_ms is None else mean_ms
    return "\n".join(
        [
            "Model loaded in 25.250000 ms.",
            "Device: cpu(0), threads: 1",
            *lines,
            f"Mean of {count} iterations: {mean:.6f} ms",
            "",
        ]
    )


def test_each_inference_is_a_sample_and_the_cpu_is_all_there_is() -> None:
    found = sample.reading(NAME, printed(1.5, 2.5, 2.0), num_runs=3)
    assert found.samples_ns == (1_500_000, 2_500_000, 2_000_000)
    assert (found.expected_samples, found.mean_ns, found.clock_step_ns) == (3, None, 1)
    assert (found.actual_backend, found.accelerator) == ("cpu", "cpu")
    assert "cpu(0)" in found.proof
    assert sample.metrics(found) == {"load_time": 25.25}


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (printed(1.5, 2.5, mean_ms=3.0), "2 inferences of 2 ms are not those of the stated mean, 3 ms of 2"),
        (
            printed(1.5, 2.5).replace("Iteration 1 of 2: 1.500000 ms\n", ""),
            "are not those of the stated mean, 2 ms of 2",
        ),
        (printed(1.5) + printed(2.5), "more than one run"),
        (printed(1.5).partition("Mean")[0], "no line says `Mean of N iterations"),
        (printed(0.0), "takes no time"),
    ],
)
def test_an_output_that_contradicts_itself_gives_no_number(output: str, why: str) -> None:
    found = sample.failure(NAME, output)
    assert found.code == "run.output_unreadable"
    assert why in found.message


def test_as_many_inferences_as_may_be_asked_for_fit_into_the_output_that_comes_back() -> None:
    most = FLAGS["num_runs"].maximum
    assert most is not None
    # None takes longer than a day.
    line = f"Iteration {most} of {most}: {86_400_000:.6f} ms\n"
    assert most * len(line) < sample.plan(NAME, num_runs=most).output_limit_bytes


def test_the_program_is_told_the_inputs_which_the_file_does_not_state() -> None:
    file = file_of(NAME, "1x3x8x8:float32", "1x16:int64")
    [cell] = expanded(NAME, file).cells
    assert cell.settings["inputs"] == "1x3x8x8:float32;1x16:int64"
    assert "--inputs=1x3x8x8:float32" in sample.words(NAME, inputs="1x3x8x8:float32")
    [stated] = expanded(NAME, file, settings={"inputs": "1x3x4x4:float32"}).cells
    assert stated.settings["inputs"] == "1x3x4x4:float32"


def test_a_library_without_stated_inputs_is_rejected_with_the_command_that_declares_them() -> None:
    answer = refusal(NAME, file_of(NAME))
    assert "tvm_benchmark has to be told the inputs of net/float32/tvm" in answer.message
    assert "farm variant set net/float32/tvm --input" in answer.hint


def test_a_run_without_the_line_of_its_device_is_proven_by_nothing() -> None:
    found = sample.reading(NAME, printed(1.5).replace("Device: cpu(0), threads: 1\n", ""), num_runs=1)
    assert found.accelerator == "unknown"
    assert "nothing in the evidence" in found.proof


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (
            "ERROR: Failed to load dynamic shared library /x/net /x/net: too short",
            "variant.unreadable",
        ),
        ("ERROR: Failed to load model: it has no function 'vm_load_executable'", "variant.unreadable"),
        ("ERROR: unknown command line flag 'bogus'", "run.unknown_flag"),
        ("ERROR: illegal value 'x' specified for flag 'num_runs'", "run.bad_flags"),
        (
            "ERROR: Check failed: input_shape[i] == reg : match_cast error, shape",
            "variant.no_input",
        ),
        (
            "ERROR: Check failed: Invoking function main expects 1 arguments (x)",
            "variant.no_input",
        ),
    ],
)
def test_what_the_program_cannot_run_is_classified(said: str, code: str) -> None:
    assert sample.failure(NAME, stderr=said + "\n", code=1).code == code
