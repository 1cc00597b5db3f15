"""Attempts, plans, phones and answers for the agent's tests."""

from datetime import UTC, datetime
from typing import Any

from agents.devices.inventory import TransportObservation
from agents.outbox.attempt_journal import JournalRecord
from farm.core.base.ids import AttemptId, DeviceId, JobId
from farm.core.devices.condition import Condition
from farm.core.devices.device import DeviceFacts, Presence
from farm.core.runs.evidence import Evidence
from farm.core.runs.plan import RunPlan
from farm.wire.agents.protocol import Assignment, AttemptReport

PLAN = RunPlan(harness="test", backend="cpu", files=(), argv=("true",), timeout_s=10.0)


def entry(attempt_id: int = 1, **changes: Any) -> JournalRecord:
    """An active attempt on phone-1, its fence the same as its number."""
    fields: dict[str, Any] = {
        "attempt_id": AttemptId(attempt_id),
        "job_id": JobId(attempt_id),
        "device_id": DeviceId("phone-1"),
        "fence": attempt_id,
        "plan": PLAN,
        "draft": Evidence(fence=attempt_id),
        **changes,
    }
    return JournalRecord(**fields)


def assignment(attempt_id: int = 1, device_id: str = "phone-1", **changes: Any) -> Assignment:
    """A fresh attempt, its fence the same as its number."""
    fields: dict[str, Any] = {"fence": attempt_id, "plan": PLAN, **changes}
    return Assignment(
        attempt_id=AttemptId(attempt_id), job_id=JobId(attempt_id), device_id=DeviceId(device_id), **fields
    )


def attempt_report(attempt_id: int, phase: Any) -> AttemptReport:
    """What an exchange says of an attempt."""
    return AttemptReport(attempt_id=AttemptId(attempt_id), fence=attempt_id, phase=phase)


def facts(serialno: str = "phone-1", **changes: Any) -> DeviceFacts:
    """What a phone is."""
    return DeviceFacts(serialno=serialno, device_model="test phone", work_root="/data/local/tmp", **changes)


def observation(
    serial: str = "phone-1", presence: Presence = Presence.ONLINE, **changes: Any
) -> TransportObservation:
    """A transport; an online one is known."""
    known = {"facts": facts(), "boot_id": "boot-1"} if presence is Presence.ONLINE else {}
    return TransportObservation(serial=serial, presence=presence, **{**known, **changes})


def condition(skin_c: float = 30.0) -> Condition:
    """A look at a phone."""
    return Condition(taken_at=datetime(2026, 11, 20, tzinfo=UTC), boot_id="boot-1", skin_c=skin_c)
