import pytest

from farm.core.devices.condition import ThermalStatus
from farm.phone.condition.thermal import Thermal, thermal, thermal_hal_version, thermal_status

HIDL = """\
IsStatusOverride: false
ThermalStatusListeners:
\tcallbacks: 2
Thermal Status: 1
Cached temperatures:
\tTemperature{mValue=55.0, mType=0, mName=CPU0, mStatus=0}
\tTemperature{mValue=46.5, mType=3, mName=skin, mStatus=2}
HAL Ready: true
HAL connection:
\tThermalHAL 2.0 connected: yes
Current temperatures from HAL:
\tTemperature{mValue=35.2, mType=0, mName=CPU0, mStatus=0}
\tTemperature{mValue=31.25, mType=3, mName=skin, mStatus=0}
\tTemperature{mValue=33.5, mType=3, mName=back cover sensor, mStatus=0}
\tTemperature{mValue=0.0, mType=3, mName=absent, mStatus=0}
\tTemperature{mValue=-99.9, mType=2, mName=broken, mStatus=0}
\tTemperature{mValue=4.384, mType=6, mName=vbat, mStatus=0}
\tTemperature{mValue=-0.98, mType=-1, mName=USB-MINUS, mStatus=0}
Current cooling devices from HAL:
\tCoolingDevice{mValue=11, mType=2, mName=thermal-cpufreq-6}
Temperature static thresholds from HAL:
\t{.type = SKIN, .name = skin, .hotThrottlingThresholds = [NaN, 36.0, 38.0]}
"""
READ = Thermal(
    status=ThermalStatus.LIGHT,
    temperatures_c={"CPU0": 35.2, "skin": 31.25, "back cover sensor": 33.5, "USB-MINUS": -0.98},
    skin_c=33.5,
    cooling={"thermal-cpufreq-6": 11},
)


def test_current_temperatures_count_and_not_the_cached_ones() -> None:
    assert thermal(HIDL) == READ


def test_the_aidl_form_is_read_too() -> None:
    aidl = HIDL.replace("ThermalHAL 2.0 connected", "ThermalHAL AIDL 3  connected")
    thresholds = "TemperatureThreshold{mType=3, mName=skin, mHotThrottlingThresholds=[NaN]}"
    aidl += f"\t{thresholds}\nTemperature headroom thresholds:\n\t[NaN, 0.8, 1.0]\n"
    assert thermal(aidl) == READ


def test_line_ends_and_indentation_do_not_matter() -> None:
    assert thermal(HIDL.replace("\n", " \r\n").replace("\t", "")) == READ


def test_cached_temperatures_are_the_last_resort() -> None:
    cached = thermal(HIDL[: HIDL.index("HAL Ready")])
    assert cached.temperatures_c == {"CPU0": 55.0, "skin": 46.5}
    assert cached.skin_c == 46.5


def test_a_dump_cut_in_the_middle_of_a_line_keeps_what_is_whole() -> None:
    cut = thermal(HIDL[: HIDL.index("mType=3, mName=back")])
    assert cut.temperatures_c == {"CPU0": 35.2, "skin": 31.25}


def test_a_missing_service_says_nothing() -> None:
    assert thermal("Can't find service: thermalservice\n") == Thermal()


def test_a_status_that_android_does_not_know_is_none() -> None:
    assert thermal("Thermal Status: 9\n").status is None


def test_no_throttling_is_no_statement_while_no_hal_reports() -> None:
    text = "IsStatusOverride: false\nThermal Status: {}\nCached temperatures:\nHAL Ready: false\n"
    assert thermal_status(text.format(0)) is None
    assert thermal_status(text.format(3)) is ThermalStatus.SEVERE


def test_a_status_that_was_put_in_the_place_of_the_phones_own_is_none() -> None:
    text = "IsStatusOverride: true\nThermal Status: {}\nHAL Ready: true\n"
    assert [thermal_status(text.format(number)) for number in (0, 2)] == [None, None]


def test_names_say_what_is_skin_where_a_vendor_counts_types_in_its_own_way() -> None:
    text = """\
Current temperatures from HAL:
\tTemperature{mValue=41.0, mType=3, mName=BAT, mStatus=0}
\tTemperature{mValue=36.5, mType=5, mName=SKIN, mStatus=0}
\tTemperature{mValue=52.0, mType=1, mName=AP, mStatus=0}
"""
    assert thermal(text).skin_c == 36.5


def test_what_vendors_call_their_skin_sensors_does_not_matter_where_the_type_says_it() -> None:
    text = "Current temperatures from HAL:\n\tTemperature{mValue=33.0, mType=3, mName=quiet, mStatus=0}\n"
    # A virtual sensor of another type has the word in its name, and is not what a hand feels.
    text += "\tTemperature{mValue=61.0, mType=-1, mName=VIRTUAL-SKIN-CPU, mStatus=0}\n"
    assert thermal(text).skin_c == 33.0


