"""TensorFlow Lite's benchmark_model: what is planned, and what its output means in all wordings."""

from dataclasses import replace

import pytest

from farm.core.base.ids import AttemptId
from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence
from farm.core.runs.measurement import Outcome, Reading
from farm.core.runs.placement import Accelerator, Placement, Share
from farm.core.runs.plan import EarlierPlacement
from farm.core.runs.quality import Quality, assess_quality
from farm.core.runs.stats import summarize_samples
from farm.harness.registry import get_harness
from farm.harness.tflite.output import operator_times, tflite_output
from tests.support.harness import tool_samples as sample

NAME = "benchmark_model"
IN_2019 = sample.output("benchmark_model_2019")
IN_2020 = sample.output("benchmark_model_2020")
NEWEST = sample.output("benchmark_model_newest")
PREFIXES = {
    "none": "",
    "its own": "INFO: ",
    "brief": "I tflite  : ",
    "brief with the process": "I/tflite  ( 8123): ",
    "threadtime": "07-02 11:20:31.402  8123  8140 I tflite  : ",
    "studio of old": "07-02 11:20:31.402 8123-8140/org.example.bench I/tflite: ",
    "studio": "2024-07-02 11:20:31.402  8123-8140  tflite                  org.example.bench            I  ",
}
PROFILE = sample.output("benchmark_model_profile")


def test_the_command_names_what_is_not_the_tools_own_default_and_always_the_counts() -> None:
    assert sample.words(NAME, num_runs=20, nnapi_allow_fp16=True) == [
        "--graph=${file_model}",
        "--num_threads=1",
        "--num_runs=20",
        "--warmup_runs=1",
        "--nnapi_allow_fp16=true",
        "--use_xnnpack=false",
    ]


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("xnnpack", {"--use_xnnpack=true"}),
        ("gpu", {"--use_gpu=true"}),
        ("nnapi", {"--use_nnapi=true"}),
        ("hexagon", {"--use_hexagon=true", "--hexagon_lib_path=${work}"}),
        (
            "qnn",
            {
                "--external_delegate_path=libQnnTFLiteDelegate.so",
                "--external_delegate_options=backend_type:htp",
            },
        ),
    ],
)
def test_a_backend_is_words_of_the_command(backend: str, expected: set[str]) -> None:
    assert expected <= set(sample.words(NAME, backend))


def test_a_setting_of_the_cell_stands_for_what_the_backend_would_say() -> None:
    words = sample.words(NAME, "qnn", external_delegate_options="backend_type:gpu;log:$x")
    assert "--external_delegate_options=backend_type:gpu;log:$$x" in words
    assert len([word for word in words if word.startswith("--external_delegate_options")]) == 1


def test_a_program_from_before_xnnpack_is_not_told_to_do_without() -> None:
    argv = sample.plan_without(frozenset({"use_xnnpack"}), NAME).argv
    assert not [word for word in argv if "xnnpack" in word]


def test_profiles_and_memory_are_passes_of_their_own_and_never_in_the_measured_run() -> None:
    planned = sample.plan(NAME, enable_op_profiling=True, report_peak_memory_footprint=True, num_runs=80)
    assert [each.name for each in planned.passes] == ["op_profile", "memory"]
    slow = ("--enable_op_profiling=true", "--report_peak_memory_footprint=true")
    assert not set(slow) & set(planned.argv)
    for each, word in zip(planned.passes, slow, strict=True):
        assert word in each.argv
        assert [said for said in each.argv if said.startswith("--num_runs=")] == ["--num_runs=10"]


@pytest.mark.parametrize(
    ("text", "mean_ns", "count", "init_us", "memory_mb"),
    [
        (IN_2019, 58004.5e3, 18, 8210, None),
        (IN_2020, 1.44032e9, 50, 5120, 91.25),
        (NEWEST, 140032e3, 75, 71400, 20.75),
    ],
)
def test_every_age_gives_mean_runs_done_and_further_figures(
    text: str, mean_ns: float, count: int, init_us: float, memory_mb: float | None
) -> None:
    found = sample.reading(NAME, text, num_runs=10)
    assert found.mean_ns == pytest.approx(mean_ns)
    assert (found.expected_samples, found.summed_samples) == (10, count)
    told = sample.metrics(found)
    assert told["load_time"] == init_us
    assert told.get("memory_overall") == memory_mb


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES.keys())
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_no_loggers_prefix_hides_anything(prefix: str, ends: str) -> None:
    plain = tflite_output(IN_2020)
    lines = [f"{prefix}{line}" if line else prefix.rstrip() for line in IN_2020.splitlines()]
    assert tflite_output(ends.join(lines) + ends) == plain


