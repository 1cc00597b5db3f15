"""What the adapters of language models share: regimes, metrics, and what is kept of prompt and text."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256

from farm.core.base.setting_values import ChoiceFlag, Flag, SettingValue
from farm.core.runs.derived.generation import Generation, Regime, degenerate_reason
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Better, Metric, Reading
from farm.harness.base.tool_harness import setting
from farm.harness.base.tool_result import LOAD_TIME, lower_is_better
from farm.harness.llm.caches import caches

REGIME = "regime"
REGIME_FLAG = ChoiceFlag(
    default=Regime.WARM.value,
    choices=tuple(map(str, Regime)),
    help="first: without caches; cold: a new process with caches; warm: again in the same process",
)
PREFILL_RATE, DECODE_RATE, FIRST_TOKEN = "prefill_rate", "decode_rate", "time_to_first_token"
TOKEN_METRICS = (PREFILL_RATE, DECODE_RATE, FIRST_TOKEN, LOAD_TIME)


def regime_of(settings: Mapping[str, SettingValue]) -> Regime:
    """Return the regime of a run."""
    return Regime(str(settings.get(REGIME, REGIME_FLAG.default)))


def prompt_tokens(
    settings: Mapping[str, SettingValue], flags: Mapping[str, Flag], *, length_flag: str, prompt_flag: str
) -> int | str:
    """Return the number of tokens of a prompt, or its text where that is 0; both by the names of flags."""
    number = setting(settings, flags, length_flag)
    return number if isinstance(number, int) and number else str(setting(settings, flags, prompt_flag))


def rate_metric(name: str, tokens_per_s: float) -> Metric:
    """Return a rate of tokens as a metric."""
    return Metric(name=name, value=tokens_per_s, unit="tokens/s", better=Better.HIGHER)


def times_before_decoding(regime: Regime, *, first_token_ms: float, load_ms: float | None) -> list[Metric]:
    """Return the times until the first token. A warm process loaded its model before it was warm."""
    times = {FIRST_TOKEN: first_token_ms, LOAD_TIME: None if regime is Regime.WARM else load_ms}
    return lower_is_better(times, "ms")


def with_generation(
    reading: Reading,
    evidence: Evidence,
    regime: Regime,
    *,
    prompt: str | None,
    text: str | None,
    tokens: int,
    iterations: int,
) -> Reading:
    """Return a reading with caches, digests of prompt and text, and the reason why a text is none.

    Args:
        reading: of the run.
        evidence: of the run.
        regime: of the run.
        prompt: None where the tool makes up tokens instead.
        text: of all iterations; None where the tool prints none.
        tokens: tokens generated in each iteration.
        iterations: how often a text was generated.
    """
    # Of a text that was cut nothing is known.
    whole = text if evidence.stdout_dropped_bytes == 0 else None
    generation = Generation(
        regime=regime,
        prompt_sha256=None if prompt is None else sha256(prompt.encode()).hexdigest(),
        text_sha256=None if whole is None else sha256(whole.encode()).hexdigest(),
        caches_before=caches(evidence.stdout, "before"),
        caches_after=caches(evidence.stdout, "after"),
    )
    wrong = "" if whole is None else degenerate_reason(whole, tokens=tokens, iterations=iterations)
    return replace(reading, generation=generation, wrong_output=wrong)
