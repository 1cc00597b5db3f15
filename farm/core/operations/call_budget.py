"""How many writing and expensive calls a caller may make: a token bucket that refills evenly."""

import re

from farm.core.errors import LimitReached

_MINUTE_S = 60.0
#: Exchanges of agents: a session has one at a time, and the farm answers when it wants to.
_EXCHANGE = re.compile(r"/api/v1/agent/sessions/[0-9]+/exchange")
#: Questions over many measurements, the facts of all devices, or an identity provider.
_EXPENSIVE = re.compile(
    r"/login/oidc(/callback)?|/api/v1/(export/.*|speedups(/.*)?|history|device_(usage|selection)|storage"
    r"|matrices/[0-9]+/(results|samples))"
)


def is_counted(method: str, path: str) -> bool:
    """Return whether a call is one of those that are limited: it writes, or is expensive to answer."""
    if method in ("GET", "HEAD", "OPTIONS"):
        return _EXPENSIVE.fullmatch(path) is not None
    return _EXCHANGE.fullmatch(path) is None


class CallBudget:
    """The calls that each caller may still make.

    Invariant: a caller makes at most `per_minute` calls at once, and as many in each further minute. Callers
    with a full budget are forgotten, so that the memory depends on the calls of the last minute only.
    """

    def __init__(self, per_minute: int) -> None:
        """Give every caller a full budget."""
        self._per_minute = per_minute
        self._call_s = _MINUTE_S / per_minute
        #: When a budget is full again, in seconds of a monotonic clock.
        self._full_at_s: dict[str, float] = {}
        self._forgot_at_s = 0.0

    def spend(self, caller: str, now_s: float) -> None:
        """Take one call from a caller's budget.

        Args:
            caller: any text that identifies them.
            now_s: of a monotonic clock, in seconds.

        Raises:
            LimitReached: it is empty; nothing was taken.
        """
        if now_s - self._forgot_at_s >= _MINUTE_S:
            self._full_at_s = {name: at_s for name, at_s in self._full_at_s.items() if at_s > now_s}
            self._forgot_at_s = now_s
        full_at_s = max(now_s, self._full_at_s.get(caller, now_s)) + self._call_s
        wait_s = full_at_s - now_s - _MINUTE_S
        # The sum of many calls is not exact.
        if wait_s > self._call_s / 2:
            refusal = LimitReached(
                f"more than {self._per_minute} writing or expensive calls in a minute",
                hint="make fewer calls, or have an operator of the farm raise FARM_CALLS_PER_MINUTE",
            )
            refusal.wait_s = wait_s
            raise refusal
        self._full_at_s[caller] = full_at_s
