"""Which chip a phone has, by what invented phones of all makers say."""

import pytest

from farm.phone.identity.soc import Chip, chip, marketing_name


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"ro.soc.manufacturer": "Google", "ro.soc.model": "Tensor G5"}, "Google Tensor G5"),
        ({"ro.board.platform": "malibu", "ro.hardware": "grizzly"}, "Google Tensor G6"),
        ({"ro.soc.manufacturer": "Google", "ro.soc.model": "GS201"}, "Google Tensor G2"),
        ({"ro.soc.manufacturer": "Google", "ro.soc.model": "GS101"}, "Google Tensor"),
        (
            {"ro.soc.manufacturer": "QTI", "ro.soc.model": "SM8550-AB"},
            "Qualcomm SM8550-AB (Snapdragon 8 Gen 2)",
        ),
        ({"ro.soc.manufacturer": "Samsung", "ro.soc.model": "s5e9955"}, "Samsung s5e9955 (Exynos 2500)"),
        (
            {"ro.soc.manufacturer": "Mediatek", "ro.soc.model": "MT6991Z/TCZA"},
            "MediaTek MT6991Z/TCZA (Dimensity 9400/9400+/9500s)",
        ),
        ({"ro.soc.manufacturer": "Acme", "ro.soc.model": "Fast 1"}, "Acme Fast 1"),
        ({"ro.soc.model": "SM8650"}, "Qualcomm SM8650 (Snapdragon 8 Gen 3)"),
        ({"ro.chipname": "exynos8890", "ro.board.platform": "exynos5"}, "Samsung exynos8890"),
        ({"ro.board.platform": "exynos5", "ro.hardware": "samsungexynos7885"}, "Samsung exynos7885"),
        ({"ro.board.platform": "exynos5", "ro.product.board": "universal9810"}, "Samsung exynos9810"),
        ({"ro.board.platform": "exynos5", "ro.product.board": "universal9610"}, "Samsung exynos9610"),
        ({"ro.board.platform": "universal9830_r", "ro.hardware": "exynos990"}, "Samsung exynos990"),
        ({"ro.board.platform": "universal9830_r"}, "Samsung exynos9830 (Exynos 990)"),
        ({"ro.board.platform": "exynos9630"}, "Samsung exynos9630 (Exynos 880/980)"),
        ({"ro.board.platform": "zumapro", "ro.hardware": "tokay"}, "Google Tensor G4"),
        ({"ro.boot.hardware.platform": "gs201", "ro.hardware": "panther"}, "Google Tensor G2"),
        ({"ro.board.platform": "kirin990"}, "HiSilicon Kirin 990"),
        ({"ro.board.platform": "hi3660", "ro.hardware": "hi3660"}, "HiSilicon HI3660 (Kirin 960)"),
        ({"ro.hardware": "mt6785"}, "MediaTek MT6785 (Helio G90/G95)"),
        ({"ro.mediatek.platform": "MT6763", "ro.board.platform": "acme"}, "MediaTek MT6763 (Helio P23)"),
        ({"ro.board.platform": "ums512", "ro.hardware": "ums512_1h10"}, "Unisoc UMS512 (T610/T618/T700)"),
        ({"ro.board.platform": "sp9863a"}, "Unisoc SC9863A"),
        ({"ro.board.platform": "song"}, "Xiaomi Surge S1"),
        ({"ro.board.platform": "moorefield"}, "Intel moorefield"),
        ({"ro.board.platform": "bengal", "ro.hardware": "qcom"}, "Qualcomm bengal"),
        ({"ro.board.platform": "newname", "ro.hardware": "qcom"}, "Qualcomm newname"),
        ({"ro.board.platform": "newname", "ro.hardware": "codename"}, "newname"),
        ({"ro.hardware": "qcom"}, "Qualcomm"),
        (
            {"ro.soc.manufacturer": "", "ro.soc.model": "", "ro.board.platform": "kalama"},
            "Qualcomm SM8550 (Snapdragon 8 Gen 2)",
        ),
    ],
)
def test_a_chip_is_named_by_the_best_there_is(said: dict[str, str], text: str) -> None:
    assert chip(said).text == text


def test_a_name_that_several_chips_share_names_none_of_them() -> None:
    found = chip({"ro.board.platform": "lahaina", "ro.hardware": "qcom"})
    assert (found.vendor, found.model, found.platform) == ("Qualcomm", None, "lahaina")
    assert "SM8350, SM7325" in (found.source or "")


