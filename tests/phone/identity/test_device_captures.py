"""Every capture of getprop and device state that lies beside the checkout; skipped where there is none."""

from collections.abc import Callable
from pathlib import Path

import pytest

from farm.core.devices.condition import ThermalStatus
from farm.phone.condition.battery import BatteryStatus, battery_status
from farm.phone.condition.thermal import thermal
from farm.phone.hardware.storage import storage_free_bytes
from farm.phone.identity import facts
from farm.phone.identity.properties import properties
from farm.phone.identity.soc import chip
from tests.phone.adb.capture_text import decode_output

CAPTURES = Path(__file__).parents[4] / "shared" / "captures"
needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason="no captures beside the checkout")
FILES = sorted(CAPTURES.glob("*/*.txt"))


def read(name: str) -> str:
    return decode_output((CAPTURES / name).read_bytes())


@pytest.mark.parametrize("parse", [properties, battery_status, thermal, storage_free_bytes])
@needs_captures
def test_no_parser_raises_on_any_capture(parse: Callable[[str], object]) -> None:
    for file in FILES:
        parse(decode_output(file.read_bytes()))


@needs_captures
@pytest.mark.parametrize(
    ("name", "count", "model", "maker", "soc", "android", "api_level", "abi"),
    [
        (
            "galaxy_j1_2016_sc8830_a5",
            363,
            "SM-J120H",
            "samsung",
            "Unisoc SC7727SE",
            "5.1.1",
            22,
            "armeabi-v7a",
        ),
        (
            "galaxy_s25plus_sm8750_a16_utf16",
            1257,
            "SM-S936B",
            "samsung",
            "Qualcomm SM8750 (Snapdragon 8 Elite)",
            "16",
            36,
            "arm64-v8a",
        ),
        (
            "galaxy_s9_exynos9810_a8",
            590,
            "SM-G960F",
            "samsung",
            "Samsung exynos9810",
            "8.0.0",
            26,
            "arm64-v8a",
        ),
        (
            "galaxy_s9us_sdm845_a8",
            739,
            "SM-G960U",
            "samsung",
            "Qualcomm SDM845 (Snapdragon 845)",
            "8.0.0",
            26,
            "arm64-v8a",
        ),
        (
            "infinix_x670_mt6781_a13",
            1137,
            "Infinix X670",
            "INFINIX",
            "MediaTek MT6781V/CDZAMB-H (Helio G96)",
            "13",
            33,
            "arm64-v8a",
        ),
        ("leagoo_t5c_sc9853i_x86_a7", 417, "T5c", "LEAGOO", "Unisoc SC9853I", "7.0", 24, "x86_64"),
        (
            "oneplus7t_sm8150p_a10",
            684,
            "HD1903",
            "OnePlus",
            "Qualcomm SM8150 (Snapdragon 855/855+/860)",
            "10",
            29,
            "arm64-v8a",
        ),
        (
            "oneplus_nord2_mt6893_a11",
            838,
            "DN2103",
            "OnePlus",
            "MediaTek mt6893",
            "11",
            30,
            "arm64-v8a",
        ),
        (
            "pixel2xl_msm8998_a8",
            453,
            "Pixel 2 XL",
            "Google",
            "Qualcomm MSM8998 (Snapdragon 835)",
            "8.1.0",
            27,
            "arm64-v8a",
        ),
        ("pixel8_tensor_g3_a14", 207, "Pixel 8", "Google", "Google Tensor G3", "14", 34, "arm64-v8a"),
        (
            "poco_f6_sm8635_a15",
            1067,
            "24069PC21I",
            "Xiaomi",
            "Qualcomm SM8635 (Snapdragon 8s Gen 3)",
            "15",
            35,
            "arm64-v8a",
        ),
        (
            "redmi_note14_5g_mt6855_a15",
            1236,
            "24094RAD4G",
            "Xiaomi",
            "MediaTek MT6855 (Dimensity 930/7020/7025/7060)",
            "15",
            35,
            "arm64-v8a",
        ),
    ],
)
def test_a_dump_has_the_facts_of_its_phone(
    name: str, count: int, model: str, maker: str, soc: str, android: str, api_level: int, abi: str
) -> None:
    found = properties(read(f"getprop/getprop_{name}.txt"))
    assert len(found) == count
    assert facts.text_fact(found, "device_model") == model
    assert facts.text_fact(found, "manufacturer") == maker
    assert chip(found).text == soc
    assert facts.text_fact(found, "android") == android
    assert facts.api_level(found) == api_level
    assert facts.abis(found)[0] == abi


