"""NNAPI drivers of invented phones."""

from farm.core.devices.device import NnapiDriver
from farm.phone.hardware.nnapi import nnapi_drivers, nnapi_feature_level

AIDL = "android.hardware.neuralnetworks.IDevice"
MANIFEST = f"""<manifest version="8.0" type="device">
    <hal format="aidl"><name>vendor.acme.other</name><version>9</version><fqname>IDevice/no</fqname></hal>
    <hal format="aidl">
        <name>android.hardware.neuralnetworks</name>
        <version>3</version>
        <fqname>IDevice/acme-npu</fqname>
        <fqname>IDevice/acme-dsp</fqname>
    </hal>
</manifest>
<manifest><hal format="hidl"><name>android.hardware.neuralnetworks</name><version>1.2</version>
<interface><name>IDevice</name><instance>acme-gpu</instance></interface></hal></manifest>
{AIDL}"""


def test_what_is_registered_runs() -> None:
    text = f"Found 2 services:\r\n7\t{AIDL}/acme-npu: [{AIDL}]\r\n8\tvendor.acme.INpu/default: [x]"
    assert nnapi_drivers(service_list=text) == (NnapiDriver(name="acme-npu", running=True),)


def test_hidl_names_the_version_of_its_interface() -> None:
    text = "\n".join(
        f"X     android.hardware.neuralnetworks@{version}::IDevice/acme-dsp   0/2    1041   711"
        for version in ("1.0", "1.3", "1.2")
    )
    assert nnapi_drivers(lshal=text) == (NnapiDriver(name="acme-dsp", version="1.3", running=True),)


def test_what_lshal_cannot_fetch_does_not_run() -> None:
    text = 'Warning: Skipping "android.hardware.neuralnetworks@1.3::IDevice/acme": cannot be fetched from\n'
    assert nnapi_drivers(lshal=text) == (NnapiDriver(name="acme", version="1.3", running=False),)


def test_manifests_declare_drivers_and_versions() -> None:
    assert nnapi_drivers(vintf=MANIFEST) == (
        NnapiDriver(name="acme-dsp", version="3"),
        NnapiDriver(name="acme-gpu", version="1.2"),
        NnapiDriver(name="acme-npu", version="3"),
    )


def test_a_declared_driver_runs_where_it_is_registered() -> None:
    found = nnapi_drivers(vintf=MANIFEST, service_list=f"1 {AIDL}/acme-npu: [{AIDL}]\n")
    assert found[2] == NnapiDriver(name="acme-npu", version="3", running=True)
    assert found[0].running is None


def test_declared_drivers_run_where_every_service_does() -> None:
    states = {"init.svc.neuralnetworks_hal_a": "running", "init.svc.vendor.nnapi-b": "running"}
    assert {each.running for each in nnapi_drivers(vintf=MANIFEST, properties=states)} == {True}
    states["init.svc.vendor.nnapi-b"] = "stopped"
    assert {each.running for each in nnapi_drivers(vintf=MANIFEST, properties=states)} == {None}


def test_a_phone_that_names_no_driver_has_those_of_its_services() -> None:
    states = {"init.svc.hal_neuralnetworks_acme": "stopped", "init.svc.camera": "running"}
    assert nnapi_drivers(properties=states) == (NnapiDriver(name="hal_neuralnetworks_acme", running=False),)


def test_a_phone_without_drivers_has_none() -> None:
    assert nnapi_drivers(service_list="3 vendor.acme.IEnn/default: [vendor.acme.IEnn]") == ()
    assert nnapi_feature_level({}) is None
    assert nnapi_feature_level({"persist.device_config.nnapi_native.current_feature_level": "8"}) == "8"


def test_a_name_that_may_be_cut_is_no_driver() -> None:
    text = f"1\t{AIDL}/acme-npu: [{AIDL}]\n2\t{AIDL}/acme-ds"
    assert [driver.name for driver in nnapi_drivers(service_list=text)] == ["acme-npu"]


def test_a_service_without_threads_and_server_is_not_known_to_run() -> None:
    name = "android.hardware.neuralnetworks@1.2::IDevice"
    text = f"DM,FC Y {name}/acme-dsp   0/3   812   455\nDM,FC Y {name}/acme-lazy   N/A   N/A\n"
    text += f"DM,FC Y {name}/acme-gpu   N/A   341\n"
    assert {driver.name: driver.running for driver in nnapi_drivers(lshal=text)} == {
        "acme-dsp": True,
        "acme-gpu": True,
        "acme-lazy": None,
    }


def test_what_a_manifest_has_in_comments_is_not_declared() -> None:
    hal = '<hal format="aidl"><name>android.hardware.neuralnetworks</name><fqname>IDevice/acme</fqname></hal>'
    assert nnapi_drivers(vintf=f"<manifest><!--\n{hal}\n--></manifest>\n") == ()
    assert len(nnapi_drivers(vintf=f"<manifest>{hal}</manifest>\n")) == 1