def test_the_kernel_names_the_chip_where_the_platform_could_be_several() -> None:
    said = {"ro.board.platform": "lahaina", "ro.hardware": "qcom"}
    assert chip(said, hardware="Qualcomm Technologies, Inc SM7325").model == "SM7325"
    assert chip(said, machine="SM8350\n").source == "/sys/devices/soc0/machine"


def test_the_source_is_the_property_that_was_believed() -> None:
    assert chip({"ro.chipname": "SDM670", "ro.board.platform": "sdm670"}).source == "ro.chipname"
    assert chip({"ro.board.platform": "zuma"}).source == "ro.board.platform, zuma"


def test_a_phone_that_says_nothing_has_no_chip() -> None:
    assert chip({}) == Chip()
    assert chip({}).text is None


@pytest.mark.parametrize(
    ("part", "name"),
    [("SM8750P", "Snapdragon 8 Elite"), ("MT6893Z_A/CZA", "Dimensity 1200/1300/8050"), ("sm99999", None)],
)
def test_a_part_is_sold_under_its_name_whatever_the_bin(part: str, name: str | None) -> None:
    assert marketing_name(part) == name


@pytest.mark.parametrize(
    "platform", ["sm6150", "msm8937", "msm8952", "msm8953", "sdm660", "sdm710", "sun", "canoe"]
)
def test_a_platform_that_is_called_after_one_of_its_chips_names_none_of_them(platform: str) -> None:
    found = chip({"ro.board.platform": platform, "ro.product.board": platform, "ro.hardware": "qcom"})
    assert (found.vendor, found.model, found.name, found.platform) == ("Qualcomm", None, None, platform)


@pytest.mark.parametrize("board", ["msm8937_32", "msm8953_64", "sdm660_64", "mt6735_64_go", "ums9621_2h10"])
def test_what_stands_behind_such_a_platform_makes_it_no_part(board: str) -> None:
    platform = board.partition("_")[0]
    found = chip({"ro.board.platform": platform, "ro.product.board": board, "ro.hardware": board})
    assert (found.model, found.name, found.platform) == (None, None, platform)


def test_a_board_of_another_number_names_its_part() -> None:
    assert chip({"ro.board.platform": "ums9621", "ro.product.board": "ums9158_2h10"}).model == "UMS9158"


@pytest.mark.parametrize(
    ("name", "value", "platform", "text"),
    [
        ("ro.product.oplus.cpuinfo", "SM7250", "lito", "Qualcomm SM7250 (Snapdragon 765/765G/768G)"),
        ("ro.product.oplus.cpuinfo", "Snapdragon 765G", "lito", "Qualcomm lito"),
        ("ro.product.cpuinfo", "MT6765", "mt6765", "MediaTek MT6765 (Helio P35/G35/G36/G37/G50)"),
        ("ro.config.cpu_info_display", "HUAWEI Kirin 9010", "kirin", "HiSilicon Kirin 9010"),
        ("ro.boot.auto.efuse", "T618", "ums512", "Unisoc T618"),
        ("ro.boot.auto.efuse", "-1", "ums512", "Unisoc UMS512 (T610/T618/T700)"),
    ],
)
def test_what_a_phone_shows_in_its_settings_tells_chips_of_a_platform_apart(
    name: str, value: str, platform: str, text: str
) -> None:
    assert chip({"ro.board.platform": platform, name: value}).text == text


def test_what_names_the_part_itself_is_believed_where_the_platform_is_not() -> None:
    platform = {"ro.board.platform": "sdm660", "ro.hardware": "qcom"}
    assert chip({**platform, "ro.chipname": "SDM660"}).model == "SDM660"
    assert chip(platform, machine="SDM636").model == "SDM636"
    assert chip(platform, hardware="Qualcomm Technologies, Inc SDM660").model == "SDM660"


def test_the_kernel_goes_before_the_platform_that_mediatek_names() -> None:
    said = {"ro.mediatek.platform": "MT6765", "ro.board.platform": "mt6765"}
    assert chip(said, hardware="MT6762V/WB").model == "MT6762V/WB"
    assert (chip(said).model, chip(said).platform) == (None, "mt6765")


