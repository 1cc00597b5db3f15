"""Chips of phones: their makers, and which chip a platform's code name means.

From makers' device trees; where several chips share a code name, no chip is named.
"""

from collections.abc import Mapping
from types import MappingProxyType

#: What begins that which makers call themselves, in ro.soc.manufacturer and elsewhere, in lower case.
VENDORS: Mapping[str, str] = MappingProxyType(
    {
        "qti": "Qualcomm",
        "qualcomm": "Qualcomm",
        "qcom": "Qualcomm",
        "mediatek": "MediaTek",
        "mtk": "MediaTek",
        "samsung": "Samsung",
        "slsi": "Samsung",
        "google": "Google",
        "hisilicon": "HiSilicon",
        "huawei": "HiSilicon",
        "kirin": "HiSilicon",
        "spreadtrum": "Unisoc",
        "sprd": "Unisoc",
        "unisoc": "Unisoc",
        "xiaomi": "Xiaomi",
        "xring": "Xiaomi",
        "intel": "Intel",
        "nvidia": "NVIDIA",
        "rockchip": "Rockchip",
        "allwinner": "Allwinner",
        "leadcore": "Leadcore",
        "mrvl": "Marvell",
        "marvell": "Marvell",
        "amlogic": "Amlogic",
    }
)

#: Chips by the code name of their platform, in lower case: only where the name means one chip.
CHIP_BY_PLATFORM: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "msmnile": ("Qualcomm", "SM8150"),
        "kona": ("Qualcomm", "SM8250"),
        "kalama": ("Qualcomm", "SM8550"),
        "sdmmagpie": ("Qualcomm", "SM7150"),
        "sdmmagpiep": ("Qualcomm", "SM7150"),
        "trinket": ("Qualcomm", "SM6125"),
        "atoll": ("Qualcomm", "SM7125"),
        "atoll-ab": ("Qualcomm", "SM7125"),
        "khaje": ("Qualcomm", "SM6225"),
        "shima": ("Qualcomm", "SM7350"),
        "waipio": ("Qualcomm", "SM8450"),
        "cape": ("Qualcomm", "SM8475"),
        "diwali": ("Qualcomm", "SM7450"),
        "ukee": ("Qualcomm", "SM7475"),
        "ravelin": ("Qualcomm", "SM4450"),
        "pitti": ("Qualcomm", "SM4635"),
        "gs101": ("Google", "Tensor"),
        "gs201": ("Google", "Tensor G2"),
        "zuma": ("Google", "Tensor G3"),
        "zumapro": ("Google", "Tensor G4"),
        "laguna": ("Google", "Tensor G5"),
        "song": ("Xiaomi", "Surge S1"),
        "hi6210sft": ("HiSilicon", "Kirin 620"),
        "sofia3gr": ("Intel", "Atom x3-C3230RK"),
    }
)
#: Platforms that several chips share, though some are called after one of them: only the maker follows.
#: With the chips we know of.
FAMILY_BY_PLATFORM: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "lahaina": ("Qualcomm", "SM8350, SM7325, SM7350"),
        "yupik": ("Qualcomm", "SM7325, QCM6490"),
        "taro": ("Qualcomm", "SM8450, SM8475, SM7450, SM7475"),
        "pineapple": ("Qualcomm", "SM8650, SM8635, SM7675"),
        "cliffs": ("Qualcomm", "SM8635, SM7675"),
        "bengal": ("Qualcomm", "SM4250, SM6115, SM6225"),
        "holi": ("Qualcomm", "SM4350, SM4375, SM6375"),
        "blair": ("Qualcomm", "SM6375, SM4375"),
        "lito": ("Qualcomm", "SM7250, SM7225, SM6350"),
        "lagoon": ("Qualcomm", "SM6350, SM7225"),
        "parrot": ("Qualcomm", "SM4450, SM6450, SM6475, SM7435"),
        "crow": ("Qualcomm", "SM7550 and its kin"),
        "sun": ("Qualcomm", "SM8750, SM8735"),
        "canoe": ("Qualcomm", "SM8850, SM8845"),
        "volcano": ("Qualcomm", "SM7635, SM6650"),
        "tuna": ("Qualcomm", "SM8735, SM7750"),
        "sm6150": ("Qualcomm", "SM6150, SM7150"),
        "msm8226": ("Qualcomm", "MSM8226, MSM8926, APQ8026"),
        "msm8610": ("Qualcomm", "MSM8210, MSM8212, MSM8610"),
        "msm8660": ("Qualcomm", "MSM8260, MSM8660, APQ8060"),
        "msm8960": ("Qualcomm", "MSM8930, MSM8960, APQ8064"),
        "msm8909": ("Qualcomm", "MSM8905, MSM8909"),
        "msm8916": ("Qualcomm", "MSM8916, MSM8929, MSM8939"),
        "msm8937": ("Qualcomm", "MSM8917, MSM8920, MSM8937, MSM8940, SDM429, SDM439"),
        "msm8952": ("Qualcomm", "MSM8952, MSM8956, MSM8976"),
        "msm8953": ("Qualcomm", "MSM8953, SDM450, SDM632"),
        "sdm660": ("Qualcomm", "SDM630, SDM636, SDM660"),
        "sdm670": ("Qualcomm", "SDM670, SDM710"),
        "sdm710": ("Qualcomm", "SDM670, SDM710, SDM712"),
        "mt6735": ("MediaTek", "MT6735, MT6737"),
        "mt6750": ("MediaTek", "MT6738, MT6750"),
        "mt6755": ("MediaTek", "MT6738, MT6750, MT6755"),
        "mt6765": ("MediaTek", "MT6762, MT6765"),
        "mt6768": ("MediaTek", "MT6768, MT6769"),
        "mt6873": ("MediaTek", "MT6873, MT6875"),
        "mt6885": ("MediaTek", "MT6883, MT6885, MT6889"),
        "mt6893": ("MediaTek", "MT6891, MT6893"),
        "mt6895": ("MediaTek", "MT6895, MT6896"),
        "sc8830": ("Unisoc", "SC7727, SC7730, SC8830, SC9830"),
        "scx15": ("Unisoc", "SC7715, SC8815"),
        "hi6620oem": ("HiSilicon", "Kirin 910, 910T"),
        "hi36a0": ("HiSilicon", "Kirin 9000, 9000S and later"),
        "exynos9610": ("Samsung", "Exynos 9609, 9610, 9611"),
        "exynos5": ("Samsung", "Exynos to the 9810"),
        "exynos4": ("Samsung", "Exynos 4"),
        "exynos3": ("Samsung", "Exynos 3"),
        "moorefield": ("Intel", "Atom Z3500"),
        "merrifield": ("Intel", "Atom Z3400"),
        "bytrail": ("Intel", "Atom Z3700"),
        "baytrail": ("Intel", "Atom Z3700"),
        "cherrytrail": ("Intel", "Atom x5, x7"),
        "clovertrail": ("Intel", "Atom Z2500"),
    }
)
