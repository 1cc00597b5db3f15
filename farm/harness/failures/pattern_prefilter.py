"""A prefilter: one pass over a text finds the patterns that can match, by their necessary words."""

import re
from collections.abc import Sequence
from functools import lru_cache

import re2

#: RE2 has no look-ahead. Without it a pattern matches more, which is safe here.
_NOT_FOLLOWED_BY = re.compile(r"\(\?!(?:[^()\\]|\\.)*\)")


class PatternPrefilter:
    """Patterns of Python's `re`. One is skipped only in a text where it cannot match."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Raise re2.error for a pattern that RE2 rejects even without its negative look-aheads."""
        self._filter = re2.Filter()
        options = re2.Options()
        # RE2 would write to stderr.
        options.log_errors = False
        for pattern in patterns:
            self._filter.Add(_NOT_FOLLOWED_BY.sub("", pattern), options)
        self._filter.Compile()

    def candidate_indexes(self, text: str) -> Sequence[int]:
        """Return the indexes of patterns that may match, in order."""
        return self._filter.Match(text.encode(errors="replace"), True) or ()


@lru_cache(maxsize=64)
def pattern_prefilter(patterns: tuple[str, ...]) -> PatternPrefilter:
    """Return the prefilter of some patterns, built once."""
    return PatternPrefilter(patterns)


@lru_cache(maxsize=256)
def find_prefilter(pattern: re.Pattern[str]) -> PatternPrefilter | None:
    """Return the prefilter of one pattern; None where RE2 rejects it."""
    in_any_case = "(?i)" if pattern.flags & re.IGNORECASE else ""
    try:
        return PatternPrefilter([f"{in_any_case}{pattern.pattern}"])
    except re2.error:
        return None
