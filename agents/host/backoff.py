"""Exponential back-off with a cap and jitter."""

from random import Random


class Backoff:
    """The delays after consecutive failures.

    Invariant: every delay lies between `first_s` and `cap_s`, so an operation that fails is retried at most
    once in `first_s`.
    """

    def __init__(self, random: Random, *, first_s: float = 1.0, cap_s: float = 30.0) -> None:
        self._random = random
        self._first_s = first_s
        self._cap_s = cap_s
        self._failures = 0

    def next_s(self) -> float:
        """Return the delay after one more failure, in seconds."""
        ceiling = min(self._cap_s, self._first_s * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return self._random.uniform(max(self._first_s, ceiling / 2), ceiling)

    def reset(self) -> None:
        """Start again from the first delay after a success."""
        self._failures = 0