def test_sections_that_are_empty_or_missing_take_no_readings_from_others() -> None:
    text = "Cached temperatures:\nHAL Ready: true\nCurrent temperatures from HAL:\n"
    text += "Current cooling devices from HAL:\n\tTemperature{mValue=50.0, mType=3, mName=x, mStatus=0}\n"
    assert thermal(text).temperatures_c == {}


#: Before HAL 2.0: types count from 1, and sensors are called after Android's.
OLD_SAMSUNG = """\
Thermal Status: 0
Cached temperatures:
 Temperature{mValue=-99.9, mType=6, mName=TYPE_POWER_AMPLIFIER, mStatus=0}
HAL Ready: true
HAL connection:
\tSdhms connected: yes
Current temperatures from HAL:
\tTemperature{mValue=39.5, mType=1, mName=TYPE_CPU, mStatus=0}
\tTemperature{mValue=33.1, mType=3, mName=TYPE_BATTERY, mStatus=0}
\tTemperature{mValue=31.75, mType=4, mName=TYPE_SKIN, mStatus=0}
\tTemperature{mValue=30.25, mType=6, mName=TYPE_POWER_AMPLIFIER, mStatus=0}
Current cooling devices from HAL:
\tCoolingDevice{mValue=0, mType=2, mName=TYPE_CPU}
"""


def test_sensors_that_are_called_after_a_type_are_of_that_type() -> None:
    found = thermal(OLD_SAMSUNG)
    assert found.skin_c == 31.75
    assert found.temperatures_c == {
        "TYPE_CPU": 39.5,
        "TYPE_BATTERY": 33.1,
        "TYPE_SKIN": 31.75,
        "TYPE_POWER_AMPLIFIER": 30.25,
    }


def test_thousandths_of_a_degree_are_told_by_their_size() -> None:
    text = "Current temperatures from HAL:\n"
    for value, kind, name in [("36500.0", 3, "back"), ("6900.0", 7, "amps"), ("61000.0", -1, "virtual")]:
        text += f"\tTemperature{{mValue={value}, mType={kind}, mName={name}, mStatus=0}}\n"
    assert thermal(text) == Thermal(temperatures_c={"back": 36.5}, skin_c=36.5)


def test_what_is_no_number_is_no_reading() -> None:
    text = "Current temperatures from HAL:\n"
    text += "\tTemperature{mValue=NaN, mType=3, mName=a, mStatus=0}\n"
    text += "\tTemperature{mValue=3.4028235E38, mType=3, mName=b, mStatus=0}\n"
    assert thermal(text) == Thermal()


def test_a_sensor_of_no_type_is_skin_by_a_name_that_goes_on() -> None:
    text = "Current temperatures from HAL:\n"
    text += "\tTemperature{mValue=33.5, mType=-1, mName=skin_therm1, mStatus=0}\n"
    text += "\tTemperature{mValue=44.0, mType=-1, mName=skinny, mStatus=0}\n"
    assert thermal(text).skin_c == 33.5


def test_of_two_dumps_the_first_counts() -> None:
    one, other = (
        f"Thermal Status: {status}\nHAL Ready: true\nCurrent temperatures from HAL:\n"
        f"\tTemperature{{mValue={celsius}, mType=3, mName=back, mStatus=0}}\n"
        "Current cooling devices from HAL:\n"
        for status, celsius in ((1, 38.5), (0, 29.25))
    )
    assert thermal(one + other) == thermal(one)
    assert thermal(one).skin_c == 38.5


def test_complaints_between_the_lines_end_no_section() -> None:
    text = (
        "Current temperatures from HAL:\n\tTemperature{mValue=38.5, mType=3, mName=back, mStatus=0}\n"
        "WARNING: linker: /vendor/lib64/libacme.so: unused DT entry:\nsh: acme:\n"
        "\tTemperature{mValue=51.5, mType=0, mName=big, mStatus=0}\nCurrent cooling devices from HAL:\n"
        "\tTemperature{mValue=12.5, mType=0, mName=fan, mStatus=0}\n"
    )
    assert thermal(text).temperatures_c == {"back": 38.5, "big": 51.5}


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("\tThermalHAL 2.0 connected: yes", "2.0"),
        ("ThermalHAL AIDL 3  connected: yes\r", "AIDL 3"),
        ("\tThermalHAL 2.0 connected: no", None),
        ("HAL connection:", None),
    ],
)
def test_the_version_of_a_connected_hal_is_read(line: str, version: str | None) -> None:
    assert thermal_hal_version(f"HAL connection:\n{line}\nCurrent temperatures from HAL:\n") == version
