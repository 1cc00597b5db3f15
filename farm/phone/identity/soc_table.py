"""Makers of chips, the chips of platforms' code names, and the market names of chips.

From makers' device trees and product pages. The tables are text: a semicolon or a line end separates the
entries, and each entry is a key and its value.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType


def entries(table: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of a table, each with its value."""
    for entry in filter(str.strip, table.replace("\n", ";").split(";")):
        key, value = entry.strip().split(maxsplit=1)
        yield key, value


def _by_platform(tables: Mapping[str, str]) -> Mapping[str, tuple[str, str]]:
    """Return vendor and value by code name."""
    rows = ((name, (vendor, value)) for vendor, table in tables.items() for name, value in entries(table))
    return MappingProxyType(dict(rows))


#: By the prefix of makers' own names, in ro.soc.manufacturer and elsewhere, in lower case.
_PREFIXES_BY_VENDOR = {
    "Qualcomm": "qti qualcomm qcom",
    "MediaTek": "mediatek mtk",
    "Samsung": "samsung slsi",
    "Google": "google",
    "HiSilicon": "hisilicon huawei kirin",
    "Unisoc": "spreadtrum sprd unisoc",
    "Xiaomi": "xiaomi xring",
    "Intel": "intel",
    "NVIDIA": "nvidia",
    "Rockchip": "rockchip rk2 rk3",
    "Allwinner": "allwinner sun4i sun5i sun6i sun7i sun8i sun9i sun50i",
    "Leadcore": "leadcore",
    "Marvell": "mrvl marvell",
    "Amlogic": "amlogic meson",
    "Actions": "actions atm70 gs70",
    "Telechips": "telechips tcc8",
}
VENDORS: Mapping[str, str] = MappingProxyType(
    {prefix: vendor for vendor, prefixes in _PREFIXES_BY_VENDOR.items() for prefix in prefixes.split()}
)

