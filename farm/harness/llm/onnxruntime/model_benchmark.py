"""ONNX Runtime GenAI's `model_benchmark`: command line and output."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from farm.core.base.setting_values import Flag, SettingValue
from farm.core.models.variant import Format, Manifest, find_tokenizer
from farm.core.runs.derived.generation import Regime, TokenCounts
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Metric, Reading, RunFailure
from farm.core.runs.plan import PLACEMENT_PROBE, RunPlan
from farm.harness.base.adapter import MODEL_FOLDER, ClockScope, RunRequest
from farm.harness.base.output_lines import plain_lines
from farm.harness.base.placement_probe import placement_of_pass
from farm.harness.base.printed_numbers import stream_step, whole_ns
from farm.harness.base.tool_harness import (
    ToolHarness,
    ToolPass,
    count_setting,
    flag_text,
    setting,
    tool_plan,
)
from farm.harness.base.tool_result import (
    LoopTimes,
    combined_output,
    lower_is_better,
    missing_times_failure,
    printed_load_ms,
    time_reading,
)
from farm.harness.failures.classification import unreadable_failure
from farm.harness.llm.caches import model_path, printed_text, with_regime
from farm.harness.llm.generation import (
    DECODE_RATE,
    PREFILL_RATE,
    REGIME,
    REGIME_FLAG,
    TOKEN_METRICS,
    prompt_tokens,
    rate_metric,
    regime_of,
    times_before_decoding,
    with_generation,
)
from farm.harness.llm.onnxruntime.benchmark_output import (
    BenchmarkOutput,
    MalformedOutput,
    benchmark_outputs,
    generated_text,
)
from farm.harness.onnxruntime.placement import ort_placement

#: By the tool's own names, except the regime.
FLAGS: Mapping[str, Flag] = {
    REGIME: REGIME_FLAG,
    "prompt": Flag(default="What is the tallest building in the world?", help="the prompt, as text"),
    "prompt_length": Flag(
        default=0,
        help="so many random tokens instead of the text of the prompt; not in older releases",
        minimum=0,
    ),
    "generation_length": Flag(
        default=128, help="tokens generated; the first comes from the prompt, the others are timed", minimum=2
    ),
    "repetitions": Flag(default=5, help="warm: timed repetitions, after one that is not counted", minimum=1),
}
#: What the runtime reads beside the model: which network it is, and on which providers it runs.
_CONFIG = "genai_config.json"
#: The name that GenAI's own builder gives it.
_MODEL = "model.onnx"
_FILES_HINT = (
    "add them with the model: `farm variant add model.onnx --file genai_config.json --file tokenizer.json"
    " --file tokenizer_config.json`"
)
_MEMORY = "memory_peak"
#: The runtime logs where nodes were placed; it slows what it logs.
_LOGGING: Mapping[str, str] = {"ORTGENAI_ORT_VERBOSE_LOGGING": "1"}
_SHORT = ("--generation_length", "2", "--repetitions", "1")


class ModelBenchmark(ToolHarness):
    """Runs `.onnx` files of language models by GenAI: a prompt, and the tokens after it."""

    name = "model_benchmark"
    parser_version = 1
    flags = FLAGS
    formats = (Format.ONNX,)
    # The configuration decides; the tool has an option for it that changes nothing.
    backends = ("cpu", "qnn", "webgpu")
    metrics = (*TOKEN_METRICS, _MEMORY)
    sustained_flags = None
    sustained_obstacle = "model_benchmark prints means over all that it does, which show no course"
    clock_scope = ClockScope.DECODING_STEP
    clock_covers = (
        "a token after the first, with sampling: the tool's mean over all of them in all repetitions;"
        " tokenization is in nothing that it prints, and loading only in what our program prints"
    )

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why the tool cannot run the variant on the backend; None when it can."""
        reason = super().unsupported(variant, backend)
        if reason is not None or variant is None:
            return reason
        has_config = any(file.path == _CONFIG for file in variant.files)
        if has_config and find_tokenizer(variant) is not None:
            return None
        return f"{self.name} needs {_CONFIG} and the tokenizer's files beside the model: {_FILES_HINT}"

    def token_counts(self, settings: Mapping[str, SettingValue]) -> TokenCounts:
        """Return the tokens of a repetition: the first one belongs to the prompt."""
        prompt = prompt_tokens(settings, FLAGS, length_flag="prompt_length", prompt_flag="prompt")
        timed = count_setting(settings, FLAGS, "generation_length") - 1
        return TokenCounts(context=prompt, generated=timed)

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the command line; another start shows where the configuration has the model placed."""
        words = list(_words(request.settings))
        placement = ToolPass(name=PLACEMENT_PROBE, words=[*words, *_SHORT, "--warmup", "0"], env=_LOGGING)
        plan = tool_plan(self.name, request, words, model_path=model_path(_MODEL), passes=[placement])
        return replace(plan, argv=with_regime(plan.argv, regime_of(request.settings), short=_SHORT))

    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the mean time of a token, with rates and the first token."""
        try:
            outputs = benchmark_outputs(plain_lines(combined_output(evidence)))
        except MalformedOutput as error:
            return unreadable_failure(evidence, str(error))
        if not outputs:
            return missing_times_failure(evidence, "there is no line `Batch size: .., prompt tokens: ..`")
        if len(outputs) > 1:
            return unreadable_failure(evidence, f"{len(outputs)} runs are in it, and one was asked for")
        output = outputs[0]
        if (wrong := _difference(plan.settings, output)) is not None:
            return missing_times_failure(evidence, wrong)
        generation = output.generation
        reading = time_reading(
            plan,
            evidence,
            LoopTimes(
                mean_ns=generation.mean_ns,
                expected=generation.count,
                summed=generation.count,
                step_ns=whole_ns(stream_step(generation.mean_ns)) if generation.mean_ns else 0,
                deviation_ns=generation.deviation_ns,
                median_ns=generation.median_ns,
            ),
            placement=placement_of_pass(ort_placement, combined_output(evidence), evidence),
            metrics=_metrics(output, regime_of(plan.settings), printed_load_ms(combined_output(evidence))),
        )
        if isinstance(reading, RunFailure):
            return reading
        has_text = not setting(plan.settings, FLAGS, "prompt_length")
        prompt = str(setting(plan.settings, FLAGS, "prompt")) if has_text else None
        return with_generation(
            reading,
            evidence,
            regime_of(plan.settings),
            prompt=prompt,
            text=None if prompt is None else generated_text(printed_text(evidence.stdout), prompt),
            tokens=count_setting(plan.settings, FLAGS, "generation_length"),
            iterations=1,
        )


