"""What captures beside the checkout say of chips, cores, GPUs and drivers; skipped where there are none."""

from pathlib import Path

import pytest

from farm.core.devices.device import NnapiDriver
from farm.phone.assemble import device_facts
from farm.phone.hardware.cpu import clusters, core_by_number, hardware_line
from farm.phone.hardware.gpu import gpu
from farm.phone.hardware.nnapi import nnapi_drivers, nnapi_feature_level
from farm.phone.hardware.storage import storage_size_bytes
from farm.phone.identity import facts
from farm.phone.identity.properties import properties
from farm.phone.identity.soc import chip
from tests.phone.adb.capture_text import decode_output

CAPTURES = Path(__file__).parents[4] / "shared" / "captures"
pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="no captures beside the checkout")


def read(name: str) -> str:
    return decode_output((CAPTURES / name).read_bytes())


@pytest.mark.parametrize(
    ("name", "vendor", "model"),
    [
        ("getprop_galaxy_j1_2016_sc8830_a5", "Unisoc", "SC7727SE"),
        ("getprop_galaxy_s25plus_sm8750_a16_utf16", "Qualcomm", "SM8750"),
        ("getprop_galaxy_s9_exynos9810_a8", "Samsung", "exynos9810"),
        ("build_prop_galaxy_s8_exynos8895_a7", "Samsung", "exynos8895"),
        ("getprop_galaxy_s9us_sdm845_a8", "Qualcomm", "SDM845"),
        ("getprop_infinix_x670_mt6781_a13", "MediaTek", "MT6781V/CDZAMB-H"),
        ("getprop_leagoo_t5c_sc9853i_x86_a7", "Unisoc", "SC9853I"),
        ("getprop_meizu_pro7plus_mt6799_a7", "MediaTek", "MT6799"),
        ("getprop_mi5c_surge_s1_a7", "Xiaomi", "Surge S1"),
        ("getprop_oneplus7t_sm8150p_a10", "Qualcomm", "SM8150"),
        ("getprop_oneplus8pro_sm8250_a10", "Qualcomm", "SM8250"),
        ("getprop_oneplus8t_sm8250_a11", "Qualcomm", "SM8250"),
        # bengal and holi are platforms of several chips.
        ("getprop_oneplus_n100_sm4250_a10", "Qualcomm", None),
        ("getprop_oneplus_n200_sm4350_a11", "Qualcomm", None),
        # An MT6891 names that platform too; this phone's own part stands in its /proc/cpuinfo.
        ("getprop_oneplus_nord2_mt6893_a11", "MediaTek", None),
        ("getprop_oneplus_nord3_mt6983_a13", "MediaTek", "MT6983"),
        ("getprop_oppo_r15_mt6771_a8", "MediaTek", "MT6771"),
        ("getprop_pixel10_tensor_g5_a16_six_lines", "Google", "Tensor G5"),
        ("getprop_pixel2xl_msm8998_a8", "Qualcomm", "MSM8998"),
        ("getprop_pixel6pro_tensor_g1_a13_cut", "Google", "Tensor"),
        ("getprop_pixel8_tensor_g3_a14", "Google", "Tensor G3"),
        ("getprop_pixel8pro_tensor_g3_a17_excerpt", "Google", "Tensor G3"),
        ("getprop_poco_f6_sm8635_a15", "Qualcomm", "SM8635"),
        ("getprop_poco_x5pro_sm7325_a12", "Qualcomm", "SM7325"),
        ("getprop_redmi_note14_5g_mt6855_a15", "MediaTek", "MT6855"),
    ],
)
def test_a_dump_names_its_chip(name: str, vendor: str, model: str | None) -> None:
    found = chip(properties(read(f"getprop/{name}.txt")))
    assert (found.vendor, found.model) == (vendor, model)


def test_four_phones_that_values_were_taken_from_name_their_chips() -> None:
    blocks = read("getprop/getprop_fixture_litert_demos_s24_kona_mt6989.txt").split("\n\n")
    found = [chip(properties(block)) for block in blocks if "ro." in block]
    assert [(each.vendor, each.model) for each in found] == [
        ("Samsung", "s5e9945"),
        ("Qualcomm", "SM8650"),
        ("Qualcomm", "SM8250"),
        ("MediaTek", "MT6989"),
    ]
    assert found[0].name == "Exynos 2400/2400e"


