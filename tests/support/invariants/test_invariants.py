"""The checker of invariants reports each kind of violation."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from farm.core.jobs.attempt import AttemptState
from farm.database.engine import create_engine, sqlite_url
from tests.support.farm.service_fixture import FarmRig, HostRig, device_trouble, good_evidence, phase
from tests.support.invariants.invariants import check_invariants, violations

#: An event of long before everything else.
_EVENT = (
    "INSERT INTO events (event_id, at, actor, subject, subject_id, kind, cause)"
    " VALUES (-1, 0, 'farm', 'device', 'phone-1',"
)
#: A device action that nobody requested.
_DEVICE_ACTION = (
    "INSERT INTO device_actions (device_id, kind, requested_by, requested_at, finished_at, done, error)"
    " VALUES ('phone-1', 'clean', 'ann', 1,"
)


@pytest.fixture
def farm(sqlite_farm: FarmRig) -> FarmRig:
    """Return a farm on SQLite: the tests change its file directly, and one database is enough."""
    return sqlite_farm


@pytest.fixture
def busy_farm(farm: FarmRig, host: HostRig) -> Path:
    """One job measured, one retried and active again, one measuring."""
    farm.submit(rounds=2)
    first, second = host.exchange().assignments
    host.report(first.attempt_id, good_evidence(first))
    host.report(second.attempt_id, device_trouble(second))
    host.clean(first)
    host.clean(second)
    third, fourth = host.exchange().assignments
    host.exchange([phase(third, AttemptState.MEASURING), phase(fourth, AttemptState.PREPARING)])
    return farm.path


def broken_by(database: Path, statement: str) -> Sequence[str]:
    """Return the violations that the checker reports after a statement changed the rows."""
    engine = create_engine(sqlite_url(database))
    try:
        with engine.connect().execution_options(farm_writes=True) as connection:
            assert connection.exec_driver_sql(statement).rowcount > 0
            # Never committed.
            return list(violations(connection))
    finally:
        engine.dispose()


def test_an_honest_history_breaks_nothing(busy_farm: Path) -> None:
    check_invariants(busy_farm)


@pytest.mark.parametrize(
    ("rule", "statement"),
    [
        ("I17", "UPDATE jobs SET state = 'queued' WHERE state = 'active'"),
        ("I17", "UPDATE devices SET health = 'bad'"),
        ("I17", "UPDATE devices SET admin = 'cordoned'"),
        ("I17", "UPDATE devices SET reserved_by = 'anna', reserved_until = 1"),
        ("I14", "UPDATE events SET to_state = 'pending' WHERE kind = 'device_found'"),
        ("I14", f"{_EVENT} 'device_reserved', 'by anna')"),
        ("I14", f"{_EVENT} 'device_action_requested', 'device action 1, clean')"),
        ("I17", "UPDATE sessions SET state = 'lost' WHERE state = 'live'"),
        ("I17", "UPDATE hosts SET state = 'draining'"),
        ("I17", "UPDATE join_tokens SET used_at = NULL, used_by = NULL"),
        ("I17", "UPDATE artifacts SET expired_at = 1"),
        ("I17", "UPDATE attempts SET outcome = 'cancelled' WHERE state = 'finished'"),
        ("I17", "DELETE FROM events WHERE kind = 'matrix_submitted'"),
        ("I17", "UPDATE events SET kind = 'job_mended' WHERE kind = 'job_requeued'"),
        ("I17", f"{_DEVICE_ACTION} 1, 'done', NULL)"),
        ("I17", f"{_DEVICE_ACTION} NULL, NULL, NULL)"),
        (
            "I17",
            "INSERT INTO incidents (host_id, kind, began_at, devices, cause)"
            " VALUES ('bench-1', 'correlated_failures', 1, '[]', 'hub')",
        ),
        (
            "I17",
            "INSERT INTO access_tokens (token_hash, name, role, created_at, created_by)"
            " VALUES ('h', 'eve', 'admin', 1, 'user:eve')",
        ),
        ("I3", "UPDATE devices SET fence = 99"),
        ("I17", "DELETE FROM events WHERE kind = 'attempt_measuring'"),
        ("I6", "UPDATE events SET from_state = 'finished' WHERE kind = 'job_requeued'"),
        ("I9", "UPDATE sessions SET state = 'lost' WHERE state = 'live'"),
        ("I3", "UPDATE devices SET fence = 1"),
        ("I7", "UPDATE devices SET cleaned_fence = 99"),
        ("I5", "DELETE FROM measurements"),
        ("I5", "UPDATE measurements SET variant_digest = 'elsewhere'"),
        ("I4", "UPDATE measurements SET attempt_id = 1"),
        ("I4", "UPDATE evidence SET counted = 0"),
        ("I14", "DELETE FROM events WHERE kind = 'device_health_changed'"),
        ("I14", "DELETE FROM events WHERE kind = 'device_presence_changed'"),
        ("I16", "UPDATE jobs SET repeat = 3 WHERE kind = 'benchmark'"),
        ("I16", "UPDATE attempts SET job_id = 3, blame = 'variant' WHERE state = 'finished'"),
    ],
)
@pytest.mark.invariant("I3", "I4", "I5", "I6", "I7", "I9", "I14", "I16", "I17")
def test_tampering_is_found(busy_farm: Path, rule: str, statement: str) -> None:
    broken = broken_by(busy_farm, statement)
    assert any(re.match(rf"{rule}\b", violation) for violation in broken), broken
