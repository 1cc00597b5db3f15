"""How long to wait before trying again: exponential, capped, jittered."""

from random import Random


class Backoff:
    """The waits after failures in a row.

    Invariant: every wait lies between `first_s` and `cap_s`, so a failing thing is tried at most once in
    `first_s`.
    """

    def __init__(self, random: Random, *, first_s: float = 1.0, cap_s: float = 30.0) -> None:
        self._random = random
        self._first_s = first_s
        self._cap_s = cap_s
        self._failures = 0

    def next_s(self) -> float:
        """The wait after one more failure, in seconds."""
        ceiling = min(self._cap_s, self._first_s * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return self._random.uniform(max(self._first_s, ceiling / 2), ceiling)

    def reset(self) -> None:
        """Something worked: the next failure is the first again."""
        self._failures = 0
