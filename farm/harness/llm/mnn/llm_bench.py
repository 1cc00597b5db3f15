"""MNN's `llm_bench`: command line and output."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from farm.core.base.setting_values import Flag, SettingValue
from farm.core.models.variant import Format, Manifest
from farm.core.runs.derived.generation import Generation, Regime, TokenCounts
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Metric, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import ClockScope, RunRequest
from farm.harness.base.output_lines import plain_lines
from farm.harness.base.printed_numbers import whole_ns
from farm.harness.base.sustained import SustainedFlags
from farm.harness.base.tool_harness import ToolHarness, count_setting, flag_text, setting, tool_plan
from farm.harness.base.tool_result import (
    LOAD_TIME,
    LoopTimes,
    combined_output,
    lower_is_better,
    missing_times_failure,
    time_reading,
)
from farm.harness.engines.mnn import lost_work, substitute_placement
from farm.harness.failures.classification import unreadable_failure
from farm.harness.llm.caches import model_path
from farm.harness.llm.generation import DECODE_RATE, PREFILL_RATE, rate_metric
from farm.harness.llm.mnn.bench_table import STEP, BenchRow, MalformedBenchTable, bench_rows

#: By the long names of the tool's options, with the letters that it is called with in every version.
FLAGS: Mapping[str, Flag] = {
    "n_prompt": Flag(default=512, help="tokens of the prompt (-p)", minimum=1),
    "n_gen": Flag(default=128, help="tokens generated (-n)", minimum=1),
    "n_repeat": Flag(default=5, help="timed repetitions (-rep), after one that is not counted", minimum=1),
    "threads": Flag(default=1, help="threads of the CPU (-t); for OpenCL MNN's tuning mode", minimum=1),
    # The tool's `precision`: that is an axis of matrices.
    "precision_mode": Flag(
        default=2, help="0 as in the model, 1 high, 2 low: float16 where available (-c)", minimum=0
    ),
    "mmap": Flag(default=False, help="map the weights instead of reading them (-mmp)"),
    "loading_time": Flag(
        default=False, help="load the model three times for `load_time` (-load); not in older releases"
    ),
}
_CPU = "cpu"
#: Of the rows that it prints.
_NAME_BY_BACKEND: Mapping[str, str] = {_CPU: "CPU", "opencl": "OPENCL"}
_NAME_BY_PRECISION: Mapping[int, str] = {0: "Normal", 1: "High", 2: "Low"}
#: What the exporter calls the network, and what the tool is told.
_MODEL, _CONFIG = "llm.mnn", "config.json"
_FILES_HINT = (
    "add them with the model: `farm variant add llm.mnn --file config.json --file llm_config.json"
    " --file llm.mnn.weight --file tokenizer.txt`, and `--file embeddings_bf16.bin` where there is one"
)
#: Of a prompt of so many tokens at once, each takes less than one that is generated.
_LONG_PROMPT = 32


class LlmBench(ToolHarness):
    """Runs `.mnn` files of language models: a prompt, and the generation of tokens after it."""

    name = "llm_bench"
    parser_version = 1
    flags = FLAGS
    formats = (Format.MNN,)
    backends = tuple(_NAME_BY_BACKEND)
    metrics = (PREFILL_RATE, DECODE_RATE, LOAD_TIME)
    sustained_flags = SustainedFlags(iterations="n_repeat")
    clock_scope = ClockScope.TOKENS
    clock_covers = (
        "a repetition generates `n_gen` tokens behind a prompt of `n_prompt`, one by one, by the tool's mean"
        " rate; the prompt is the same token again and again, and no text is printed"
    )

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why the tool cannot run the variant on the backend; None when it can."""
        reason = super().unsupported(variant, backend)
        if reason is not None or variant is None or any(file.path == _CONFIG for file in variant.files):
            return reason
        return f"{self.name} needs {_CONFIG} beside the model, and the files that it names: {_FILES_HINT}"

    def token_counts(self, settings: Mapping[str, SettingValue]) -> TokenCounts:
        """Return the tokens of a repetition."""
        prompt, generated = (count_setting(settings, FLAGS, name) for name in ("n_prompt", "n_gen"))
        return TokenCounts(context=prompt, generated=generated)

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the command line."""
        words = _words(request.backend, request.settings)
        return tool_plan(self.name, request, words, model_path=model_path(_MODEL))

    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the mean time of a generation, by its rate."""
        text = combined_output(evidence)
        if (lost := lost_work(text)) is not None:
            return missing_times_failure(evidence, lost)
        try:
            rows = bench_rows(plain_lines(text))
        except MalformedBenchTable as error:
            return unreadable_failure(evidence, str(error))
        if not rows:
            return missing_times_failure(evidence, "there is no row `prompt=..<br>decode=..` with its rates")
        if (wrong := _difference(plan, rows)) is not None:
            return unreadable_failure(evidence, wrong)
        row = rows[0]
        generation_ns = row.generated_tokens * 1e9 / row.decode.mean
        reading = time_reading(
            plan,
            evidence,
            LoopTimes(
                mean_ns=generation_ns,
                expected=count_setting(plan.settings, FLAGS, "n_repeat"),
                step_ns=whole_ns(generation_ns * STEP / row.decode.mean),
                deviation_ns=generation_ns * row.decode.deviation / row.decode.mean,
            ),
            placement=substitute_placement(text, plan.backend),
            on_cpu=f"cpu by construction: -a {_CPU}" if plan.backend == _CPU else "",
            metrics=_metrics(row),
        )
        if isinstance(reading, RunFailure):
            return reading
        # The tool makes up tokens and prints no text; its first repetition does not count.
        return replace(reading, generation=Generation(regime=Regime.WARM))