def test_the_newest_ones_median_and_percentiles_are_metrics() -> None:
    told = sample.metrics(sample.reading(NAME, NEWEST, backend="xnnpack"))
    assert (told["median"], told["p5"], told["p95"], told["std"]) == (140001, 139400, 140800, 310)


def test_a_warm_up_of_one_run_has_no_average_but_its_one_time() -> None:
    warmup = tflite_output("STARTING!\ncount=1 curr=905463 p5=905463 median=905463 p95=905463\n").warmup
    assert warmup is not None
    assert (warmup.count, warmup.mean_us) == (1, 905463)


def test_a_lone_line_of_counts_is_the_main_loops() -> None:
    found = sample.reading(NAME, "count=50 first=9 curr=9 min=700 max=1200 avg=1000 std=90\n")
    assert (found.mean_ns, found.summed_samples, found.deviation_ns) == (1e6, 50, 90e3)
    assert sample.metrics(found) == {"min": 700, "max": 1200, "std": 90}


@pytest.mark.parametrize("name", ["benchmark_model_2020", "benchmark_model_newest", "benchmark_model_2019"])
def test_an_output_whose_head_is_cut_keeps_what_its_tail_says(name: str) -> None:
    text = sample.output(name)
    first = next(line for line in text.splitlines(keepends=True) if "count=" in line)
    whole, cut = sample.reading(NAME, text), sample.reading(NAME, text[text.index(first) + len(first) :])
    assert (cut.mean_ns, cut.summed_samples, cut.deviation_ns) == (
        whole.mean_ns,
        whole.summed_samples,
        whole.deviation_ns,
    )
    assert sample.metrics(cut) == sample.metrics(whole)


@pytest.mark.parametrize(
    "around",
    [
        "STARTING!\n{}",
        "Loaded model a.tflite\n{}",
        "{}Running benchmark for at least 50 iterations and at least 1 seconds\n",
    ],
)
def test_a_warm_up_is_no_main_loop(around: str) -> None:
    loop = "count=50 first=9 curr=9 min=700 max=1200 avg=1000 std=90\n"
    assert sample.failure(NAME, around.format(loop)).code == "run.output_unreadable"


def test_nor_is_a_lone_line_before_the_end_that_was_dropped() -> None:
    loop = "count=50 first=9 curr=9 min=700 max=1200 avg=1000 std=90\n"
    assert tflite_output(loop, is_cut=True).main is None


def test_warnings_of_the_linker_before_it_do_not_matter() -> None:
    first = 'WARNING: linker: "/data/local/tmp/bench" unused DT entry: type 0xf arg 0x930\n'
    assert sample.reading(NAME, first + IN_2019).mean_ns == pytest.approx(58004.5e3)


def test_lines_that_a_logger_doubled_count_once() -> None:
    doubled = "".join(f"{line}\nINFO: {line}\n" for line in IN_2020.splitlines() if line)
    assert sample.reading(NAME, doubled).mean_ns == pytest.approx(1.44032e9)


def test_two_runs_in_one_output_are_refused() -> None:
    other = IN_2020.replace("Inference (avg): 1.44032e+06", "Inference (avg): 1.5e+06")
    assert sample.failure(NAME, IN_2020 + other).code == "run.output_unreadable"


def test_a_warm_up_alone_is_no_measurement() -> None:
    cut = IN_2020[: IN_2020.index("Running benchmark for at least 50")]
    assert sample.failure(NAME, cut).code == "run.output_unreadable"


def test_a_main_loop_is_read_where_the_summary_was_cut_off() -> None:
    cut = IN_2020[: IN_2020.index("Inference timings")]
    assert sample.reading(NAME, cut).mean_ns == pytest.approx(1.44032e9)


def test_fewer_runs_than_asked_for_make_it_short() -> None:
    found = sample.reading(NAME, IN_2019, num_runs=50)
    gates = sample.plan(NAME).gates
    judged = assess_quality(
        found,
        summarize_samples(found),
        requested_backend="cpu",
        evidence=Evidence(fence=1),
        gates=gates,
        noise_limit=1.0,
    )
    assert judged.quality is Quality.SHORT
    assert judged.reasons == ("18 samples, 50 were asked for",)


@pytest.mark.parametrize("words", ["unrecognized commandline flag:", "Unconsumed cmdline flags: "])
def test_a_flag_that_it_did_not_know_makes_it_another_run_than_was_asked_for(words: str) -> None:
    said = f"WARN: {words} --gpu_backend=cl --use_cpu=false\n{IN_2020}"
    failure = sample.failure(NAME, said, backend="gpu")
    assert (failure.code, failure.outcome) == ("run.unknown_flag", Outcome.UNSUPPORTED)
    assert "--gpu_backend" in failure.message


