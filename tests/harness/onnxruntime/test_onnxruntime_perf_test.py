"""onnxruntime_perf_test: what is planned, and what its output means, with old labels and new ones."""

import pytest

from farm.core.runs.measurement import Outcome
from farm.harness.onnxruntime.onnxruntime_perf_test import ort_output
from tests.support.harness import tool_samples as sample

NAME = "onnxruntime_perf_test"
NEWER, OLDER = sample.output("ort_newer"), sample.output("ort_older")
ROWS = "".join(
    f"net.onnx,{seconds},41943040,97,{at}\n" for at, seconds in enumerate((0.006, 0.0062, 0.0063, 0.0065))
)


def test_the_command_is_letters_then_the_model_then_where_each_time_goes() -> None:
    words = sample.words(NAME, repeated_times=4)
    assert words == [
        *["-e", "cpu", "-m", "times", "-r", "4", "-x", "1", "-y", "1", "-o", "99", "-I"],
        "${file_model}",
        "/proc/self/fd/1",
    ]


def test_statistics_are_not_asked_for_since_they_would_be_written_over_the_times() -> None:
    assert "-s" not in sample.words(NAME)


def test_a_provider_that_says_nothing_of_its_nodes_is_asked_in_a_pass() -> None:
    (asked,) = sample.plan(NAME, "nnapi").passes
    assert asked.name == "placement"
    assert "-v" in asked.argv
    assert not sample.plan(NAME, "cpu").passes
    assert not sample.plan(NAME, "nnapi", verbose=True).passes


def test_options_of_a_provider_keep_their_dollars_from_the_plans_placeholders() -> None:
    words = sample.words(NAME, "qnn", provider_options="backend_path|$x", free_dimension_override="n:1 m:2")
    assert words[words.index("-i") + 1] == "backend_path|$$x"
    assert [words[at + 1] for at, word in enumerate(words) if word == "-f"] == ["n:1", "m:2"]


def test_each_iterations_time_is_a_sample() -> None:
    found = sample.reading(NAME, NEWER + ROWS, repeated_times=4)
    assert found.samples_ns == (6_000_000, 6_200_000, 6_300_000, 6_500_000)
    assert (found.mean_ns, found.expected_samples) == (None, 4)
    told = sample.metrics(found)
    assert told["load_time"] == pytest.approx(40.2)
    assert told["memory_peak"] == pytest.approx(41.94304)


@pytest.mark.parametrize(("text", "mean_ns", "count"), [(NEWER, 6.25e6, 4), (OLDER, 8.004e6, 60)])
def test_without_them_it_is_the_tools_average_in_milliseconds(text: str, mean_ns: float, count: int) -> None:
    found = sample.reading(NAME, text)
    assert found.mean_ns == pytest.approx(mean_ns)
    assert found.summed_samples == count


def test_percentiles_are_in_seconds_where_the_average_is_in_milliseconds() -> None:
    told = sample.metrics(sample.reading(NAME, OLDER))
    assert (told["p99"], told["min"]) == (pytest.approx(9.02), pytest.approx(7.71))


def test_an_output_that_was_cut_before_the_average_gives_it_from_total_and_count() -> None:
    cut = NEWER[: NEWER.index("Average")]
    assert sample.reading(NAME, cut).mean_ns == pytest.approx(6.25e6)


@pytest.mark.parametrize("kept", [1, 3])
def test_a_part_of_the_samples_is_refused(kept: int) -> None:
    rows = "".join(ROWS.splitlines(keepends=True)[:kept])
    assert sample.failure(NAME, NEWER + rows).code == "run.output_unreadable"


def test_an_output_whose_head_is_cut_keeps_what_its_tail_says() -> None:
    tail = "".join(ROWS.splitlines(keepends=True)[2:])
    cut = sample.reading(NAME, tail, repeated_times=4)
    assert (cut.samples_ns, cut.expected_samples) == ((6_300_000, 6_500_000), 4)
    with_average = sample.reading(NAME, NEWER + tail, repeated_times=4)
    assert (with_average.samples_ns, with_average.mean_ns, with_average.summed_samples) == ((), 6.25e6, 4)
    older = sample.reading(NAME, OLDER[OLDER.index("Average") :])
    assert sample.metrics(older)["max"] == pytest.approx(9.02)
    assert older.mean_ns == pytest.approx(8.004e6)


def test_samples_that_contradict_the_average_are_refused() -> None:
    wrong = NEWER.replace("6.25 ms", "62.5 ms")
    assert "values average" in sample.failure(NAME, wrong + ROWS).message


def test_two_runs_in_one_output_are_refused() -> None:
    assert "more than one run" in sample.failure(NAME, NEWER + OLDER).message


def test_cpu_is_the_cpu_by_construction_and_a_provider_without_a_word_is_unproven() -> None:
    assert sample.reading(NAME, NEWER).accelerator == "cpu"
    assert sample.reading(NAME, NEWER, backend="qnn").accelerator == "unknown"


@pytest.mark.parametrize(
    ("said", "code", "outcome"),
    [
        ("Exception: NNAPI is not supported in this build", "run.backend_missing", Outcome.UNSUPPORTED),
        (
            "NOT_IMPLEMENTED : Could not find an implementation for Foo(1) node with name ''",
            "variant.missing_operator",
            Outcome.UNSUPPORTED,
        ),
        (
            "INVALID_PROTOBUF : Load model from net.onnx failed:Protobuf parsing failed.",
            "variant.unreadable",
            Outcome.FAILED,
        ),
        (
            "Unsupported model IR version: 99, max supported IR version: 10",
            "variant.too_new",
            Outcome.UNSUPPORTED,
        ),
    ],
)
def test_why_it_gave_no_numbers_is_classified(said: str, code: str, outcome: Outcome) -> None:
    failure = sample.failure(NAME, stderr=f"some line\n{said}\n", code=1)
    assert (failure.code, failure.outcome) == (code, outcome)


def test_the_count_of_old_ones_needs_no_unit() -> None:
    assert ort_output("Runs:100\nAvg CPU usage:96\n").requests == 100
