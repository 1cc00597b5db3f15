"""A virtual phone that is slow, warm or low on battery, as a check and the gates see it."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.adb.client import AdbDevice
from agents.device.conditions import read_condition
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.base.ids import DeviceId, Digest, JobId
from farm.core.checks.reference_fitness import unfit_reasons
from farm.core.checks.reference_range import MIN_RUNS_ALONE, ReferenceSample
from farm.core.checks.reference_run import ReferenceRun, ReferenceVerdict, assess_reference_run
from farm.core.devices.condition import Gates, closed_gates
from farm.core.runs.evidence import Evidence
from farm.harness.base.device_check import reference_time
from farm.services.files.builtin_programs import check_payload, check_program

pytestmark = pytest.mark.anyio
NOW = datetime(2031, 2, 3, tzinfo=UTC)
#: Far more than what else a machine of two cores does adds to a run.
SLOW = 12


@pytest.fixture
async def check(device: AdbDevice, work_root: str, tmp_path: Path) -> str:
    """What runs the check on the phone."""
    for name, content in (("program", check_program()), ("payload", check_payload())):
        (tmp_path / name).write_bytes(content)
        await device.push(tmp_path / name, f"{work_root}/{name}", mode=0o755, deadline_s=60)
    return f"cd {work_root} && sh ./program ./payload"


async def took_ns(device: AdbDevice, check: str) -> float:
    said = await device.shell(check, deadline_s=170)
    found = reference_time(Evidence(fence=1, stdout=said.stdout.decode()))
    assert found is not None
    return found.value_ns


async def shown(device: AdbDevice, faults: Faults, state: Path) -> None:
    """Wait until the phone is as the faults say."""
    set_faults(state, faults)
    async with asyncio.timeout(120):
        while (await device.shell("command -v sha256sum", deadline_s=60)).stdout.startswith(
            str(state).encode()
        ) is not (faults.slow > 1):
            pass


def verdict(value_ns: float, usual_ns: float) -> ReferenceVerdict:
    """By a band of runs as they usually are."""
    kind = [ReferenceSample(device="phone-1", value_ns=usual_ns, at=NOW)] * MIN_RUNS_ALONE
    run = ReferenceRun(
        job_id=JobId(1),
        device_id=DeviceId("phone-2"),
        reference_key="usual",
        facts_id=None,
        program_digest=Digest("0" * 64),
        value_ns=value_ns,
        verdict=ReferenceVerdict.LEARNING,
        measured_at=NOW,
    )
    return assess_reference_run(run, of_kind=kind, of_device=()).verdict


@pytest.mark.long
@pytest.mark.fault(48)
async def test_a_slow_phone_takes_longer_for_its_reference_run_until_it_is_well_again(
    device: AdbDevice, phone: VirtualDeviceHandle, check: str
) -> None:
    usual_ns = await took_ns(device, check)
    await shown(device, Faults(slow=SLOW), phone.state)
    slow_ns = await took_ns(device, check)
    assert slow_ns > 2 * usual_ns
    assert verdict(slow_ns, usual_ns) is ReferenceVerdict.SLOW
    await shown(device, Faults(), phone.state)
    assert await took_ns(device, check) < slow_ns / 2


@pytest.mark.fault(46)
@pytest.mark.fault(47)
@pytest.mark.parametrize(
    ("faults", "told"),
    [
        (Faults(skin_c=44.0, thermal_status=2), "thermal status MODERATE, at most NONE"),
        (Faults(battery_level_pct=9, charging=False), "battery 9 %, at least 20 %"),
        (Faults(battery_level_pct=80, battery_c=47.5), "battery 47.5 C, at most 45.0 C"),
    ],
)
async def test_a_phone_that_is_warm_or_low_is_fit_for_neither_a_run_nor_a_reference_run(
    device: AdbDevice, phone: VirtualDeviceHandle, faults: Faults, told: str
) -> None:
    set_faults(phone.state, faults)
    async with asyncio.timeout(120):
        while not (shut := closed_gates(found := await read_condition(device, NOW), Gates())):
            pass
    assert told in shut
    assert unfit_reasons(found, found, None)
