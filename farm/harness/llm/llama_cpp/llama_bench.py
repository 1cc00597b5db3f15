"""llama.cpp's `llama-bench`: command line and output."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from farm.core.base.setting_values import AdapterFlag, ChoiceFlag, Flag, SettingValue
from farm.core.models.variant import Format
from farm.core.runs.derived.generation import Generation, Regime, TokenCounts
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Metric, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import ClockScope, RunRequest
from farm.harness.base.pass_output import clocked_ms
from farm.harness.base.placement_probe import placement_of_pass, placement_pass
from farm.harness.base.sustained import SustainedFlags
from farm.harness.base.tool_harness import (
    LOADING_RUN,
    ToolHarness,
    ToolPass,
    count_setting,
    flag_text,
    pass_stdout,
    setting,
    tool_plan,
)
from farm.harness.base.tool_result import (
    LOAD_TIME,
    LoopTimes,
    complete_stdout_lines,
    lower_is_better,
    missing_times_failure,
    time_reading,
)
from farm.harness.failures.classification import unreadable_failure
from farm.harness.llm.generation import (
    DECODE_RATE,
    PREFILL_RATE,
    REGIME,
    rate_metric,
    regime_of,
)
from farm.harness.llm.llama_cpp.output import BenchTest, MalformedRecord, bench_test_name, bench_tests
from farm.harness.llm.llama_cpp.placement import llama_placement

#: By the long names of the tool's options, with the letters that it is called with in every version.
FLAGS: Mapping[str, Flag] = {
    "n_prompt": Flag(default=512, help="tokens of the prompt (-p); 0 measures no prompt", minimum=0),
    "n_gen": Flag(default=128, help="tokens generated (-n); 0 measures no generation", minimum=0),
    "together": Flag(default=False, help="one test of the prompt and the generation after it (-pg), not two"),
    "n_depth": Flag(default=0, help="tokens in the context before the clock counts (-d)", minimum=0),
    "repetitions": Flag(default=5, help="timed repetitions of each test (-r)", minimum=1),
    REGIME: ChoiceFlag(
        default=Regime.WARM.value,
        choices=(Regime.COLD.value, Regime.WARM.value),
        help="cold: one repetition of a new process, without warm-up; warm: after a run that is not counted",
    ),
    "threads": Flag(default=1, help="threads of the CPU (-t)", minimum=1),
    "batch_size": Flag(default=2048, help="tokens of a prompt at once, logical (-b)", minimum=1),
    "ubatch_size": Flag(default=512, help="and physical (-ub)", minimum=1),
    "cache_type_k": Flag(default="f16", help="number format of the keys in the cache (-ctk)"),
    "cache_type_v": Flag(default="f16", help="and of the values (-ctv)"),
    "flash_attn": Flag(
        default="", help="flash attention (-fa): on, off, auto; 1, 0 for older versions; empty leaves it"
    ),
    "n_gpu_layers": Flag(default=99, help="not cpu: layers on the accelerator (-ngl), at most", minimum=0),
    "device": Flag(
        default="", help="which device, by the tool's name (-dev); empty: the first of the backend"
    ),
    "delay": Flag(default=0, help="seconds before each test", minimum=0),
    "loading_time": AdapterFlag(
        default=False,
        help="start it once more after the run, and time its loading by what it prints (`load_time`)",
    ),
}
_CPU = "cpu"
#: The first device of each backend, by the names that ggml gives them.
_DEVICE_BY_BACKEND: Mapping[str, str] = {
    _CPU: "none",
    "opencl": "GPUOpenCL",
    "vulkan": "Vulkan0",
    "hexagon": "HTP0",
}
#: Passed where they differ from the tool's default.
_OPTIONS: Mapping[str, str] = {
    "n_depth": "-d",
    "batch_size": "-b",
    "ubatch_size": "-ub",
    "cache_type_k": "-ctk",
    "cache_type_v": "-ctv",
    "flash_attn": "-fa",
    "delay": "--delay",
}
#: The fields in which a record repeats settings. Versions without one had no other value.
_FIELD_BY_SETTING: Mapping[str, str] = {
    "threads": "n_threads",
    "batch_size": "n_batch",
    "ubatch_size": "n_ubatch",
    "cache_type_k": "type_k",
    "cache_type_v": "type_v",
    "n_depth": "n_depth",
}
_PREFILL_TIME = "prefill_time"
#: With `--progress`: before the model is loaded, and behind the making of its context.
_STARTS = re.compile(r"^llama-bench: benchmark 1/[0-9]{1,6}: starting$")
_LOADED = re.compile(r"^llama-bench: benchmark 1/[0-9]{1,6}: (?:warmup |depth |prompt |generation )")
#: Of passes, which show where the layers are and time the loading: a prompt of one token, once.
_SHORT_RUN: Mapping[str, SettingValue] = {
    "n_prompt": 1,
    "n_gen": 0,
    "together": False,
    "n_depth": 0,
    "repetitions": 1,
    "delay": 0,
}


class LlamaBench(ToolHarness):
    """Runs `.gguf` files: a prompt, and then the generation of tokens, in one process."""

    name = "llama-bench"
    parser_version = 2
    flags = FLAGS
    formats = (Format.GGUF,)
    backends = tuple(_DEVICE_BY_BACKEND)
    metrics = (PREFILL_RATE, DECODE_RATE, _PREFILL_TIME, LOAD_TIME)
    sustained_flags = SustainedFlags(iterations="repetitions", required={REGIME: Regime.WARM.value})
    clock_scope = ClockScope.TOKENS
    clock_covers = (
        "a repetition generates `n_gen` tokens, one by one; without any it processes a prompt of `n_prompt`"
        " tokens, with `together` both. Random tokens; no tokenization, no sampling, no text"
    )

    def token_counts(self, settings: Mapping[str, SettingValue]) -> TokenCounts:
        """Return the tokens of its last test: alone, the generation is not behind the prompt."""
        prompt, generated, depth = _tokens(settings)
        is_prompt_timed = _is_together(settings) or not generated
        return TokenCounts(context=depth, prompt=prompt if is_prompt_timed else 0, generated=generated)

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the command line; what is not the CPU is asked in a further start where the layers are."""
        words = _words(request.backend, request.settings)
        short = _words(request.backend, {**request.settings, **_SHORT_RUN})
        passes = [placement_pass(request.backend, [*short, "-v"])] if request.backend != _CPU else []
        if setting(request.settings, FLAGS, "loading_time"):
            passes.append(ToolPass(name=LOADING_RUN, words=[*short, "--progress"], clocked=True))
        return tool_plan(self.name, request, words, passes=passes)

    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the repetitions of the generation, or of the only test; with the rates of all."""
        asked = _asked(plan.settings)
        try:
            tests = bench_tests(complete_stdout_lines(evidence))
        except MalformedRecord as error:
            return unreadable_failure(evidence, str(error))
        if (wrong := _difference(plan, asked, tests)) is not None:
            return unreadable_failure(evidence, wrong) if tests else missing_times_failure(evidence, wrong)
        reading = time_reading(
            plan,
            evidence,
            LoopTimes(samples_ns=tests[-1].samples_ns, expected=_repetitions(plan.settings)),
            placement=placement_of_pass(llama_placement, evidence.stdout, evidence),
            on_cpu=_on_cpu(plan),
            metrics=[*_metrics(tests), *_load_time(evidence)],
        )
        if isinstance(reading, RunFailure):
            return reading
        if REGIME not in plan.settings:
            # Of a plan from before there were regimes here.
            return reading
        # It makes up tokens and prints no text; of a driver's caches nothing is known.
        return replace(reading, generation=Generation(regime=regime_of(plan.settings)))


def _words(backend: str, settings: Mapping[str, SettingValue]) -> list[str]:
    values = {name: setting(settings, FLAGS, name) for name in FLAGS}
    prompt, generated = flag_text(values["n_prompt"]), flag_text(values["n_gen"])
    words = ["-m", "${file_model}", "-o", "jsonl", "-r", flag_text(_repetitions(settings))]
    if _is_together(settings):
        # The tests of prompt and generation alone would follow it.
        words += ["-p", "0", "-n", "0", "-pg", f"{prompt},{generated}"]
    else:
        words += ["-p", prompt, "-n", generated]
    words += ["-t", flag_text(values["threads"])]
    words += ["-ngl", "0" if backend == _CPU else flag_text(values["n_gpu_layers"])]
    words += ["-dev", flag_text(values["device"] or _DEVICE_BY_BACKEND[backend])]
    for name, option in _OPTIONS.items():
        if values[name] != FLAGS[name].default:
            words += [option, flag_text(values[name])]
    return [*words, "--no-warmup"] if regime_of(settings) is Regime.COLD else words


def _repetitions(settings: Mapping[str, SettingValue]) -> int:
    """Return how many repetitions count: a process has one first repetition only."""
    return 1 if regime_of(settings) is Regime.COLD else count_setting(settings, FLAGS, "repetitions")


def _is_together(settings: Mapping[str, SettingValue]) -> bool:
    """Tell whether the prompt and the generation after it are one test.

    In a new process they are: a second test would find what the first one has used.
    """
    is_both = all(setting(settings, FLAGS, name) for name in ("n_prompt", "n_gen"))
    return setting(settings, FLAGS, "together") is True or (is_both and regime_of(settings) is Regime.COLD)


def _tokens(settings: Mapping[str, SettingValue]) -> tuple[int, int, int]:
    """Return the tokens of the prompt, of the generation, and of the context before them."""
    values = [setting(settings, FLAGS, name) for name in ("n_prompt", "n_gen", "n_depth")]
    prompt, generated, depth = (value if isinstance(value, int) else 0 for value in values)
    return prompt, generated, depth


def _asked(settings: Mapping[str, SettingValue]) -> list[str]:
    """Return the names of the tests that were asked for, in the tool's order."""
    prompt, generated, depth = _tokens(settings)
    pairs = [(prompt, generated)] if _is_together(settings) else [(prompt, 0), (0, generated)]
    return [bench_test_name(*pair, depth) for pair in pairs if any(pair)]