@pytest.mark.parametrize("nothing", ["unknown", "Unknown", "N/A", "0", "none"])
def test_a_placeholder_names_no_chip(nothing: str) -> None:
    said = {"ro.soc.model": nothing, "ro.soc.manufacturer": nothing, "ro.board.platform": "mt6789"}
    assert chip(said).model == "MT6789"
    assert chip({"ro.soc.model": nothing}) == Chip()


def test_a_watch_is_not_sold_as_the_phone_that_has_its_number() -> None:
    assert marketing_name("MSM8909W") == "Snapdragon Wear 2100/3100"
    assert marketing_name("SDM429W") == "Snapdragon Wear 4100"


@pytest.mark.parametrize(
    ("hardware", "model", "platform"),
    [
        ("TRINKET", "SM6125", None),
        ("SDMMAGPIE", "SM7150", None),
        ("ATOLL-AB", "SM7125", None),
        ("KHAJE", "SM6225", None),
        ("LAGOON", None, "lagoon"),
        ("BENGAL", None, "bengal"),
        ("LITO", None, "lito"),
        ("NEWNAME", None, None),
    ],
)
def test_a_kernel_of_qualcomms_may_say_a_code_name(
    hardware: str, model: str | None, platform: str | None
) -> None:
    found = chip({}, hardware=f"Qualcomm Technologies, Inc {hardware}")
    assert (found.vendor, found.model, found.platform) == ("Qualcomm", model, platform)


def test_what_an_image_for_several_platforms_found_out_goes_before_its_own_name() -> None:
    said = {"ro.board.platform": "taro", "ro.vendor.qti.soc_name": "diwali", "ro.hardware": "qcom"}
    assert chip(said).text == "Qualcomm SM7450 (Snapdragon 7 Gen 1)"


@pytest.mark.parametrize(
    "platform",
    [
        "exynos9610",
        "msm8960",
        "mt6735",
        "mt6750",
        "mt6755",
        "mt6765",
        "mt6768",
        "mt6873",
        "mt6885",
        "mt6893",
        "mt6895",
        "hi36a0",
    ],
)
def test_a_platform_of_several_parts_is_none_of_them(platform: str) -> None:
    said = {"ro.board.platform": platform, "ro.hardware": platform, "ro.mediatek.platform": platform.upper()}
    assert (chip(said).model, chip(said).name, chip(said).platform) == (None, None, platform)


@pytest.mark.parametrize(
    ("cut", "vendor"),
    [
        ("Qualcomm Technologies, Inc SM83", "Qualcomm"),
        ("Qualcomm Technologies, Inc SM835", "Qualcomm"),
        ("Qualcomm Technologies, Inc MSM899", "Qualcomm"),
        ("MT677", None),
        ("exynos98", None),
        ("exynos982", None),
    ],
)
def test_a_part_number_that_lacks_a_digit_is_no_part(cut: str, vendor: str | None) -> None:
    assert (chip({}, hardware=cut).model, chip({}, hardware=cut).vendor) == (None, vendor)


