"""The generation of a language model: regime, tokens, caches, digests, degenerate texts."""

from dataclasses import dataclass
from enum import StrEnum


class Regime(StrEnum):
    """What a process finds that runs a language model. Times of different regimes are not comparable."""

    #: No caches: the runtime builds them. What an app does right after its installation.
    FIRST = "first"
    #: A new process, and the caches of an earlier one. What an app does whenever it is started.
    COLD = "cold"
    #: A process that has generated before. What an app does with the second prompt.
    WARM = "warm"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """The tokens of a timed repetition. Times of other numbers are of other work: the context is longer.

    A prompt that is neither timed nor in the context is no part of it.
    """

    #: Before the first one that the clock covers; or their text, of which tokenizers make different numbers.
    context: int | str
    #: Before that text: they say that it begins.
    beginning: int = 0
    #: Of the prompt, covered by the clock.
    prompt: int = 0
    #: Generated, covered by the clock or by the mean of a token.
    generated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFile:
    """A file that the runtime wrote beside the model."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What a run processed and generated, and the caches around it."""

    regime: Regime
    #: SHA-256 of the prompt as UTF-8; None where the tool makes up tokens instead.
    prompt_sha256: str | None = None
    #: SHA-256 of the text of all iterations as UTF-8; None where the tool prints none.
    text_sha256: str | None = None
    #: Caches beside the model; None where the farm did not look.
    caches_before: tuple[CacheFile, ...] | None = None
    caches_after: tuple[CacheFile, ...] | None = None


#: A token of few letters, again and again, in a script without spaces.
_LONGEST_UNIT_CHARS, _FEWEST_REPEATS = 16, 4
#: Fewer tokens may well be the same.
_FEWEST_TOKENS = 4


def degenerate_reason(text: str, *, tokens: int, iterations: int) -> str:
    """Return why a generated text cannot be what the model is to write; empty where nothing shows it.

    Args:
        text: of all iterations, one after the other.
        tokens: tokens generated in each iteration.
        iterations: how often a text was generated; without randomness each is the same.
    """
    words = text.split()
    if not words:
        return f"the text of {tokens} tokens is blank"
    if tokens < _FEWEST_TOKENS or len(set(words)) > 1:
        return ""
    word = words[0]
    if len(words) > iterations:
        return f"the text is {_quoted(word)} again and again, {len(words)} times"
    unit = _unit(word)
    return f"the text is {_quoted(unit)} again and again" if unit else ""


def _unit(word: str) -> str:
    """Return the shortest text that a word repeats from its beginning to its end; empty where none is."""
    for length in range(1, min(_LONGEST_UNIT_CHARS, len(word) // _FEWEST_REPEATS) + 1):
        if word[length:] == word[:-length]:
            return word[:length]
    return ""


def _quoted(text: str) -> str:
    return repr(text[:40])
