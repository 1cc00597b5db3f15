"""What the farm keeps of the phones it is told about."""

from farm_rig import FarmRig, HostRig


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