@needs_captures
def test_a_cut_dump_names_the_model_by_the_vendors_partition() -> None:
    found = properties(read("getprop/getprop_pixel6pro_tensor_g1_a13_cut.txt"))
    assert len(found) == 34
    assert (
        facts.text_fact(found, "device_model"),
        facts.text_fact(found, "manufacturer"),
        chip(found).text,
    ) == (
        "Pixel 6 Pro",
        "Google",
        "Google Tensor",
    )


@needs_captures
def test_a_build_prop_names_its_phone() -> None:
    found = properties(read("getprop/build_prop_galaxy_s8_exynos8895_a7.txt"))
    assert (
        facts.text_fact(found, "device_model"),
        facts.text_fact(found, "android"),
        facts.api_level(found),
    ) == (
        "SM-G950F",
        "7.0",
        24,
    )
    assert chip(found).text == "Samsung exynos8895"


def _charging_by_usb(level_pct: int, temperature_c: float, voltage_v: float) -> BatteryStatus:
    return BatteryStatus(
        level_pct=level_pct,
        temperature_c=temperature_c,
        voltage_v=voltage_v,
        health="good",
        charging=True,
        plugged="usb",
    )


@needs_captures
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("emulator_2016", BatteryStatus(level_pct=89, health="good", charging=True, plugged="ac")),
        ("galaxy_zflip4_a16_trimmed", BatteryStatus(level_pct=96, temperature_c=30.4)),
        ("nexus5_crlf", _charging_by_usb(45, 18.0, 4.189)),
        ("pixel8pro_a17", _charging_by_usb(22, 28.0, 3.764)),
        ("samsung_swelling", _charging_by_usb(100, 30.9, 4.312)),
    ],
)
def test_a_battery_dump_has_its_phones_state(name: str, expected: BatteryStatus) -> None:
    assert battery_status(read(f"device-state/dumpsys_battery_{name}.txt")) == expected


@needs_captures
@pytest.mark.parametrize(
    ("name", "status", "skin_c", "sensor", "sensor_c"),
    [
        ("memfault_emulator_spaces_in_name", 0, 30.8, "test temperature sensor", 30.8),
        ("memfault_pixel_mnh_hal2_noindent", 0, 28.348001, "cpu0-silver-usr", 32.300003),
        ("memfault_qcom_6core_nsp_thresholds", 0, 33.136, "nsp0", 34.3),
        ("memfault_samsung_aidl1_thresholds", 0, 28.2, "AP", 34.6),
        ("memfault_status2_hidl_thresholds", 2, 44.637, "battery", 43.8),
        ("pixel8a_a17_aidl3_trimmed", 0, 29.347502, "LITTLE", 46.000004),
        ("pixel_6silver2gold_hal2", 0, 30.147001, "battery", 28.000002),
        ("samsung_status1_aidl1_cut", 1, 38.0, "AP", 38.1),
    ],
)
def test_a_thermal_dump_has_its_phones_heat(
    name: str, status: int, skin_c: float, sensor: str, sensor_c: float
) -> None:
    found = thermal(read(f"device-state/thermalservice_{name}.txt"))
    assert found.status is ThermalStatus(status)
    assert found.skin_c == skin_c
    assert found.temperatures_c[sensor] == sensor_c


@needs_captures
def test_df_has_its_phones_free_storage() -> None:
    assert storage_free_bytes(read("device-state/df_quest2_data.txt")) == 161196764 * 1024
    assert storage_free_bytes(read("device-state/df_h_full_99pct_a11.txt")) == int(1.6 * 1024**3)
    assert storage_free_bytes(read("device-state/df_h_android7_magisk.txt")) == int(2.3 * 1024**3)