@pytest.mark.parametrize(
    ("maker", "vendor"),
    [
        ("QTI", "Qualcomm"),
        ("Qualcomm Technologies, Inc.", "Qualcomm"),
        ("Mediatek Inc.", "MediaTek"),
        ("Samsung Electronics", "Samsung"),
        ("Spreadtrum Communications", "Unisoc"),
        ("Acme", "Acme"),
    ],
)
def test_a_maker_is_one_maker_however_it_calls_itself(maker: str, vendor: str) -> None:
    assert chip({"ro.soc.manufacturer": maker, "ro.soc.model": "X7"}).vendor == vendor


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"ro.soc.manufacturer": "QTI", "ro.soc.model": "SM7635"}, "Snapdragon 7s Gen 3/7s Gen 4"),
        ({"ro.soc.manufacturer": "QTI", "ro.soc.model": "SM4635"}, "Snapdragon 4s Gen 2"),
        ({"ro.soc.manufacturer": "QTI", "ro.soc.model": "SM8850"}, "Snapdragon 8 Elite Gen 5"),
        ({"ro.soc.manufacturer": "QTI", "ro.soc.model": "SM8975"}, "Snapdragon 8 Elite Extreme Gen 6"),
        ({"ro.soc.manufacturer": "QTI", "ro.soc.model": "SXR2230P"}, "Snapdragon XR2 Gen 2"),
        ({"ro.soc.manufacturer": "Samsung", "ro.soc.model": "s5e8865"}, "Exynos 1680"),
        ({"ro.soc.manufacturer": "Samsung", "ro.soc.model": "s5e9965"}, "Exynos 2600"),
        ({"ro.soc.manufacturer": "Mediatek", "ro.soc.model": "MT6858"}, "Dimensity 7100"),
        ({"ro.soc.manufacturer": "Mediatek", "ro.soc.model": "MT6993"}, "Dimensity 9500"),
        ({"ro.soc.manufacturer": "Mediatek", "ro.soc.model": "MT6995"}, "Dimensity 9600 Pro"),
        ({"ro.soc.manufacturer": "Mediatek", "ro.soc.model": "MT6886V/TCZA"}, "Dimensity 7200/7350"),
        ({"ro.soc.manufacturer": "Mediatek", "ro.soc.model": "MT6878V/ZA"}, "Dimensity 7300/7360/7400"),
        ({"ro.board.platform": "hi3680"}, "Kirin 980"),
        ({"ro.hardware": "hi6260"}, "Kirin 710"),
        ({"ro.board.platform": "ud710"}, "T710/T740/T7510"),
    ],
)
def test_a_chip_has_the_name_it_is_sold_under(said: dict[str, str], text: str) -> None:
    assert chip(said).name == text


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"ro.board.platform": "kirin9000s"}, "HiSilicon Kirin 9000S"),
        ({"ro.hardware": "hi6210sft"}, "HiSilicon Kirin 620"),
        ({"ro.soc.manufacturer": "Unisoc", "ro.soc.model": "T612"}, "Unisoc T612"),
        ({"ro.soc.manufacturer": "AOSP", "ro.soc.model": "ranchu"}, "AOSP ranchu"),
        ({"ro.board.platform": "erd8835"}, "Samsung s5e8835 (Exynos 1380)"),
        ({"ro.product.board": "universal7904"}, "Samsung exynos7904"),
        ({"ro.product.board": "universal7884B", "ro.board.platform": "exynos5"}, "Samsung exynos7884b"),
        ({"ro.board.platform": "exynos5", "ro.hardware": "exynos7884B"}, "Samsung exynos7884b"),
        ({"ro.board.platform": "sc7180"}, "Qualcomm SC7180"),
        ({"ro.board.platform": "sc7731e"}, "Unisoc SC7731E"),
        ({"ro.board.platform": "sc8830"}, "Unisoc sc8830"),
        ({"ro.board.platform": "lc1860"}, "Leadcore LC1860"),
        ({"ro.board.platform": "mrvl", "ro.chipname": "PXA986"}, "Marvell PXA986"),
    ],
)
def test_a_chip_without_another_name_is_called_by_its_own(said: dict[str, str], text: str) -> None:
    assert chip(said).text == text


def test_a_kernel_may_name_a_chip_of_unisocs_by_its_market_name() -> None:
    assert chip({}, hardware="Unisoc T615").text == "Unisoc T615"


def test_a_maker_that_is_all_that_is_known_was_told_by_what_told_it() -> None:
    found = chip({}, hardware="Qualcomm Technologies, Inc")
    assert (found.vendor, found.source) == ("Qualcomm", "/proc/cpuinfo, Hardware")


@pytest.mark.parametrize(
    ("hardware", "model", "platform"),
    [
        ("Qualcomm MSM 8928 ACME X1", "MSM8928", None),
        ("Qualcomm APQ 8084 (Flattened Device Tree)", "APQ8084", None),
        ("Qualcomm MSM 8974 ACME (Flattened Device Tree)", "MSM8974", None),
        # The tree is named after the platform, whichever of its chips is there.
        ("Qualcomm MSM 8226 (Flattened Device Tree)", None, "msm8226"),
        ("Qualcomm Technologies, Inc MSM8940MSM8940", "MSM8940", None),
        ("Qualcomm Technologies, Inc. MSM8992v1.1 QRD", "MSM8992", None),
        ("Acme based on Qualcomm Technologies, Inc KONA", "SM8250", None),
    ],
)
def test_older_kernels_of_qualcomms_name_the_chip_in_other_ways(
    hardware: str, model: str | None, platform: str | None
) -> None:
    found = chip({}, hardware=hardware)
    assert (found.vendor, found.model, found.platform) == ("Qualcomm", model, platform)