def _words(settings: Mapping[str, SettingValue]) -> Iterator[str]:
    yield from ("--input_folder", MODEL_FOLDER, "--batch_size", "1")
    length = setting(settings, FLAGS, "prompt_length")
    if length:
        yield from ("--prompt_length", flag_text(length), "--use_random_tokens")
    else:
        yield from ("--prompt", flag_text(setting(settings, FLAGS, "prompt")))
    yield from ("--generation_length", flag_text(setting(settings, FLAGS, "generation_length")))
    yield from ("--repetitions", flag_text(_repetitions(settings)))
    is_warm = regime_of(settings) is Regime.WARM
    yield from ("--warmup", flag_text(int(is_warm)))
    # Prints what the first repetition wrote that warms up.
    yield "--verbose"


def _repetitions(settings: Mapping[str, SettingValue]) -> int:
    """Return how many repetitions count: a process has one first generation only."""
    return count_setting(settings, FLAGS, "repetitions") if regime_of(settings) is Regime.WARM else 1


def _difference(settings: Mapping[str, SettingValue], output: BenchmarkOutput) -> str | None:
    """Return how the tokens differ from those that were asked for; None where they do not."""
    asked = count_setting(settings, FLAGS, "generation_length")
    repetitions, length = _repetitions(settings), setting(settings, FLAGS, "prompt_length")
    if output.batch != 1 or output.asked_tokens != asked or length not in (0, output.prompt_tokens):
        told = f"{output.batch} x {output.prompt_tokens} and {output.asked_tokens} tokens"
        return f"it was told {told}, and 1 x {length or 'the prompt'} and {asked} were asked for"
    if output.prompt.count != repetitions:
        return f"it processed {output.prompt.count} prompts, and {repetitions} were asked for"
    expected = repetitions * (asked - 1)
    if output.generation.count != expected or output.generation.tokens != 1:
        made = f"it generated {output.generation.count} tokens after the first"
        return f"{made}, and {expected} were asked for: a text ended, or there is no room for more"
    return None


def _metrics(output: BenchmarkOutput, regime: Regime, load_ms: float | None) -> list[Metric]:
    means = {
        PREFILL_RATE: (output.prompt_tokens, output.prompt.mean_ns),
        DECODE_RATE: (1, output.generation.mean_ns),
    }
    peak = output.peak_bytes
    return [
        *(rate_metric(name, tokens * 1e9 / ns) for name, (tokens, ns) in means.items() if ns > 0),
        *times_before_decoding(regime, first_token_ms=output.first_token_ns / 1e6, load_ms=load_ms),
        *lower_is_better({_MEMORY: peak / 1e6 if peak else None}, "MB"),
    ]