#: Chips by the code name of their platform, in lower case: only where the name means one chip.
CHIP_BY_PLATFORM = _by_platform(
    {
        "Qualcomm": """
        msmnile SM8150; kona SM8250; kalama SM8550; sdmmagpie SM7150; sdmmagpiep SM7150; trinket SM6125
        atoll SM7125; atoll-ab SM7125; khaje SM6225; shima SM7350; waipio SM8450; cape SM8475; diwali SM7450
        ukee SM7475; ravelin SM4450; pitti SM4635
        """,
        "Google": """
        gs101 Tensor; gs201 Tensor G2; zuma Tensor G3; zumapro Tensor G4; laguna Tensor G5; malibu Tensor G6
        """,
        "Xiaomi": "song Surge S1; o1_asic XRING O1",
        "HiSilicon": "hi6210sft Kirin 620; k3v200 K3V2; k3v2oem1 K3V2",
        "Amlogic": "gxm S912",
        "Intel": "sofia3gr Atom x3-C3230RK",
    }
)
#: Platforms that several chips share, though some have the name of one of them: only the maker follows. With
#: the known chips.
FAMILY_BY_PLATFORM = _by_platform(
    {
        "Qualcomm": """
        lahaina SM8350, SM7325, SM7350; yupik SM7325, QCM6490; taro SM8450, SM8475, SM7450, SM7475
        pineapple SM8650, SM8635, SM7675; cliffs SM8635, SM7675; bengal SM4250, SM6115, SM6225
        holi SM4350, SM4375, SM6375; blair SM6375, SM4375; lito SM7250, SM7225, SM6350; lagoon SM6350, SM7225
        parrot SM4450, SM6450, SM6475, SM7435; crow SM7550 and its kin; sun SM8750, SM8735
        canoe SM8850, SM8845
        volcano SM7635, SM6650; tuna SM8735, SM7750; kera SM7750 and its kin; sm6150 SM6150, SM7150
        msm8226 MSM8226, MSM8926, APQ8026; msm8610 MSM8210, MSM8212, MSM8610
        msm8660 MSM8260, MSM8660, APQ8060; msm8960 MSM8930, MSM8960, APQ8064; msm8909 MSM8905, MSM8909
        msm8916 MSM8916, MSM8929, MSM8939; msm8937 MSM8917, MSM8920, MSM8937, MSM8940, SDM429, SDM439
        msm8952 MSM8952, MSM8956, MSM8976; msm8953 MSM8953, SDM450, SDM632; sdm660 SDM630, SDM636, SDM660
        sdm670 SDM670, SDM710
        sdm710 SDM670, SDM710, SDM712
        """,
        "MediaTek": """
        mt6735 MT6735, MT6737; mt6750 MT6738, MT6750; mt6752 MT6732, MT6752; mt6755 MT6738, MT6750, MT6755
        mt6765 MT6762, MT6765; mt6768 MT6768, MT6769; mt6873 MT6873, MT6875; mt6885 MT6883, MT6885, MT6889
        mt6893 MT6891, MT6893; mt6895 MT6895, MT6896
        """,
        "Unisoc": "sc8830 SC7727, SC7730, SC8830, SC9830; scx15 SC7715, SC8815; ums9621 UMS9158, UMS9621",
        "HiSilicon": "hi6620oem Kirin 910, 910T; hi36a0 Kirin 9000, 9000S and later",
        "Samsung": """
        exynos9610 Exynos 9609, 9610, 9611; exynos5 Exynos to the 9810; exynos4 Exynos 4
        smdk4x12 Exynos 4212, 4412; exynos3 Exynos 3
        """,
        "Texas Instruments": "omap3 OMAP3; omap4 OMAP4430, OMAP4460, OMAP4470",
        "Broadcom": """
        rhea BCM21654, BCM21654G; hawaii BCM21663, BCM21664; java BCM23550; capri BCM28145, BCM28155
        """,
        "ST-Ericsson": "montblanc NovaThor U8500, U8520",
        "Amlogic": """
        gxbaby S905, S905H; gxl S905D, S905W, S905X; g12a S905D2, S905X2, S905Y2; g12b A311D, S922X
        sm1 S905D3, S905X3
        """,
        "Intel": """
        moorefield Atom Z3500; merrifield Atom Z3400; bytrail Atom Z3700; baytrail Atom Z3700
        cherrytrail Atom x5, x7; clovertrail Atom Z2500
        """,
    }
)

