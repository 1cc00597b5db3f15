"""LiteRT-LM's `litert_lm_advanced_main --benchmark`: command line and output."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from farm.core.base.setting_values import Flag, SettingValue
from farm.core.models.variant import Format
from farm.core.runs.derived.generation import Regime, TokenCounts
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Metric, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import ClockScope, RunRequest
from farm.harness.base.output_lines import plain_lines
from farm.harness.base.pass_output import printed_files, with_printed_files, without_files
from farm.harness.base.sustained import SustainedFlags
from farm.harness.base.tool_harness import ToolHarness, count_setting, flag_text, setting, tool_plan
from farm.harness.base.tool_result import LoopTimes, combined_output, missing_times_failure, time_reading
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
from farm.harness.llm.litert_lm.benchmark_info import BenchmarkInfo, MalformedInfo, benchmark_infos
from farm.harness.llm.litert_lm.metrics_proto import metrics_infos

#: Names the file in the run's folder; for the farm it is a switch.
METRICS_FLAG = "metric_proto_file_path"
METRICS_FILE = "metrics.pb"
#: By the tool's own names, except the regime.
FLAGS: Mapping[str, Flag] = {
    REGIME: REGIME_FLAG,
    "input_prompt": Flag(default="What is the tallest building in the world?", help="the prompt, as text"),
    "benchmark_prefill_tokens": Flag(
        default=0,
        help="so many tokens instead of the text of the prompt; the tool prints no text then",
        minimum=0,
    ),
    "benchmark_decode_tokens": Flag(default=64, help="tokens generated, whatever they are", minimum=1),
    "num_iterations": Flag(
        default=5, help="warm: timed iterations, after one that is not counted", minimum=1
    ),
    "num_cpu_threads": Flag(default=1, help="threads of the CPU", minimum=1),
    "max_num_tokens": Flag(default=0, help="room for so many tokens; 0 leaves it to the runtime", minimum=0),
    METRICS_FLAG: Flag(
        default=False, help="read the tool's protobuf instead of its text; tools before 2026 refuse it"
    ),
}
_CPU = "cpu"
_MODEL = "model.litertlm"
#: Passed where they differ from the tool's default.
_OPTIONAL = ("max_num_tokens",)
#: Passed otherwise, or not at all.
_NOT_PASSED = (REGIME, METRICS_FLAG)


class LitertLmAdvancedMain(ToolHarness):
    """Runs `.litertlm` files: a prompt, and then the generation of tokens, in one of three regimes."""

    name = "litert_lm_advanced_main"
    parser_version = 1
    flags = FLAGS
    formats = (Format.LITERTLM,)
    backends = (_CPU, "gpu", "npu")
    metrics = TOKEN_METRICS
    sustained_flags = SustainedFlags(iterations="num_iterations", required={REGIME: Regime.WARM.value})
    clock_scope = ClockScope.TOKENS
    clock_covers = (
        "an iteration generates `benchmark_decode_tokens` tokens, one by one, with sampling;"
        " the prompt, tokenization and loading are metrics of their own or not in it"
    )

    def token_counts(self, settings: Mapping[str, SettingValue]) -> TokenCounts:
        """Return the tokens of an iteration."""
        prompt = prompt_tokens(
            settings, FLAGS, length_flag="benchmark_prefill_tokens", prompt_flag="input_prompt"
        )
        generated = count_setting(settings, FLAGS, "benchmark_decode_tokens")
        return TokenCounts(context=prompt, generated=generated)

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the command line, around which caches are dropped or made as the regime asks."""
        words = _words(request.backend, request.settings)
        plan = tool_plan(self.name, request, words, model_path=model_path(_MODEL))
        short = ("--num_iterations=1", "--benchmark_decode_tokens=1")
        argv = with_regime(plan.argv, regime_of(request.settings), short=short)
        if setting(request.settings, FLAGS, METRICS_FLAG):
            argv = with_printed_files(argv, [METRICS_FILE])
        return replace(plan, argv=argv)

    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the generations of the iterations that count; with rates, and the first token."""
        try:
            infos = _infos(plan.settings, evidence)
        except MalformedInfo as error:
            return unreadable_failure(evidence, str(error))
        if not infos:
            return missing_times_failure(evidence, "no BenchmarkInfo is in it")
        regime, expected = regime_of(plan.settings), _iterations(plan.settings)
        counted = infos[1:] if regime is Regime.WARM else infos
        if len(counted) > expected:
            return unreadable_failure(evidence, f"{len(infos)} iterations are more than were asked for")
        whole = [info for info in counted if _has_tokens(plan.settings, info)]
        if not whole:
            return missing_times_failure(evidence, _other_tokens(plan.settings, infos))
        reading = time_reading(
            plan,
            evidence,
            LoopTimes(samples_ns=tuple(round(info.decode.duration_ns) for info in whole), expected=expected),
            placement=None,
            on_cpu="cpu by construction: --backend=cpu" if plan.backend == _CPU else "",
            metrics=_metrics(whole, regime),
        )
        if isinstance(reading, RunFailure):
            return reading
        has_text = setting(plan.settings, FLAGS, "benchmark_prefill_tokens") == 0
        return with_generation(
            reading,
            evidence,
            regime,
            prompt=str(setting(plan.settings, FLAGS, "input_prompt")) if has_text else None,
            text=printed_text(without_files(evidence.stdout)) if has_text else None,
            tokens=count_setting(plan.settings, FLAGS, "benchmark_decode_tokens"),
            iterations=len(infos),
        )


def _infos(settings: Mapping[str, SettingValue], evidence: Evidence) -> list[BenchmarkInfo]:
    """Return the iterations by the protobuf, where it was asked for and came back; else by the text."""
    is_asked = setting(settings, FLAGS, METRICS_FLAG) is True
    metrics = printed_files(evidence.stdout).get(METRICS_FILE) if is_asked else None
    if metrics is not None:
        return metrics_infos(metrics)
    return benchmark_infos(plain_lines(combined_output(evidence)))


def _words(backend: str, settings: Mapping[str, SettingValue]) -> list[str]:
    values = {name: setting(settings, FLAGS, name) for name in FLAGS}
    # The first iteration of a process is of another regime than those after it.
    values["num_iterations"] = _iterations(settings) + (regime_of(settings) is Regime.WARM)
    given = [
        name
        for name in FLAGS
        if name not in _NOT_PASSED and (name not in _OPTIONAL or values[name] != FLAGS[name].default)
    ]
    options = [f"--{name}={flag_text(values[name])}" for name in given]
    if values[METRICS_FLAG]:
        options.append(f"--{METRICS_FLAG}={METRICS_FILE}")
    return [
        "--benchmark",
        f"--backend={backend}",
        f"--model_path={model_path(_MODEL)}",
        "--async=false",
        *options,
    ]


def _iterations(settings: Mapping[str, SettingValue]) -> int:
    """Return how many iterations count: a process has one first generation only."""
    return count_setting(settings, FLAGS, "num_iterations") if regime_of(settings) is Regime.WARM else 1


def _has_tokens(settings: Mapping[str, SettingValue], info: BenchmarkInfo) -> bool:
    """Tell whether an iteration processed and generated as many tokens as were asked for."""
    prefill = setting(settings, FLAGS, "benchmark_prefill_tokens")
    is_asked_prompt = prefill in (0, info.prefill.tokens)
    return is_asked_prompt and info.decode.tokens == setting(settings, FLAGS, "benchmark_decode_tokens")


def _other_tokens(settings: Mapping[str, SettingValue], infos: Sequence[BenchmarkInfo]) -> str:
    last = infos[-1]
    if _has_tokens(settings, last):
        return "only the iteration is in it that makes the process warm"
    prefill, decode = (
        setting(settings, FLAGS, name) for name in ("benchmark_prefill_tokens", "benchmark_decode_tokens")
    )
    made = f"it processed {last.prefill.tokens} tokens and generated {last.decode.tokens}"
    return f"{made}: {prefill or 'all of the prompt'} and {decode} were asked for"


def _metrics(infos: Sequence[BenchmarkInfo], regime: Regime) -> list[Metric]:
    """Return the means over the iterations."""
    times = times_before_decoding(
        regime,
        first_token_ms=fmean(info.first_token_ns for info in infos) / 1e6,
        load_ms=infos[0].load_ms,
    )
    return [
        rate_metric(PREFILL_RATE, fmean(info.prefill.tokens_per_s for info in infos)),
        rate_metric(DECODE_RATE, fmean(info.decode.tokens_per_s for info in infos)),
        *times,
    ]
