"""What real phones printed of their state, by facts read off by hand; skipped where no captures lie about."""

from pathlib import Path

import pytest

from farm.core.devices.condition import ThermalStatus
from farm.phone.condition.battery import battery_status
from farm.phone.condition.cpuinfo_dump import ProcessCpuLoad, cpu_load
from farm.phone.condition.screen import screen_on
from farm.phone.condition.thermal import skin_limit_c, thermal, thermal_limits
from farm.phone.hardware.clocks import clocks
from tests.phone.adb.capture_text import decode_output

CAPTURES = Path(__file__).parents[4] / "shared" / "captures"
pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="no captures beside the checkout")
PARSERS = [battery_status, clocks, cpu_load, screen_on, thermal, thermal_limits, skin_limit_c]


def state(name: str) -> str:
    return decode_output((CAPTURES / "device-state" / f"{name}.txt").read_bytes())


@pytest.mark.parametrize(
    ("name", "severe_c", "lowest_c"),
    [
        ("memfault_qcom_6core_nsp_thresholds", 40.0, 40.0),
        ("memfault_samsung_aidl1_thresholds", 42.0, 38.0),
        ("memfault_status2_hidl_thresholds", 52.0, 35.0),
    ],
)
def test_a_phone_names_the_skin_temperatures_it_throttles_at(
    name: str, severe_c: float, lowest_c: float
) -> None:
    text = state(f"thermalservice_{name}")
    skin = next(limits for limits in thermal_limits(text) if limits.is_skin)
    assert skin.from_c[ThermalStatus.SEVERE] == severe_c
    assert skin_limit_c(text) == lowest_c


@pytest.mark.parametrize(
    "name", ["memfault_pixel_mnh_hal2_noindent", "pixel8a_a17_aidl3_trimmed", "samsung_status1_aidl1_cut"]
)
def test_a_phone_without_thresholds_names_none(name: str) -> None:
    assert skin_limit_c(state(f"thermalservice_{name}")) is None


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("memfault_samsung_aidl1_thresholds", "SUBBAT"),
        ("memfault_qcom_6core_nsp_thresholds", "vbat"),
        ("memfault_qcom_6core_nsp_thresholds", "socd"),
        ("pixel8a_a17_aidl3_trimmed", "VIRTUAL-USB-UI"),
    ],
)
def test_what_is_no_temperature_is_left_out(name: str, absent: str) -> None:
    assert absent not in thermal(state(f"thermalservice_{name}")).temperatures_c


@pytest.mark.parametrize(
    ("name", "plugged"),
    [
        ("emulator_2016", "ac"),
        ("galaxy_zflip4_a16_trimmed", None),
        ("nexus5_crlf", "usb"),
        ("pixel8pro_a17", "usb"),
        ("samsung_swelling", "usb"),
    ],
)
def test_a_phone_says_what_it_is_plugged_into(name: str, plugged: str | None) -> None:
    assert battery_status(state(f"dumpsys_battery_{name}")).plugged == plugged


def test_the_kirins_policies_are_told_once_for_all_of_their_cores() -> None:
    found = clocks(state("cpufreq_mate20_kirin980"))
    little = found.cpus[0]
    assert little.cores == (0, 1, 2, 3)
    assert (little.hardware_min_hz, little.hardware_max_hz) == (830_000_000, 1_805_000_000)
    assert little.current_hz == 830_000_000
    assert found.online == tuple(range(8))
    cores = [core for policy in found.cpus for core in policy.cores]
    assert len(cores) == len(set(cores))


def test_a_table_in_a_log_has_its_busiest_process() -> None:
    found = cpu_load(state("dumpsys_cpuinfo_anr_with_wallclock_window"))
    assert found[0] == ProcessCpuLoad(pid=27772, name="com.google.android.youtube.tv", busy_pct=61.0)


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.8, 0.99])
def test_no_parser_raises_on_any_capture_cut_anywhere(cut: float) -> None:
    for file in sorted(CAPTURES.glob("device-state/*.txt")):
        text = decode_output(file.read_bytes())
        for parse in PARSERS:
            parse(text[: int(len(text) * cut)])
