"""The short form of `make security`'s attack."""

import pytest

from tests.security.attack import attack


@pytest.mark.long
def test_fuzzed_calls_of_every_role_on_both_listeners_break_nothing_and_keep_no_one_from_their_work() -> None:
    findings = attack(2000, seed=16, within_s=120)
    assert findings.failures == ()
    assert findings.refused_writes == 0
    # It is an attack: calls of each kind of answer are among them.
    assert {200, 401, 403, 404, 422} <= set(findings.answers_by_status), str(findings)
