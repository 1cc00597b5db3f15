"""Short forms of `make security`'s attack."""

from collections import Counter

import pytest
from starlette.types import Receive, Scope, Send

from farm.core.operations.role import ROLES_BY_RANK, Role
from tests.security.attack.attack import attack, attack_farm
from tests.security.attack.attackers import TokenFarm
from tests.support.farm.http_farm import served


@pytest.mark.long
def test_a_few_fuzzed_calls_are_answered_while_a_caller_of_each_role_does_their_own_work() -> None:
    findings = attack(100, seed=3, within_s=60)
    assert findings.failures == ()
    assert findings.statuses.total() == 100
    assert [prober.role for prober in findings.probers] == [*ROLES_BY_RANK, Role.AGENT]
    assert all(prober.waits_s for prober in findings.probers)


def test_an_attack_finds_what_a_farm_fails_at_and_counts_who_made_which_call() -> None:
    with served(_failing_farm, lifespan="off") as (url, _):
        tokens = {str(role): f"bfu_{role}" for role in (*ROLES_BY_RANK, Role.AGENT)}
        description = {"paths": {"/api/v1/farm": {"get": {}}}}
        farm = TokenFarm(
            url=url, agents_url=url, description=description, tokens=tokens, tokens_of_others=tokens
        )
        findings = attack_farm(farm, 20, seed=3, within_s=60)
    assert findings.statuses == Counter({500: 20})
    assert len(findings.failures) == 20 + sum(len(prober.waits_s) for prober in findings.probers)
    assert "GET /api/v1/farm 500 broken" in findings.failures[0]
    assert "20 fuzzed calls" in str(findings)


@pytest.mark.long
def test_fuzzed_calls_of_every_role_on_both_listeners_break_nothing_and_keep_no_one_from_their_work() -> None:
    findings = attack(1000, seed=16, within_s=120)
    assert findings.failures == ()
    # It is an attack: calls of each kind of answer are among them.
    assert {200, 401, 403, 404, 422} <= set(findings.statuses), str(findings)


async def _failing_farm(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 500, "headers": []})
    await send({"type": "http.response.body", "body": b"broken"})