def _difference(plan: RunPlan, asked: Sequence[str], tests: Sequence[BenchTest]) -> str | None:
    """Return how the tests differ from those that were asked for: another number of tokens, or settings."""
    names = [test.name for test in tests]
    if not asked:
        return "n_prompt and n_gen are 0: nothing was to be measured"
    if names != asked:
        return f"{', '.join(names) or 'no test'} is in it, and {', '.join(asked)} was asked for"
    for name, field in _FIELD_BY_SETTING.items():
        value = setting(plan.settings, FLAGS, name)
        other = next((test.fields[field] for test in tests if test.fields.get(field, value) != value), None)
        if other is not None:
            return f"it ran with {field} {str(other)[:80]}, and {value} was asked for"
    return None


def _metrics(tests: Sequence[BenchTest]) -> list[Metric]:
    metrics: list[Metric] = []
    for test in tests:
        if test.prompt_tokens and test.generated_tokens:
            continue
        metrics.append(rate_metric(PREFILL_RATE if test.prompt_tokens else DECODE_RATE, test.tokens_per_s))
        if test.prompt_tokens:
            metrics += lower_is_better({_PREFILL_TIME: test.mean_ns / 1e6}, "ms")
    return metrics


def _load_time(evidence: Evidence) -> list[Metric]:
    ms = clocked_ms(pass_stdout(evidence, LOADING_RUN), _STARTS, _LOADED)
    return lower_is_better({LOAD_TIME: ms}, "ms")


def _on_cpu(plan: RunPlan) -> str:
    """Return the proof for the CPU: no layer and no operator may be on another device."""
    if plan.backend != _CPU or setting(plan.settings, FLAGS, "device") not in ("", "none"):
        return ""
    return "cpu by construction: -ngl 0 -dev none"
