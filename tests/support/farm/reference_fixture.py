"""A played phone that is checked: what its golden run takes, and what comes of that."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from farm.core.checks.reference_range import MIN_RUNS_ALONE
from farm.core.devices.condition import Condition, ThermalStatus
from farm.core.runs.evidence import Evidence
from farm.database.transaction import bind_tx
from farm.services.checks.requested import request_check
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.devices import OperatorRequest
from tests.support.farm.service_fixture import FarmRig, HostRig, ended, good_evidence, plan_of

DAY_S = 86400.0
REAL = {
    "virtual": False,
    "abis": ("arm64-v8a",),
    "device_model": "Nimbus 5",
    "build_fingerprint": "n/5:14/A1",
}


def golden(
    assignment: Assignment,
    ms: float,
    *,
    status: ThermalStatus = ThermalStatus.NONE,
    said: Sequence[str] = (),
) -> Evidence:
    """A check that passes all but what its golden run says; `ms` is what that takes."""
    good = good_evidence(assignment)
    if plan_of(assignment).harness != "device_check":
        return good
    begun = 1779870001112233445
    lines = [f"reference 4 {begun} {begun + int(4e6 * ms * slower)}" for slower in (1.02, 1.0, 1.4)]
    lines.extend(said)
    look = Condition(taken_at=datetime(2026, 11, 1, tzinfo=UTC), thermal_status=status)
    done = ended(assignment, good.stdout + "\n".join(lines) + "\n", code=23)
    return Evidence(
        fence=done.fence, argv=done.argv, exit=done.exit, stdout=done.stdout, before=look, after=look
    )


def answer(ms: float, status: ThermalStatus = ThermalStatus.NONE) -> Callable[[Assignment], Evidence]:
    return lambda assignment: golden(assignment, ms, status=status)


def health(farm: FarmRig, device_id: str = "phone-1") -> str:
    return farm.rows("SELECT health FROM devices WHERE device_id = :id", id=device_id)[0]["health"]


def last_cause(farm: FarmRig, device_id: str = "phone-1") -> str:
    return farm.rows(
        "SELECT cause FROM events WHERE kind = 'device_health_changed' AND subject_id = :id"
        " ORDER BY event_id DESC LIMIT 1",
        id=device_id,
    )[0]["cause"]


def alarms(farm: FarmRig) -> list[str]:
    rows = farm.rows("SELECT kind, subject_id FROM alarms WHERE cleared_at IS NULL ORDER BY alarm_id")
    return [f"{row['kind']} {row['subject_id']}" for row in rows]


def replugged(host: HostRig, device_id: str = "phone-1") -> None:
    """The phone is away, and comes back in somebody's hands' distance: with its health open."""
    phone = host.phones.pop(device_id)
    host.exchange()
    host.phones[device_id] = phone


def check_again(host: HostRig, ms: float, status: ThermalStatus = ThermalStatus.NONE) -> None:
    """Have an operator ask for a check."""
    host.farm.clock.advance(DAY_S)
    host.exchange()
    host.farm.write(bind_tx(request_check, now=host.farm.clock.now()), "phone-1", OperatorRequest(by="ann"))
    assert host.run(answer(ms, status)) == 1


def phone_with_band(farm: FarmRig) -> HostRig:
    """A real phone with a band: so many checks of 20 ms, a little up and down."""
    host = farm.host()
    host.plug_in("phone-1", **REAL)
    assert host.run(answer(20.0)) == 1
    for number in range(MIN_RUNS_ALONE - 1):
        check_again(host, 20.0 + 0.1 * (number % 3 == 1))
    assert health(farm) == "good"
    return host
