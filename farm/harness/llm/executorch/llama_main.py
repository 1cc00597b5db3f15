"""ExecuTorch's `llama_main`: command line and output."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from farm.core.base.setting_values import Flag, SettingValue
from farm.core.models.variant import TOKENIZER_HINT, Format, Manifest, find_tokenizer
from farm.core.runs.derived.generation import Regime, TokenCounts
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Metric, Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import ClockScope, RunRequest
from farm.harness.base.output_lines import plain_lines
from farm.harness.base.tool_harness import ToolHarness, count_setting, flag_text, setting, tool_plan
from farm.harness.base.tool_result import LoopTimes, combined_output, missing_times_failure, time_reading
from farm.harness.failures.classification import unreadable_failure
from farm.harness.llm.caches import model_path, printed_text, with_regime
from farm.harness.llm.executorch.runner_stats import RECORD, MalformedStats, RunnerStats, runner_stats
from farm.harness.llm.generation import (
    DECODE_RATE,
    PREFILL_RATE,
    REGIME,
    REGIME_FLAG,
    TOKEN_METRICS,
    rate_metric,
    regime_of,
    times_before_decoding,
    with_generation,
)

#: By the tool's own names, except the regime.
FLAGS: Mapping[str, Flag] = {
    REGIME: REGIME_FLAG,
    "prompt": Flag(default="The answer to the ultimate question is", help="the prompt, as text"),
    "max_new_tokens": Flag(
        default=65, help="tokens generated; the first comes from the prompt, the others are timed", minimum=2
    ),
    "temperature": Flag(default=0.0, help="0 takes the likeliest token, so that the text is always the same"),
    "cpu_threads": Flag(default=1, help="threads of the CPU; -1 leaves it to the program", minimum=-1),
    "num_bos": Flag(default=0, help="tokens before the prompt that say that a text begins", minimum=0),
    "ignore_eos": Flag(
        default=False, help="goes on after the token that ends a text; not in releases before 1.2"
    ),
}
_ON_CPU = ("cpu", "xnnpack")
_MODEL = "model.pte"
#: Passed where they differ from the tool's default.
_OPTIONAL = ("num_bos", "ignore_eos")


class LlamaMain(ToolHarness):
    """Runs `.pte` files of language models with their tokenizer: a prompt, and then the tokens after it."""

    name = "llama_main"
    parser_version = 1
    flags = FLAGS
    formats = (Format.EXECUTORCH,)
    backends = (*_ON_CPU, "vulkan")
    metrics = TOKEN_METRICS
    sustained_flags = None
    sustained_obstacle = "a process of llama_main generates one text that counts"
    clock_scope = ClockScope.TOKENS
    clock_covers = (
        "the tokens after the first, one by one, with sampling and printing, in steps of 1 ms; the prompt"
        " with its tokenization, and loading, are metrics of their own"
    )

    def unsupported(self, variant: Manifest | None, backend: str) -> str | None:
        """Return why the tool cannot run the variant on the backend; None when it can."""
        reason = super().unsupported(variant, backend)
        if reason is None and variant is not None and find_tokenizer(variant) is None:
            return f"{self.name} needs the model's tokenizer: {TOKENIZER_HINT}"
        return reason

    def token_counts(self, settings: Mapping[str, SettingValue]) -> TokenCounts:
        """Return the tokens of the generation that counts: the first one belongs to the prompt."""
        prompt = str(setting(settings, FLAGS, "prompt"))
        timed = count_setting(settings, FLAGS, "max_new_tokens") - 1
        beginning = setting(settings, FLAGS, "num_bos")
        assert isinstance(beginning, int)
        return TokenCounts(context=prompt, beginning=beginning, generated=timed)

    def plan(self, request: RunRequest) -> RunPlan:
        """Return the command line, around which caches are dropped or made as the regime asks."""
        assert request.variant is not None
        words = list(_words(request.variant, request.settings))
        plan = tool_plan(self.name, request, words, model_path=model_path(_MODEL))
        short = ("--warmup=false", "--max_new_tokens=2")
        return replace(plan, argv=with_regime(plan.argv, regime_of(request.settings), short=short))

    def read_output(self, plan: RunPlan, evidence: Evidence) -> Reading | RunFailure:
        """Return the generation that counts, with rates and the first token."""
        try:
            records = runner_stats(plain_lines(combined_output(evidence)))
        except MalformedStats as error:
            return unreadable_failure(evidence, str(error))
        if not records:
            return missing_times_failure(evidence, "no PyTorchObserver record of a generation is in it")
        if len(records) > 1:
            return unreadable_failure(
                evidence, f"{len(records)} generations are in it, and one was asked for"
            )
        stats, asked = records[0], count_setting(plan.settings, FLAGS, "max_new_tokens")
        if stats.generated_tokens != asked - 1:
            return missing_times_failure(evidence, _other_tokens(stats, asked))
        reading = time_reading(
            plan,
            evidence,
            LoopTimes(samples_ns=(round(stats.decode_ms * 1e6),), expected=1, step_ns=stats.step_ns),
            placement=None,
            on_cpu=_on_cpu(plan),
            metrics=_metrics(stats, plan.settings),
        )
        if isinstance(reading, RunFailure):
            return reading
        prompt = str(setting(plan.settings, FLAGS, "prompt"))
        return with_generation(
            reading,
            evidence,
            regime_of(plan.settings),
            prompt=prompt,
            text=_text(evidence.stdout, prompt),
            tokens=asked,
            iterations=1,
        )


def _words(variant: Manifest, settings: Mapping[str, SettingValue]) -> Iterator[str]:
    tokenizer = find_tokenizer(variant)
    yield f"--model_path={model_path(_MODEL)}"
    if tokenizer is not None:
        yield f"--tokenizer_path={model_path(tokenizer.path.replace('$', '$$'))}"
    yield f"--warmup={flag_text(regime_of(settings) is Regime.WARM)}"
    for name, flag in FLAGS.items():
        value = setting(settings, FLAGS, name)
        if name != REGIME and (name not in _OPTIONAL or value != flag.default):
            yield f"--{name}={flag_text(value)}"


def _on_cpu(plan: RunPlan) -> str:
    """Return the proof for backends of the CPU: a file names its backend."""
    is_on_cpu = plan.backend in _ON_CPU
    return f"cpu by construction: the file was exported for {plan.backend}" if is_on_cpu else ""


def _other_tokens(stats: RunnerStats, asked: int) -> str:
    made = f"it generated {stats.generated_tokens} tokens after the first, and {asked - 1} were asked for"
    if stats.generated_tokens < asked - 1:
        return f"{made}: the text ended (`ignore_eos` goes on), or there is no room for more"
    return made


def _metrics(stats: RunnerStats, settings: Mapping[str, SettingValue]) -> list[Metric]:
    spans_ms = {
        PREFILL_RATE: (stats.prompt_tokens, stats.prefill_ms),
        DECODE_RATE: (stats.generated_tokens, stats.decode_ms),
    }
    # Of less than a step of the clock there is no rate.
    rates = [rate_metric(name, tokens * 1e3 / ms) for name, (tokens, ms) in spans_ms.items() if ms > 0]
    times = times_before_decoding(
        regime_of(settings), first_token_ms=stats.first_token_ms, load_ms=stats.load_ms
    )
    return [*rates, *times]


def _text(stdout: str, prompt: str) -> str:
    """Return what the model wrote: the tool prints the prompt before it, and the record after it."""
    text = printed_text(stdout).rpartition(RECORD)[0]
    return text.removeprefix(prompt)
