"""What the farm keeps of the phones it is told about."""

from dataclasses import replace

import pytest

from farm.core.base.ids import DeviceId
from farm.core.devices.device import Gpu, NnapiDriver
from farm.database.transaction import Tx, bind_tx
from farm.services.agents.exchange.effects import AddDevice
from farm.services.agents.exchange.exchange import apply_effects
from farm.services.agents.exchange.reconcile import reconcile_attempts_and_arrivals, reconcile_devices
from farm.services.agents.exchange.snapshot import FleetSnapshot, load
from farm.services.devices.admin import retire
from farm.store.devices.devices import Device
from farm.store.hosts.hosts import current_session
from farm.wire.agents.protocol import MAX_DEVICES, Exchange
from farm.wire.documents.devices import OperatorRequest
from tests.support.farm.service_fixture import FarmRig, HostRig, phone


@pytest.mark.invariant("I18")
def test_another_boot_of_the_host_is_no_other_phone_and_keeps_its_phones_apart(
    farm: FarmRig, host: HostRig
) -> None:
    before = farm.rows("SELECT facts_id FROM devices ORDER BY device_id")
    for device_id in ("phone-1", "phone-2"):
        host.plug_in(device_id, cpu_domain="after the reboot")
    farm.submit()
    assert len(host.exchange().assignments) == 1
    assert farm.rows("SELECT facts_id FROM devices ORDER BY device_id") == before


def test_another_system_build_is_another_snapshot_of_facts(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-1", build_fingerprint="maker/phone/17:updated")
    host.exchange()
    snapshots = farm.rows("SELECT facts_id FROM device_facts WHERE device_id = 'phone-1'")
    assert len(snapshots) == 2


def units(farm: FarmRig) -> dict[str, int]:
    rows = farm.rows("SELECT device_id, unit FROM devices WHERE unit IS NOT NULL")
    return {row["device_id"]: row["unit"] for row in rows}


def test_phones_of_one_model_are_numbered_in_the_order_they_came(farm: FarmRig, host: HostRig) -> None:
    for device_id, model in (("a", "Pixel 8"), ("b", "Pixel 7"), ("c", "Pixel 8")):
        host.plug_in(device_id, device_model=model)
        host.exchange()
    assert {name: unit for name, unit in units(farm).items() if name in "abc"} == {"a": 1, "b": 1, "c": 2}
    assert [event["cause"] for event in farm.rows("SELECT * FROM events WHERE kind = 'device_numbered'")][
        -1:
    ] == ["unit 2 of Pixel 8"]


def test_a_phones_number_stays_its_own_when_it_is_retired_or_updated(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("a", device_model="Pixel 8")
    host.exchange()
    del host.phones["a"]
    farm.write(bind_tx(retire, now=farm.clock.now()), "a", OperatorRequest(by="kim"))
    host.plug_in("b", device_model="Pixel 8")
    host.exchange()
    host.plug_in("b", device_model="Pixel 8", build_fingerprint="another build")
    host.exchange()
    found = units(farm)
    assert (found["a"], found["b"]) == (1, 2)


def updates(farm: FarmRig) -> list[dict[str, object]]:
    return farm.rows("SELECT * FROM events WHERE kind = 'device_updated' ORDER BY event_id")


def open_checks(farm: FarmRig) -> list[dict[str, object]]:
    return farm.rows("SELECT device_id FROM jobs WHERE kind = 'check' AND state <> 'finished'")


def test_an_update_is_told_and_checked_before_the_next_job(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-1", build_fingerprint="maker/phone/16:old", kernel="5.1")
    host.exchange()
    host.run()
    farm.submit(devices=[{"device_id": "phone-1"}])
    host.plug_in("phone-1", build_fingerprint="maker/phone/17:new", kernel="5.1")
    assigned = host.exchange().assignments
    assert updates(farm)[-1]["from_state"] == "maker/phone/16:old"
    assert updates(farm)[-1]["to_state"] == "maker/phone/17:new"
    assert updates(farm)[-1]["cause"] == "build maker/phone/16:old to maker/phone/17:new"
    kinds = farm.rows("SELECT kind FROM jobs WHERE job_id = :job", job=assigned[0].job_id)
    assert [row["kind"] for row in kinds] == ["check"]


def test_a_driver_that_came_without_a_system_release_is_an_update(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-1", build_fingerprint="one", gpu=Gpu(driver="V@1", driver_text="V@1 (a)"))
    host.exchange()
    host.run()
    host.plug_in("phone-1", build_fingerprint="one", gpu=Gpu(driver="V@1", driver_text="V@1 (b)"))
    host.exchange()
    assert [event["cause"] for event in updates(farm)] == ["GPU driver V@1 (a) to V@1 (b)"]
    assert [row["device_id"] for row in open_checks(farm)] == ["phone-1"]


def test_the_same_phone_seen_again_was_not_updated(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-1", build_fingerprint="one", gpu=Gpu(driver="V@1"))
    host.exchange()
    host.run()
    for changed in (
        {"memory_bytes": 17},
        {"gpu": None},
        {"nnapi": (NnapiDriver(name="npu", running=False),)},
    ):
        host.plug_in("phone-1", **{"build_fingerprint": "one", "gpu": Gpu(driver="V@1"), **changed})
        host.exchange()
    assert updates(farm) == []
    assert open_checks(farm) == []


def test_a_host_cannot_invent_devices_without_end(farm: FarmRig, host: HostRig) -> None:
    host.exchange()
    request = Exchange(seq=1000, devices=tuple(phone(f"new-{number}") for number in range(3)))

    def last_room(tx: Tx) -> FleetSnapshot:
        """The host has one device less than the most."""
        session = current_session(tx.connection, host.host_id)
        assert session is not None
        snapshot = load(tx, session, request)
        return replace(snapshot, devices=_copies(snapshot.devices[0], MAX_DEVICES - 1))

    snapshot = farm.read(bind_tx(last_room, now=farm.clock.now()))
    effects = reconcile_attempts_and_arrivals(snapshot, request)
    added, refused = effects
    assert isinstance(added, AddDevice)
    assert added.device_id == "new-0"
    for _ in range(2):
        farm.write(bind_tx(apply_effects, now=farm.clock.now()), host.host_id, [refused])
    # The rest of the exchange goes on without them.
    with_first = replace(snapshot, devices=[*snapshot.devices, *_copies(snapshot.devices[0], 1, "new-")])
    after = repr(reconcile_devices(with_first, request))
    assert "new-0" in after
    assert "new-1" not in after
    told = farm.rows("SELECT subject_id, cause FROM events WHERE kind = 'access_refused'")
    cause = f"2 new devices: a host has at most {MAX_DEVICES}"
    assert told == [{"subject_id": "bench-1", "cause": cause}]


def _copies(device: Device, count: int, name: str = "invented-") -> list[Device]:
    return [replace(device, device_id=DeviceId(f"{name}{number}")) for number in range(count)]
