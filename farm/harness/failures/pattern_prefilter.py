"""Which of many patterns a text can match at all: in one pass, by the words that they cannot do without."""

import re
from collections.abc import Sequence
from functools import lru_cache

import re2

#: RE2 has no look-ahead. Without it a pattern matches more, which is as well.
_NOT_FOLLOWED_BY = re.compile(r"\(\?!(?:[^()\\]|\\.)*\)")


class PatternPrefilter:
    """Patterns of Python's `re`. One is left out of a text's only where it cannot match there."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Raises re2.error for a pattern that RE2 does not take even without its negative look-aheads."""
        self._filter = re2.Filter()
        options = re2.Options()
        # It would write to stderr by itself.
        options.log_errors = False
        for pattern in patterns:
            self._filter.Add(_NOT_FOLLOWED_BY.sub("", pattern), options)
        self._filter.Compile()

    def possible(self, text: str) -> Sequence[int]:
        """The places of patterns that may match, in order."""
        return self._filter.Match(text.encode(errors="replace"), True) or ()


@lru_cache(maxsize=64)
def pattern_prefilter(patterns: tuple[str, ...]) -> PatternPrefilter:
    """The sieve of some patterns, made once."""
    return PatternPrefilter(patterns)


@lru_cache(maxsize=256)
def find_prefilter(pattern: re.Pattern[str]) -> PatternPrefilter | None:
    """The sieve of one pattern; None of one that RE2 does not take."""
    in_any_case = "(?i)" if pattern.flags & re.IGNORECASE else ""
    try:
        return PatternPrefilter([f"{in_any_case}{pattern.pattern}"])
    except re2.error:
        return None