def test_the_tools_own_kernels_and_xnnpacks_are_told_apart() -> None:
    by_xnnpack = sample.reading(NAME, NEWEST, backend="xnnpack")
    assert (by_xnnpack.actual_backend, by_xnnpack.accelerator) == ("xnnpack", "cpu")
    assert sample.reading(NAME, NEWEST, backend="cpu").actual_backend == "xnnpack"
    assert sample.reading(NAME, IN_2020, backend="cpu").actual_backend == "cpu"


def test_a_delegate_that_was_asked_for_and_not_made_is_no_such_backend() -> None:
    said = f"Could not create Hexagon delegate: platform may not support delegate\n{IN_2020}"
    found = sample.reading(NAME, said, backend="hexagon")
    assert found.actual_backend == "cpu"


def test_a_backend_that_nothing_shows_is_unproven() -> None:
    assert sample.reading(NAME, IN_2020, backend="gpu").accelerator == "unknown"


def test_operators_and_memory_of_the_passes_are_metrics_and_touch_no_time() -> None:
    planned = sample.plan(NAME, enable_op_profiling=True, report_peak_memory_footprint=True)
    passes = (
        PassEvidence(name="op_profile", stdout=PROFILE),
        PassEvidence(
            name="memory",
            stderr="INFO: Overall peak memory footprint (MB) via periodic monitoring: 133.5\n",
        ),
    )
    evidence = replace(sample.evidence_of(planned, IN_2020), passes=passes)
    found = get_harness(NAME).parse(planned, evidence)
    assert isinstance(found, Reading)
    assert found.mean_ns == pytest.approx(1.44032e9)
    told = sample.metrics(found)
    assert told["memory_peak"] == 133.5
    assert told["op TfLiteXNNPackDelegate x2"] == 40.125
    assert told["op SOFTMAX x1"] == 10.031


def test_only_the_profile_of_the_regular_runs_is_read() -> None:
    assert [each.operator for each in operator_times(PROFILE)] == ["TfLiteXNNPackDelegate", "SOFTMAX"]


@pytest.mark.parametrize(
    ("said", "code", "outcome"),
    [
        (
            "ERROR: NN API returned error ANEURALNETWORKS_BAD_DATA at line 900 while compiling.",
            "run.nnapi_refuses",
            Outcome.UNSUPPORTED,
        ),
        ("ERROR: Node number 12 (CONV_2D) failed to prepare.", "variant.node_refused", Outcome.UNSUPPORTED),
        ("Failed to apply GPU delegate.", "run.delegate_refused", Outcome.UNSUPPORTED),
        ("ERROR: Encountered unresolved custom op: Foo.", "variant.missing_operator", Outcome.UNSUPPORTED),
        ("ERROR: Failed to mmap model net.tflite", "variant.unreadable", Outcome.FAILED),
        ("ERROR: Disallowed CPU fallback detected.", "run.not_fully_delegated", Outcome.UNSUPPORTED),
    ],
)
@pytest.mark.parametrize("ended", [0, 1])
@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES.keys())
def test_why_it_gave_no_numbers_is_classified_with_the_line(
    said: str, code: str, outcome: Outcome, ended: int, prefix: str
) -> None:
    failure = sample.failure(
        NAME, stderr=f"{prefix}{said}\n{prefix}ERROR: Benchmarking failed.\n", code=ended
    )
    assert (failure.code, failure.outcome) == (code, outcome)
    assert failure.line is not None
    assert said in failure.line


VLOG = (
    "07-02 11:20:31.402  900  900 I ExecutionPlan: "
    "ModelBuilder::findBestDeviceForEachOperation(CONV_2D) = 0 (neuron-npu)\n"
)


def test_nnapi_without_a_name_has_a_pass_whose_log_names_the_driver() -> None:
    (asked,) = sample.plan(NAME, "nnapi").passes
    assert asked.properties == {"debug.nn.vlog": "all"}
    assert asked.log_filters
    assert not sample.plan(NAME, "nnapi", nnapi_accelerator_name="qti-dsp").passes
    planned = sample.plan(NAME, "nnapi")
    said = (
        "INFO: Created TensorFlow Lite delegate for NNAPI.\nExplicitly applied NNAPI delegate, and the model"
        " graph will be completely executed by the delegate.\n"
    )
    without = get_harness(NAME).parse(planned, sample.evidence_of(planned, said + IN_2020))
    assert isinstance(without, Reading)
    assert without.accelerator == "unknown"
    shown = PassEvidence(name="placement", log=VLOG, exit=ExitRecord(code=0, duration_s=1.0))
    evidence = replace(sample.evidence_of(planned, said + IN_2020), passes=(shown,))
    found = get_harness(NAME).parse(planned, evidence)
    assert isinstance(found, Reading)
    assert (found.actual_backend, found.accelerator) == ("nnapi", "npu")
    failed = replace(shown, exit=ExitRecord(code=1, duration_s=1.0))
    found = get_harness(NAME).parse(planned, replace(evidence, passes=(failed,)))
    assert isinstance(found, Reading)
    assert found.accelerator == "unknown"


