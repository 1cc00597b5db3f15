"""Attackers: fuzzed calls of every role, and what a farm answered to them."""

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx

from farm.core.operations.role import Role
from tests.security.attack.fuzzed_calls import CallSource, FuzzedCall

_ANSWER_S = 60.0
_GUESSED = "guessed"
#: How many of the slowest calls are told.
SLOWEST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFarm:
    """A running farm process that asks everyone for a token."""

    url: str
    agents_url: str
    #: What it says that can be called.
    description: dict[str, Any]
    #: By role.
    tokens: dict[str, str]
    #: Of people and a host that nothing else uses, by role.
    tokens_of_others: dict[str, str]


@dataclass(slots=True, kw_only=True)
class Tally:
    """What one attacker, or several, saw."""

    #: Calls by whose token they had, and status.
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    #: Calls that the farm failed at, with its answer.
    failures: list[str] = field(default_factory=list)
    #: The slowest calls, with their seconds.
    slowest: list[tuple[float, str]] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Add what another attacker saw."""
        self.answers += other.answers
        self.failures += other.failures
        self.slowest = sorted((*self.slowest, *other.slowest), reverse=True)[:SLOWEST]

    def count(self, role: str, call: str, status: int, text: str, took_s: float) -> None:
        """Count one answer."""
        self.answers[role, status] += 1
        if status >= 500 or status == 0:
            self.failures.append(f"{role} {call} {status} {text[:300]}")
        slow = (*self.slowest, (took_s, f"{role} {call} {status}"))
        self.slowest = sorted(slow, reverse=True)[:SLOWEST]


def attack_with(farm: TokenFarm, seed: str, *, calls: int, deadline_s: float) -> Tally:
    """Make that many calls, or as many as fit until a time of the monotonic clock.

    An attacker never sees a secret that it did not have, so that it does not end the tokens of others.
    """
    source, tally = CallSource(farm.description, Random(seed)), Tally()
    with httpx.Client(trust_env=False, timeout=_ANSWER_S) as http:
        for _ in range(calls):
            if time.monotonic() > deadline_s:
                break
            call = source.draw()
            url, role = _door(call, source.random, farm)
            began_s = time.monotonic()
            status, text = _send(http, call, url, farm.tokens.get(role, "bfu_guessed"))
            tally.count(role, f"{call.method} {call.path}", status, text, time.monotonic() - began_s)
    return tally


def _send(http: httpx.Client, call: FuzzedCall, url: str, token: str) -> tuple[int, str]:
    """Return status and text of an answer; 0 where there is none."""
    try:
        answer = http.request(
            call.method,
            f"{url}{call.path}",
            params=call.query,
            content=_content(call),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
    except httpx.TransportError as error:
        return 0, repr(error)
    return answer.status_code, answer.text


def _door(call: FuzzedCall, random: Random, farm: TokenFarm) -> tuple[str, str]:
    """Return address and role: mostly some that let the call in, as others show little."""
    urls = (farm.url, farm.agents_url)
    if random.random() < 0.2:
        return random.choice(urls), random.choice((*farm.tokens, _GUESSED))
    if call.path.startswith("/api/v1/agent/"):
        return random.choice(urls), Role.AGENT
    # People who may do more than look.
    return farm.url, random.choice((Role.SUBMITTER, Role.OPERATOR, Role.ADMIN))


def _content(call: FuzzedCall) -> bytes | None:
    return json.dumps(call.body).encode() if call.raw is None and call.body is not None else call.raw