def test_five_pixels_say_their_tensor() -> None:
    said = read("getprop/getprop_ro_soc_model_pixel10_to_6.txt").splitlines()[-5:]
    found = [chip({"ro.soc.manufacturer": "Google", "ro.soc.model": line.strip()}) for line in said]
    assert [each.model for each in found] == [f"Tensor{g}" for g in (" G5", " G4", " G3", " G2", "")]


@pytest.mark.parametrize(
    ("name", "market_name"),
    [
        ("oneplus_nord2_mt6893_a11", "OnePlus Nord2 5G"),
        ("oneplus_nord3_mt6983_a13", "OnePlus Nord 3 5G"),
        ("poco_f6_sm8635_a15", "POCO F6"),
        ("poco_x5pro_sm7325_a12", "POCO X5 Pro 5G"),
        ("redmi_note14_5g_mt6855_a15", "Redmi Note 14 5G"),
        # Where others have their name, it says its model again.
        ("oneplus_n100_sm4250_a10", "OnePlus Nord N100"),
        ("oneplus7t_sm8150p_a10", "OnePlus 7T"),
        ("pixel8_tensor_g3_a14", None),
    ],
)
def test_a_dump_says_what_its_phone_is_sold_as(name: str, market_name: str | None) -> None:
    assert facts.market_name(properties(read(f"getprop/getprop_{name}.txt"))) == market_name


@pytest.mark.parametrize(
    ("name", "cores", "hardware"),
    [
        ("dimensity_1200_nord2", ["Cortex-A55"] * 4 + ["Cortex-A78"] * 4, "MT6893Z_A/CZA"),
        ("exynos_2200", ["Cortex-A510"] * 4 + ["Cortex-A710"] * 3 + ["Cortex-X2"], None),
        ("galaxy_a8_exynos7885_arm64", ["Cortex-A53"] * 6 + ["Cortex-A73"] * 2, None),
        ("galaxy_j1_2016_sc8830", ["Cortex-A7"] * 4, "sc8830"),
        ("galaxy_s8_exynos8895_arm64", ["Cortex-A53"] * 4 + ["Exynos M1/M2"] * 4, None),
        (
            "galaxy_s9us_sdm845_arm64",
            ["Kryo 3xx Silver"] * 4 + ["Kryo 3xx Gold"] * 4,
            "Qualcomm Technologies, Inc SDM845",
        ),
        ("helio_g85", ["Cortex-A55"] * 6 + ["Cortex-A75"] * 2, None),
        ("kirin_9000s", ["Cortex-A510"] * 4 + ["0x48:0xd42"] * 3 + ["TaiShan v120"], None),
        ("oppo_r15_mt6771_arm32", ["Cortex-A53"] * 4 + ["Cortex-A73"] * 4, "MT6771V/C"),
        ("p20pro_kirin970_arm32", ["Cortex-A53"] * 4 + ["Cortex-A73"] * 4, None),
        ("p20pro_kirin970_arm64", ["Cortex-A53"] * 4 + ["Cortex-A73"] * 4, None),
        (
            "pixel2xl_msm8998",
            ["Kryo 2xx Silver"] * 4 + ["Kryo 2xx Gold"] * 4,
            "Qualcomm Technologies, Inc MSM8998",
        ),
        ("pixel8_tensor_g3", ["Cortex-A510"] * 4 + ["Cortex-A715"] * 4 + ["Cortex-X3"], None),
        (
            "snapdragon_888plus",
            ["Cortex-A55"] * 4 + ["Cortex-A78"] * 3 + ["Cortex-X1"],
            "Qualcomm Technologies, Inc SM8350",
        ),
        ("snapdragon_8_elite", ["Oryon"] * 8, None),
        ("tensor_g1", ["Cortex-A55"] * 4 + ["Cortex-A76"] * 2 + ["Cortex-X1"] * 2, None),
        ("unisoc_9230", ["Cortex-A55"] * 6 + ["Cortex-A75"] * 2, None),
    ],
)
def test_a_cpuinfo_names_its_cores(name: str, cores: list[str], hardware: str | None) -> None:
    text = read(f"device-state/cpuinfo_{name}.txt")
    assert list(core_by_number(text).values()) == cores
    assert hardware_line(text) == hardware


