"""Which chip a phone has, by what invented phones of all makers say."""

import pytest

from farm.phone.soc import Chip, chip, sold_as


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"ro.soc.manufacturer": "Google", "ro.soc.model": "Tensor G5"}, "Google Tensor G5"),
        ({"ro.soc.manufacturer": "Google", "ro.soc.model": "GS201"}, "Google Tensor G2"),
        ({"ro.soc.manufacturer": "Google", "ro.soc.model": "GS101"}, "Google Tensor"),
        (
            {"ro.soc.manufacturer": "QTI", "ro.soc.model": "SM8550-AB"},
            "Qualcomm SM8550-AB (Snapdragon 8 Gen 2)",
        ),
        ({"ro.soc.manufacturer": "Samsung", "ro.soc.model": "s5e9955"}, "Samsung s5e9955 (Exynos 2500)"),
        (
            {"ro.soc.manufacturer": "Mediatek", "ro.soc.model": "MT6991Z/TCZA"},
            "MediaTek MT6991Z/TCZA (Dimensity 9400/9400+)",
        ),
        ({"ro.soc.manufacturer": "Acme", "ro.soc.model": "Fast 1"}, "Acme Fast 1"),
        ({"ro.soc.model": "SM8650"}, "Qualcomm SM8650 (Snapdragon 8 Gen 3)"),
        ({"ro.chipname": "exynos8890", "ro.board.platform": "exynos5"}, "Samsung exynos8890"),
        ({"ro.board.platform": "exynos5", "ro.hardware": "samsungexynos7885"}, "Samsung exynos7885"),
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
    assert sold_as(part) == name


@pytest.mark.parametrize(
    "platform", ["sm6150", "msm8937", "msm8952", "msm8953", "sdm660", "sdm710", "sun", "canoe"]
)
def test_a_platform_that_is_called_after_one_of_its_chips_names_none_of_them(platform: str) -> None:
    found = chip({"ro.board.platform": platform, "ro.product.board": platform, "ro.hardware": "qcom"})
    assert (found.vendor, found.model, found.name, found.platform) == ("Qualcomm", None, None, platform)


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
    assert sold_as("MSM8909W") == "Snapdragon Wear 2100/3100"
    assert sold_as("SDM429W") == "Snapdragon Wear 4100"
