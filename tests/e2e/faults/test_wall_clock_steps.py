"""The wall clock of a real farm process is set: its duties go on, nothing ends, and it says so."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.operations.alarm import AlarmKind
from farm.database.tables import devices, hosts, leader_leases
from tests.support.database.postgres import PostgresServer
from tests.support.database.sample_rows import DEVICE, HOST, PHONE
from tests.support.farm.processes import FarmProcess, eventually, running_farm
from tests.support.faults.wall_clock import WallClock

pytestmark = [pytest.mark.long, pytest.mark.fault(50)]

HOUR_S, YEAR_S = 3600.0, 365 * 86_400.0
_SETTINGS = {"FARM_REAP_EVERY_S": "0.2"}


@contextmanager
def farm_on(folder: Path, clock: WallClock, **options: Any) -> Iterator[FarmProcess]:
    farm = FarmProcess(folder, environment={**clock.environment, **_SETTINGS}, **options)
    with running_farm(farm):
        yield farm


def lease_end(farm: FarmProcess) -> datetime:
    with farm.database.engine.connect() as connection:
        end = connection.execute(sa.select(leader_leases.c.expires_at)).scalar()
    return end or datetime.min.replace(tzinfo=UTC)


def check_duties_go_on(farm: FarmProcess) -> None:
    before = lease_end(farm)
    eventually(lambda: lease_end(farm) > before, "the duties go on", within_s=10)


def reserve_phone(connection: Connection) -> None:
    now = datetime.now(UTC)
    host = {"host_id": HOST, "state": "active", "auto_admit": True, "credential_hash": "x", "created_at": now}
    connection.execute(hosts.insert().values(host))
    until = {"reserved_by": "kim", "reserved_until": now + timedelta(hours=1)}
    connection.execute(devices.insert().values({**DEVICE, **until, "device_id": PHONE}))


def is_reserved(farm: FarmProcess) -> bool:
    with farm.database.engine.connect() as connection:
        return connection.execute(sa.select(devices.c.reserved_by)).scalar_one() == "kim"


def health(farm: FarmProcess) -> httpx.Response:
    return httpx.get(f"{farm.url}/api/v1/health", timeout=5)


def open_alarms(farm: FarmProcess) -> list[AlarmKind]:
    with farm.client() as client:
        return [alarm.kind for alarm in client.alarms()]


@pytest.mark.parametrize("step_s", [-HOUR_S, HOUR_S, YEAR_S])
def test_the_duties_of_a_farm_go_on_and_a_hold_lasts_when_its_clock_is_set(
    tmp_path: Path, step_s: float
) -> None:
    clock = WallClock(tmp_path / "clock")
    with farm_on(tmp_path / "farm", clock) as farm:
        check_duties_go_on(farm)
        farm.database.write(reserve_phone)
        clock.set(step_s)
        eventually(lambda: open_alarms(farm) == [AlarmKind.CLOCK_STEPPED], "the alarm is raised")
        began_s = time.monotonic()
        answer = health(farm)
        assert time.monotonic() - began_s < 3, "it is not deaf"
        assert (answer.status_code, answer.json()["status"]) == (200, "ok")
        assert ("back" if step_s < 0 else "ahead") in answer.json()["clock"]
        check_duties_go_on(farm)
        assert abs(lease_end(farm) - datetime.now(UTC)) < timedelta(minutes=1)
        assert is_reserved(farm)
        clock.set(0)
        eventually(lambda: open_alarms(farm) == [], "the alarm is over")
        check_duties_go_on(farm)
        assert health(farm).json() == {"status": "ok"}


@pytest.mark.invariant("I11")
@pytest.mark.parametrize("ahead_s", [-HOUR_S, HOUR_S])
def test_of_two_processes_the_one_whose_clock_is_off_dates_nothing(
    postgres: PostgresServer, tmp_path: Path, ahead_s: float
) -> None:
    right, off = WallClock(tmp_path / "right"), WallClock(tmp_path / "off", ahead_s=ahead_s)
    with ExitStack() as stack:
        name = stack.enter_context(postgres.database())
        shared = {"database_url": postgres.url(name), "blobs": tmp_path / "blobs"}
        good = stack.enter_context(farm_on(tmp_path / "1", right, **shared))
        bad = stack.enter_context(farm_on(tmp_path / "2", off, **shared))
        assert health(good).status_code == 200
        assert health(bad).status_code == 503
        refused = httpx.post(f"{bad.url}/api/v1/tokens", json={"auto_admit": True}, timeout=5)
        assert (refused.status_code, refused.json()["code"]) == (503, "farm.busy")
        # One that agreed with the database when it began stays right when its machine's clock is set.
        right.set(ahead_s)
        eventually(lambda: "clock" in health(good).json(), "it says so")
        check_duties_go_on(good)
        assert abs(lease_end(good) - datetime.now(UTC)) < timedelta(minutes=1)
