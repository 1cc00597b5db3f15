"""How many properties each dump beside the checkout has, and those that chips are told by."""

from pathlib import Path

import pytest

from farm.phone.identity import facts
from farm.phone.identity.properties import properties
from tests.phone.adb.capture_text import decode_output

CAPTURES = Path(__file__).parents[4] / "shared" / "captures" / "getprop"
pytestmark = pytest.mark.skipif(not CAPTURES.is_dir(), reason="no captures beside the checkout")
#: File, properties, values over several lines, platform, hardware, board, ABIs, what ro.soc.* say.
DUMPS = [
    ("galaxy_j1_2016_sc8830_a5", 363, 0, "sc8830", "sc8830", "SC7727SE", "armeabi-v7a,armeabi", None),
    ("galaxy_s25plus_sm8750_a16_utf16", 1257, 1, "sun", "qcom", "sun", "arm64-v8a", "QTI SM8750"),
    (
        "galaxy_s9_exynos9810_a8",
        590,
        0,
        "exynos5",
        "samsungexynos9810",
        "universal9810",
        "arm64-v8a,armeabi-v7a,armeabi",
        None,
    ),
    ("galaxy_s9us_sdm845_a8", 739, 0, "sdm845", "qcom", "sdm845", "arm64-v8a,armeabi-v7a,armeabi", None),
    (
        "infinix_x670_mt6781_a13",
        1137,
        1,
        "mt6781",
        "mt6781",
        "Infinix-X670",
        "arm64-v8a,armeabi-v7a,armeabi",
        "Mediatek MT6781V/CDZAMB-H",
    ),
    (
        "leagoo_t5c_sc9853i_x86_a7",
        417,
        2,
        "sp9853i",
        "k500_lgt_511",
        "k500_lgt_511_vmm",
        "x86_64,x86,armeabi-v7a,armeabi,arm64-v8a",
        None,
    ),
    (
        "meizu_pro7plus_mt6799_a7",
        673,
        1,
        "mt6799",
        "mt6799",
        "PRO7Plus",
        "arm64-v8a,armeabi-v7a,armeabi",
        None,
    ),
    ("mi5c_surge_s1_a7", 358, 0, "song", "song", None, "arm64-v8a,armeabi-v7a,armeabi", None),
    ("oneplus7t_sm8150p_a10", 684, 1, "msmnile", "qcom", "msmnile", "arm64-v8a,armeabi-v7a,armeabi", None),
    ("oneplus8pro_sm8250_a10", 558, 0, "kona", "qcom", "kona", "arm64-v8a,armeabi-v7a,armeabi", None),
    ("oneplus8t_sm8250_a11", 681, 1, "kona", "qcom", "kona", "arm64-v8a,armeabi-v7a,armeabi", None),
    ("oneplus_n100_sm4250_a10", 563, 0, "bengal", "qcom", "bengal", "arm64-v8a,armeabi-v7a,armeabi", None),
    ("oneplus_n200_sm4350_a11", 588, 0, "holi", "qcom", "holi", "arm64-v8a,armeabi-v7a,armeabi", None),
    (
        "oneplus_nord2_mt6893_a11",
        838,
        1,
        "mt6893",
        "mt6893",
        "oplus6893",
        "arm64-v8a,armeabi-v7a,armeabi",
        None,
    ),
    (
        "oneplus_nord3_mt6983_a13",
        1150,
        1,
        "mt6983",
        "mt6983",
        "k6983v1_64",
        "arm64-v8a,armeabi-v7a,armeabi",
        "Mediatek MT6983",
    ),
    (
        "oppo_r15_mt6771_a8",
        1015,
        0,
        "mt6771",
        "mt6771",
        "oppo6771_17197",
        "arm64-v8a,armeabi-v7a,armeabi",
        None,
    ),
    ("pixel10_tensor_g5_a16_six_lines", 6, 0, None, None, None, None, "Google Tensor G5"),
    ("pixel2xl_msm8998_a8", 453, 0, "msm8998", "taimen", "taimen", "arm64-v8a,armeabi-v7a,armeabi", None),
    ("pixel6pro_tensor_g1_a13_cut", 34, 0, None, None, None, None, "Google Tensor"),
    ("pixel8_tensor_g3_a14", 207, 0, "zuma", "shiba", "shiba", "arm64-v8a", None),
    ("pixel8pro_tensor_g3_a17_excerpt", 22, 0, None, None, None, None, None),
    ("poco_f6_sm8635_a15", 1067, 1, "pineapple", "qcom", "pineapple", "arm64-v8a", "QTI SM8635"),
    (
        "poco_x5pro_sm7325_a12",
        992,
        1,
        "lahaina",
        "qcom",
        "redwood",
        "arm64-v8a,armeabi-v7a,armeabi",
        "QTI SM7325",
    ),
    (
        "redmi_note14_5g_mt6855_a15",
        1236,
        1,
        "mt6855",
        "mt6855",
        "citrine",
        "arm64-v8a,armeabi-v7a,armeabi",
        "Mediatek MT6855",
    ),
]


@pytest.mark.parametrize(("name", "count", "long", "platform", "hardware", "board", "abis", "soc"), DUMPS)
def test_a_dump_has_as_many_properties_as_were_printed(
    name: str,
    count: int,
    long: int,
    platform: str | None,
    hardware: str | None,
    board: str | None,
    abis: str | None,
    soc: str | None,
) -> None:
    found = properties(decode_output((CAPTURES / f"getprop_{name}.txt").read_bytes()))
    assert (len(found), sum("\n" in value for value in found.values())) == (count, long)
    told = (found.get(f"ro.{key}") or None for key in ("board.platform", "hardware", "product.board"))
    assert tuple(told) == (platform, hardware, board)
    assert facts.abis(found) == tuple(abis.split(",") if abis else ())
    said = (found.get("ro.soc.manufacturer", ""), found.get("ro.soc.model", ""))
    assert " ".join(said).strip() == (soc or "")