#: Part numbers, each with the names that it is sold under, by the words that these names begin with.
_NAMES_BY_PREFIX = {
    # Qualcomm's part numbers without the speed bin (`SM8550-AB`); some have several market names.
    "Snapdragon ": """
        APQ8084 805; MSM8226 400; MSM8905 205; MSM8909 210/212; MSM8909W Wear 2100/3100; MSM8916 410/412
        MSM8917 425; MSM8920 427; MSM8926 400; MSM8929 415; MSM8936 610; MSM8937 430; MSM8939 615/616
        MSM8940 435; MSM8952 617; MSM8953 625/626; MSM8956 650; MSM8974 800/801; MSM8976 652/653; MSM8992 808
        MSM8994 810; MSM8996 820/821; MSM8998 835
        QM215 215; SDM429 429; SDM429W Wear 4100; SDM439 439; SDM450 450
        SDM630 630; SDM632 632; SDM636 636; SDM660 660; SDM670 670; SDM710 710; SDM712 712; SDM845 845
        SM4250 460; SM4350 480/480+; SM4375 4 Gen 1; SM4450 4 Gen 2; SM4635 4s Gen 2; SM4850 4 Gen 5
        SM6115 662/6s 4G Gen 1; SM6125 665; SM6150 675/678; SM6225 680/685; SM6350 690; SM6375 695/6s Gen 3
        SM6435 6s Gen 4; SM6450 6 Gen 1; SM6475 6 Gen 3; SM6650 6 Gen 4; SM6850 6 Gen 5
        SM7125 720G; SM7150 730/730G/732G; SM7225 750G; SM7250 765/765G/768G; SM7315 778G
        SM7325 778G/778G+/782G; SM7350 780G; SM7435 7s Gen 2; SM7450 7 Gen 1; SM7475 7+ Gen 2; SM7550 7 Gen 3
        SM7635 7s Gen 3/7s Gen 4; SM7675 7+ Gen 3; SM7750 7 Gen 4
        SM8150 855/855+/860; SM8250 865/865+/870; SM8350 888/888+; SM8425 8+ Gen 1; SM8450 8 Gen 1
        SM8475 8+ Gen 1; SM8550 8 Gen 2; SM8635 8s Gen 3; SM8650 8 Gen 3; SM8735 8s Gen 4; SM8750 8 Elite
        SM8845 8 Gen 5; SM8850 8 Elite Gen 5; SM8950 8 Elite Gen 6; SM8975 8 Elite Extreme Gen 6
        SG8275 G3x Gen 2; SW5100 W5/W5+ Gen 1; SXR2130 XR2; SXR2230 XR2 Gen 2
    """,
    # MediaTek's part numbers without package and bin (`MT6781V/CDZAMB-H`).
    "Helio ": """
        MT6755 P10/P15/P18; MT6757 P20/P25; MT6758 P30; MT6761 A20/A22; MT6762 P22/A25/G25; MT6763 P23
        MT6765 P35/G35/G36/G37/G50; MT6768 P65/G70/G80/G81/G85/G88/G91/G92; MT6769 G70/G80/G81/G85/G88/G91/G92
        MT6771 P60/P70; MT6779 P90/P95; MT6781 G96; MT6785 G90/G95; MT6789 G99/G100/G200; MT6795 X10
        MT6797 X20/X23/X25/X27; MT6799 X30; MT8781 G99
    """,
    "Dimensity ": """
        MT6833 700/810/6020/6080; MT6835 6100+/6300/6400; MT6853 720/800U; MT6855 930/7020/7025/7060
        MT6858 7100; MT6873 800; MT6875 820; MT6877 900/920/1080/7050; MT6878 7300/7360/7400; MT6879 1050/7030
        MT6883 1000C; MT6885 1000/1000L/1000+; MT6886 7200/7350; MT6889 1000/1000+; MT6891 1100/8020
        MT6893 1200/1300/8050; MT6895 8000/8100; MT6896 8200/8250; MT6897 8300/8350
        MT6899 8400/8450/8500/8550
        MT6983 9000/9000+; MT6985 9200/9200+; MT6989 9300/9300+/9400e; MT6991 9400/9400+/9500s; MT6993 9500
        MT6995 9600 Pro
    """,
    # Samsung's part numbers; older devices report `exynosNNNN`, some of which are sold under another number.
    "Exynos ": """
        S5E3830 850; S5E8535 1330; S5E8805 880; S5E8825 1280; S5E8835 1380; S5E8845 1480; S5E8855 1580
        S5E8865 1680; S5E9815 1080; S5E9830 990; S5E9840 2100; S5E9925 2200; S5E9945 2400/2400e
        S5E9955 2500; S5E9965 2600
        EXYNOS850 850; EXYNOS980 980; EXYNOS990 990; EXYNOS1080 1080; EXYNOS1280 1280; EXYNOS3830 850
        EXYNOS9630 880/980; EXYNOS9830 990; EXYNOS9840 2100
    """,
    "Kirin ": """
        HI3630 920/925; HI3635 930/935; HI3650 950/955; HI3660 960; HI3670 970; HI3680 980; HI3690 990
        HI6210 620; HI6250 650/655/658/659; HI6260 710; HI6280 810; HI6290 820/985
    """,
    "": """
        UD710 T710/T740/T7510; UMS312 T310; UMS512 T610/T618/T700; UMS9230 T606/T612/T615/T616/T7250
        UMS9620 T760/T770/T820
    """,
}
#: The market name of a part, by its number in upper case.
NAMES: Mapping[str, str] = MappingProxyType(
    {part: prefix + name for prefix, table in _NAMES_BY_PREFIX.items() for part, name in entries(table)}
)
