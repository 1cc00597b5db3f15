"""A farm on loopback under fuzzed calls of every role, while another caller times their own small writes."""

import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import httpx

from farm.api.app import create_agents_app
from farm.core.base.ids import digest_of
from farm.core.operations.role import ROLES_BY_RANK, Role
from tests.api.routes.test_all_routes import matrix_spec, register_variant
from tests.security.fuzzed_calls import CallSource, FuzzedCall
from tests.support.farm.http_farm import HttpFarm, http_farm, served
from tests.support.farm.service_fixture import phone

#: Attackers at once. Together with the farm, they take two cores.
_ATTACKERS = 2
#: Between two writes of the other caller.
_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What an attack showed."""

    calls: int
    answers_by_status: Counter[int]
    #: Calls that the farm failed at, with its answer.
    failures: tuple[str, ...]
    #: Seconds that each small write of the other caller took, in order.
    waits_s: tuple[float, ...]
    #: Writes of the other caller that were not done.
    refused_writes: int
    took_s: float

    def __str__(self) -> str:
        statuses = ", ".join(f"{status}: {count}" for status, count in sorted(self.answers_by_status.items()))
        waits = sorted(self.waits_s)
        return (
            f"{self.calls} fuzzed calls in {self.took_s:.0f} s ({statuses}); {len(self.failures)} failed; "
            f"another caller's {len(waits)} small writes: median {waits[len(waits) // 2] * 1000:.0f} ms, "
            f"longest {waits[-1] * 1000:.0f} ms, {self.refused_writes} not done"
        )


@contextmanager
def attacked_farm(folder: Path) -> Iterator[tuple[HttpFarm, str, dict[str, str]]]:
    """A farm with tokens, some rows and no limit of calls; the address for agents; a token of each kind."""
    with http_farm(folder, require_tokens=True, calls_per_minute=10**9) as farm:
        tokens = {str(role): farm.access_token(role, f"the-{role}") for role in ROLES_BY_RANK}
        agent = farm.enroll()
        agent.exchange(devices=(phone("phone-1"),))
        farm.http.headers["Authorization"] = f"Bearer {tokens[Role.ADMIN]}"
        register_variant(farm).raise_for_status()
        farm.http.post("/api/v1/matrices", json={"spec": matrix_spec()}).raise_for_status()
        tokens[Role.AGENT] = agent.headers["Authorization"].removeprefix("Bearer ")
        with served(create_agents_app(farm.context), lifespan="off") as (agents_url, _):
            yield farm, agents_url, tokens


def attack(calls: int, *, seed: int, within_s: float) -> Findings:
    """Attack a new farm with that many calls, or with as many as fit into the time.

    Attackers never see a secret that they did not have, so that they do not end the tokens of others.
    """
    with tempfile.TemporaryDirectory() as folder, attacked_farm(Path(folder)) as (farm, agents_url, tokens):
        done, other = threading.Event(), _OtherCaller(farm.url, farm.access_token(Role.SUBMITTER, "other"))
        started_s = time.monotonic()
        with ThreadPoolExecutor(_ATTACKERS + 1) as threads:
            timing = threads.submit(other.write_until, done)
            try:
                attackers = [
                    threads.submit(
                        _attack,
                        CallSource(farm.app.openapi(), Random(f"{seed}-{number}")),
                        (farm.url, agents_url),
                        tuple(tokens.values()),
                        calls // _ATTACKERS,
                        started_s + within_s,
                    )
                    for number in range(_ATTACKERS)
                ]
                results = [attacker.result() for attacker in attackers]
            finally:
                done.set()
            timing.result()
        statuses = sum((statuses for statuses, _ in results), Counter[int]())
        return Findings(
            calls=statuses.total(),
            answers_by_status=statuses,
            failures=tuple(failure for _, failures in results for failure in failures),
            waits_s=tuple(other.waits_s),
            refused_writes=other.refused,
            took_s=time.monotonic() - started_s,
        )


def _attack(
    source: CallSource, urls: tuple[str, ...], tokens: tuple[str, ...], calls: int, deadline_s: float
) -> tuple[Counter[int], list[str]]:
    statuses, failures = Counter[int](), []
    with httpx.Client(trust_env=False, timeout=60) as http:
        for _ in range(calls):
            if time.monotonic() > deadline_s:
                break
            call = source.draw()
            url, token = _door(call, source.random, urls, tokens)
            answer = http.request(
                call.method,
                f"{url}{call.path}",
                params=call.query,
                content=_content(call),
                headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            )
            statuses[answer.status_code] += 1
            if answer.status_code >= 500:
                failures.append(f"{call.method} {call.path} {answer.status_code} {answer.text[:300]}")
    return statuses, failures


def _door(
    call: FuzzedCall, random: Random, urls: tuple[str, ...], tokens: tuple[str, ...]
) -> tuple[str, str]:
    """Return address and token: mostly some that let the call in, as others show little."""
    *people, agent = tokens
    if random.random() < 0.2:
        return random.choice(urls), random.choice((*tokens, "bfu_guessed"))
    if call.path.startswith("/api/v1/agent/"):
        return random.choice(urls), agent
    # From the second on, people may do more than look.
    return urls[0], random.choice(people[1:])


def _content(call: FuzzedCall) -> bytes | None:
    return json.dumps(call.body).encode() if call.raw is None and call.body is not None else call.raw


class _OtherCaller:
    """Someone with work of their own: uploads a small file again and again, and times it."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._headers = url, {"Authorization": f"Bearer {token}"}
        self.waits_s: list[float] = []
        self.refused = 0

    def write_until(self, done: threading.Event) -> None:
        """Write until it is done, and once at least."""
        with httpx.Client(base_url=self._url, headers=self._headers, trust_env=False, timeout=60) as http:
            while not self.waits_s or not done.wait(_PAUSE_S):
                content = b"small %d" % len(self.waits_s)
                began_s = time.perf_counter()
                answer = http.put(f"/api/v1/blobs/{digest_of(content)}", content=content)
                self.waits_s.append(time.perf_counter() - began_s)
                self.refused += answer.status_code != 201