def _words(backend: str, settings: Mapping[str, SettingValue]) -> list[str]:
    values = {name: setting(settings, FLAGS, name) for name in FLAGS}
    words = ["-m", model_path(_CONFIG), "-a", backend, "-kv", "true"]
    for name, option in (
        ("n_prompt", "-p"),
        ("n_gen", "-n"),
        ("n_repeat", "-rep"),
        ("threads", "-t"),
        ("precision_mode", "-c"),
    ):
        words += [option, flag_text(values[name])]
    words += ["-mmp", "1"] if values["mmap"] else []
    return [*words, "-load", "true"] if values["loading_time"] else words


def _difference(plan: RunPlan, rows: Sequence[BenchRow]) -> str | None:
    """Return how the tests differ from what was asked for, or why a rate cannot be; else None."""
    if len(rows) > 1:
        return f"{len(rows)} tests are in it, and one was asked for"
    row = rows[0]
    asked = [count_setting(plan.settings, FLAGS, name) for name in ("n_prompt", "n_gen")]
    if [row.prompt_tokens, row.generated_tokens] != asked:
        told = f"a prompt of {row.prompt_tokens} and {row.generated_tokens} tokens after it"
        return f"it tested {told}, and {asked[0]} and {asked[1]} were asked for"
    precision = setting(plan.settings, FLAGS, "precision_mode")
    expected = {
        "backend": _NAME_BY_BACKEND.get(plan.backend),
        "threads": flag_text(setting(plan.settings, FLAGS, "threads")),
        "precision": _NAME_BY_PRECISION.get(precision) if isinstance(precision, int) else None,
    }
    for name, value in expected.items():
        if value is not None and row.columns.get(name, value) != value:
            return f"it ran with {name} {row.columns[name][:40]}, and {value} was asked for"
    if row.prompt_tokens >= _LONG_PROMPT and row.decode.mean > row.prefill.mean:
        rates = f"{row.decode.mean:.6g} tokens/s generated and {row.prefill.mean:.6g} of the prompt"
        end = f"the text may have ended before its {row.generated_tokens} tokens"
        return f"{rates}: {end}, and the tool counts them all"
    return None


def _metrics(row: BenchRow) -> list[Metric]:
    rates = {PREFILL_RATE: row.prefill.mean, DECODE_RATE: row.decode.mean}
    return [
        *(rate_metric(name, rate) for name, rate in rates.items()),
        # Of less than a step there is no time.
        *lower_is_better({LOAD_TIME: row.load_s * 1e3 if row.load_s else None}, "ms"),
    ]
