"""A served farm in which every question of the table has an answer."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.devices.admin import AdminEvent
from farm.core.devices.condition import Condition, ThermalStatus
from farm.core.runs.evidence import Evidence
from farm.database.transaction import bind_tx
from farm.services.devices.admin import change_admin
from farm.web.app import create_app_with_pages
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.devices import OperatorRequest
from tests.support.farm.changes import recorded_change
from tests.support.farm.http_farm import served
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig, ended, good_evidence, plan_of, torch_output
from tests.web.conftest import import_results

_COOL = Condition(
    taken_at=datetime(2031, 2, 3, tzinfo=UTC),
    thermal_status=ThermalStatus.NONE,
    battery_level_pct=90,
    battery_c=30.0,
    storage_free_bytes=2**40,
    plugged="usb",
)
_HOT = replace(_COOL, thermal_status=ThermalStatus.SEVERE)
#: A round is measured so often before it is left out.
_TRIES = 3


def fill(folder: Path) -> None:
    """Measure three matrices on two devices.

    In the first, the candidate is twice as quick, and its first round on the second device is left out. In
    the second, the candidate is refused on the first device and fails on the other. The third waits.
    """
    farm = FarmRig(folder)
    noise = random.Random(5)
    hot_runs = _TRIES
    is_second = False

    def answer(assignment: Assignment) -> Evidence:
        nonlocal hot_runs
        plan = plan_of(assignment)
        if plan.harness == "device_check":
            return good_evidence(assignment)
        is_candidate = "int8" in names[plan.files[-1].digest]
        is_first_device = assignment.device_id == "virtual-1"
        if is_second and is_candidate and not is_first_device:
            return ended(assignment, "", code=1, stderr="terminate: no kernel\n")
        base = (10_000 if is_candidate else 20_000) * noise.gauss(1, 0.01)
        count = int(plan.settings["iter"])
        measured = ended(assignment, torch_output([base * noise.gauss(1, 0.01) for _ in range(count)]))
        is_hot = is_candidate and (is_second or not is_first_device)
        if is_hot and not is_second:
            hot_runs -= 1
            is_hot = hot_runs >= 0
        return replace(measured, before=_COOL, after=_HOT if is_hot else _COOL)

    try:
        host = farm.host()
        for device in ("virtual-1", "virtual-2"):
            host.plug_in(device, android="15")
        names = {made.manifest.digest: made.name for made in (farm.variant(), farm.variant("int8-core"))}
        host.earn_health()
        farm.submit(name="two precisions")
        host.run(answer)
        compute_points(farm)
        recorded_change(farm)
        is_second = True
        farm.submit(name="too hot")
        host.run(answer)
        cordon = bind_tx(change_admin, now=farm.clock.now(), actor="user:ann")
        farm.write(cordon, "virtual-2", AdminEvent.CORDONED, OperatorRequest(by="ann", reason="new battery"))
        farm.submit(name="waits")
        import_results(farm)
    finally:
        farm.close()


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of the farm, which nothing changes."""
    folder = tmp_path_factory.mktemp("questions")
    fill(folder)
    app = create_app_with_pages(FarmConfig(data_dir=folder), SystemClock())
    with served(app) as (url, _), httpx.Client(base_url=url, trust_env=False, timeout=30) as http:
        yield http