def test_files_of_sysfs_have_the_clusters_of_their_phone() -> None:
    found = clusters(read("device-state/cpufreq_mate20_kirin980.txt"), "")
    assert [each.cores for each in found] == [(0, 1, 2, 3), (4, 5), (6, 7)]
    assert (found[0].min_hz, found[0].max_hz) == (830_000_000, 1_805_000_000)


@pytest.mark.parametrize(
    ("name", "vendor", "renderer", "driver"),
    [
        ("adreno730", "Qualcomm", "Adreno (TM) 730", "V@0615.60"),
        ("adreno750", "Qualcomm", "Adreno (TM) 750", "V@0762.10"),
        ("mate20_mali_g76", "ARM", "Mali-G76", "r18p0-01rel0"),
    ],
)
def test_a_gles_line_names_gpu_and_driver(name: str, vendor: str, renderer: str, driver: str) -> None:
    found = gpu(read(f"device-state/surfaceflinger_gles_{name}.txt"), "")
    assert found is not None
    assert (found.vendor, found.renderer, found.driver) == (vendor, renderer, driver)


def test_services_that_are_listed_are_drivers_that_run() -> None:
    found = nnapi_drivers(service_list=read("accelerator/service_list_galaxy_tab_s10plus_mtk_shims.txt"))
    assert [(each.name, each.running) for each in found] == [
        ("mtk-dsp_shim", True),
        ("mtk-mdla_shim", True),
        ("mtk-neuron_shim", True),
    ]


def test_phones_without_nnapi_drivers_have_none() -> None:
    assert (
        nnapi_drivers(service_list=read("accelerator/service_list_galaxy_tab_s10fe_enn_no_nnapi.txt")) == ()
    )
    assert nnapi_drivers(lshal=read("accelerator/lshal_no_neuralnetworks_honor_x8.txt")) == ()


def test_a_manifest_declares_a_driver_that_its_service_runs() -> None:
    known = properties(read("accelerator/getprop_nnapi_props_pixel8pro_darwinn.txt"))
    manifest = read("accelerator/vintf_manifest_pixel8pro_neuralnetworks_darwinn.xml")
    assert nnapi_drivers(vintf=manifest, properties=known) == (
        NnapiDriver(name="google-edgetpu", version="4", running=True),
    )
    assert nnapi_feature_level(known) == "7"


@pytest.mark.parametrize(
    ("name", "driver"),
    [
        ("pixel8pro_darwinn", "hal_neuralnetworks_darwinn"),
        ("sm8150p_hidl", "neuralnetworks_hal_service"),
        ("sm8475_shim_qti", "neuralnetworks_hal_service_shim_qti"),
    ],
)
def test_a_phone_that_only_starts_a_driver_names_its_service(name: str, driver: str) -> None:
    known = properties(read(f"accelerator/getprop_nnapi_props_{name}.txt"))
    assert nnapi_drivers(properties=known) == (NnapiDriver(name=driver, running=True),)


def test_storage_has_its_size_in_every_form_of_df() -> None:
    assert storage_size_bytes(read("device-state/df_quest2_data.txt")) == 242680204 * 1024
    assert storage_size_bytes(read("device-state/df_h_full_99pct_a11.txt")) == 110 * 1024**3
    assert storage_size_bytes(read("device-state/df_h_android7_magisk.txt")) == int(3.8 * 1024**3)


def test_a_whole_phone_says_where_its_facts_came_from() -> None:
    found = device_facts(
        {
            "getprop": read("getprop/getprop_poco_f6_sm8635_a15.txt"),
            "gles": read("device-state/surfaceflinger_gles_adreno750.txt"),
            "cpuinfo": read("device-state/cpuinfo_tensor_g1.txt"),
            "work_root": "/data/local/tmp",
        },
        "serial",
    )
    assert found.sources["soc"] == "ro.soc.model"
    assert found.sources["market_name"] == "ro.product.marketname"
    assert found.sources["gpu"] == "dumpsys SurfaceFlinger"
    assert found.sources["clusters"] == "/proc/cpuinfo"
    assert found.security_patch == "2025-04-05"
    assert "storage_bytes" not in found.sources
