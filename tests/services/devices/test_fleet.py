"""The state of all devices at once is that of each of them."""

import pytest

from farm.core.base.ids import DeviceId
from farm.core.devices.admin import AdminEvent
from farm.core.devices.device import Blocker, Presence
from farm.database.transaction import bind_tx
from farm.presentation.device_state import device_groups
from farm.services.devices.admin import change_admin
from farm.services.devices.views import FleetGroup, first_devices, fleet_status, views_of, waiting_reasons
from farm.wire.documents.devices import OperatorRequest
from tests.support.database.sent_statements import sent_to
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence

NAMES = tuple(f"phone-{number}" for number in range(1, 9))


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    """A host with phones in various states; two are free."""
    farm.variant("float32")
    host = farm.healthy_host(*NAMES[:6])
    host.plug_in("phone-7", cpu_domain="emulator")
    host.plug_in("phone-8", cpu_domain="emulator")
    host.run()
    for name in ("phone-1", "phone-2", "phone-7"):
        farm.submit(axes=ONE_CELL, devices={"device_id": name}, rounds=1)
    assignments = {own.device_id: own for own in host.exchange().assignments}
    # Reported, and not cleaned up yet.
    host.report(assignments[DeviceId("phone-2")].attempt_id, good_evidence(assignments[DeviceId("phone-2")]))
    request = OperatorRequest(by="ann", reason="it is warm")
    farm.write(bind_tx(change_admin, now=farm.clock.now()), "phone-3", AdminEvent.CORDONED, request)
    away = host.phones["phone-4"].model_copy(update={"presence": Presence.UNAUTHORIZED})
    host.phones["phone-4"] = away
    host.exchange()
    return host


ONE_CELL = {"model": "mobilenet_v2", "precision": "float32", "format": "torchscript", "backend": "cpu"}


def test_each_device_is_in_the_group_of_what_keeps_it_from_work(farm: FarmRig, host: HostRig) -> None:
    ids = [DeviceId(name) for name in NAMES]
    fleet = farm.read(fleet_status)
    ids_of = {group.alike: farm.read(first_devices, [group], limit=len(ids)) for group in fleet}
    assert [len(ids_of[group.alike]) for group in fleet] == [group.alike.count for group in fleet]
    group_of = {device_id: group for group in fleet for device_id in ids_of[group.alike]}
    assert sorted(group_of) == ids
    assert {own: group.blocked_by for own, group in group_of.items()} == farm.read(waiting_reasons, ids)
    for view in farm.read(views_of, ids):
        group = group_of[view.device_id]
        assert (group.blocked_by, group.job_id is None) == (view.blocked_by, view.job_id is None)
    assert [ids_of[group.alike] for group in fleet if not group.blocked_by] == [["phone-5", "phone-6"]]
    found = {own: group.blocked_by[:1] for own, group in group_of.items()}
    assert found["phone-1"] == found["phone-7"] == (Blocker.BUSY,)
    assert found["phone-2"] == (Blocker.NOT_CLEANED,)
    assert found["phone-3"] == (Blocker.CORDONED,)
    assert found["phone-4"] == (Blocker.NOT_ONLINE,)
    assert found["phone-8"] == (Blocker.CPU_SHARED,)


def test_devices_are_counted_by_state(farm: FarmRig, host: HostRig) -> None:
    def counted(fleet: list[FleetGroup]) -> list[tuple[str, str, int]]:
        return [*device_groups((group, group.alike.count) for group in fleet)]

    expected = [
        ("busy", "running", 2),
        ("free", "free", 2),
        ("waits", "not available", 3),
        ("down", "needs attention", 1),
    ]
    assert counted(farm.read(fleet_status)) == expected


def test_the_first_devices_of_groups_are_those_with_the_least_ids(farm: FarmRig, host: HostRig) -> None:
    fleet = farm.read(fleet_status)
    for limit in range(1, len(NAMES) + 1):
        assert farm.read(first_devices, fleet, limit=limit) == list(NAMES[:limit])


def test_more_devices_take_no_more_statements(farm: FarmRig) -> None:
    host = farm.healthy_host("phone-1")

    def sent() -> int:
        with sent_to(farm.database.engine) as statements:
            farm.read(fleet_status)
        return len(statements)

    of_one = sent()
    for name in NAMES:
        host.plug_in(name)
    host.run()
    assert sent() == of_one