def test_what_an_earlier_runs_pass_showed_serves_this_one_and_the_proof_says_so() -> None:
    share = Share(accelerator=Accelerator.DSP, by="qti-dsp", line="Replacing 3 of 3")
    earlier = EarlierPlacement(attempt_id=AttemptId(41), placement=Placement(shares=(share,)))
    planned = replace(sample.plan(NAME, "nnapi"), shown=earlier)
    found = get_harness(NAME).parse(planned, sample.evidence_of(planned, IN_2020))
    assert isinstance(found, Reading)
    assert (found.accelerator, found.placement) == ("dsp", earlier.placement)
    assert "shown after attempt 41" in found.proof
    refused = (
        "Though NNAPI delegate is explicitly applied, the model graph will not be executed by the delegate."
    )
    said = f"{refused}\n{IN_2020}"
    found = get_harness(NAME).parse(planned, sample.evidence_of(planned, said))
    assert isinstance(found, Reading)
    assert found.actual_backend == "cpu"


#: Of our runner; the original prints the loop alone.
TIMES_MS = ("0.9", "1.0", "1.4")
ITERATIONS = "".join(f"INFO: Iteration {at} of 3: {ms} ms\n" for at, ms in enumerate(TIMES_MS, 1))
LOOPS = (
    "INFO: count=1 first=2000 curr=2000 min=2000 max=2000 avg=2000 std=0\n"
    f"{ITERATIONS}"
    "INFO: count=3 first=900 curr=1400 min=900 max=1400 avg=1100 std=216 p5=900 median=1000 p95=1000\n"
    "INFO: XNNPACK delegate: 3 nodes delegated out of 3 nodes\n"
    "INFO: Inference timings in us: Init: 500, First inference: 2000, Warmup (avg): 2000,"
    " Inference (avg): 1100\n"
)


def test_our_runner_prints_each_inference() -> None:
    found = sample.reading(NAME, LOOPS, backend="xnnpack", num_runs=3)
    assert found.samples_ns == (900_000, 1_000_000, 1_400_000)
    assert (found.mean_ns, found.expected_samples, found.clock_step_ns) == (None, 3, 1)
    assert (found.actual_backend, found.accelerator) == ("xnnpack", "cpu")
    assert sample.metrics(found)["load_time"] == 500


def test_without_all_inferences_the_value_is_the_mean() -> None:
    text = LOOPS.replace("INFO: Iteration 2 of 3: 1.0 ms\n", "")
    found = sample.reading(NAME, text, backend="xnnpack", num_runs=3)
    assert (found.samples_ns, found.mean_ns) == ((), 1.1e6)


#: Five inferences, of which three are printed.
LONGER = (
    LOOPS.replace("count=3 first", "count=5 first")
    .replace("max=1400 avg=1100", "max=1800 avg=1300")
    .replace("(avg): 1100", "(avg): 1300")
)


@pytest.mark.parametrize(("asked", "expected"), [(2, 2), (4, 3), (9, 9)])
def test_the_first_inferences_of_a_longer_loop_are_its_samples(asked: int, expected: int) -> None:
    found = sample.reading(NAME, LONGER, backend="xnnpack", num_runs=asked)
    assert found.samples_ns == (900_000, 1_000_000, 1_400_000)
    # Of nine that were asked for, five are too few, and not for what was printed.
    assert (found.mean_ns, found.expected_samples) == (None, expected)


@pytest.mark.parametrize(("text", "samples", "mean_ns"), [(LONGER, 0, 1.3e6), (LOOPS, 3, None)])
def test_the_first_inferences_do_not_stand_for_a_run_over_minutes(
    text: str, samples: int, mean_ns: float | None
) -> None:
    planned = replace(sample.plan(NAME, "xnnpack", num_runs=1), sustained_s=600)
    found = get_harness(NAME).parse(planned, sample.evidence_of(planned, text))
    assert isinstance(found, Reading)
    assert (len(found.samples_ns), found.mean_ns) == (samples, mean_ns)


@pytest.mark.parametrize(
    "text", [LOOPS.replace("1.4 ms", "1.5 ms"), LOOPS.replace("count=3 first", "count=2 first")]
)
def test_inferences_that_are_not_those_of_the_mean_are_refused(text: str) -> None:
    assert sample.failure(NAME, text, backend="xnnpack", num_runs=3).code == "run.output_unreadable"
