"""What the farm keeps of the phones it is told about."""

import pytest
from farm_rig import FarmRig, HostRig

from farm.services.operators import retire
from farm.wire.device_views import Asked


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
    farm.write(retire, "a", Asked(by="kim"), now=farm.clock.now())
    host.plug_in("b", device_model="Pixel 8")
    host.exchange()
    host.plug_in("b", device_model="Pixel 8", build_fingerprint="another build")
    host.exchange()
    found = units(farm)
    assert (found["a"], found["b"]) == (1, 2)
