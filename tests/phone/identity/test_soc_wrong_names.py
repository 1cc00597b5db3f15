"""Names that are not of the chip, or not of it alone: the phone's own, a series, its maker's."""

import pytest

from farm.phone.identity.soc import chip


@pytest.mark.parametrize("place", ["ro.hardware", "ro.boot.hardware", "ro.product.board"])
@pytest.mark.parametrize("word", ["tuna", "sun", "cape"])
def test_a_phone_may_be_called_by_a_word_that_is_a_chips_elsewhere(place: str, word: str) -> None:
    assert chip({place: word}, hardware=word.title()).vendor is None
    said = {place: word, "ro.board.platform": "omap4"}
    assert (chip(said).vendor, chip(said).platform) == ("Texas Instruments", "omap4")
    assert chip({"ro.board.platform": word}).vendor == "Qualcomm"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"ro.soc.model": "T616", "ro.board.platform": "ums9230"}, "Unisoc T616"),
        ({"ro.soc.model": "Tensor G4"}, "Google Tensor G4"),
        ({"ro.soc.model": "lahaina", "ro.soc.manufacturer": "QTI"}, "Qualcomm lahaina"),
        ({"ro.soc.model": "Fast 1", "ro.board.platform": "newname"}, "Fast 1"),
    ],
)
def test_a_model_without_its_maker_is_of_the_maker_that_all_else_is_of(
    said: dict[str, str], text: str
) -> None:
    assert chip(said).text == text


@pytest.mark.parametrize(
    ("platform", "text"),
    [
        ("MTK6582M", "MediaTek MT6582M"),
        ("mt5882", "MediaTek MT5882"),
        ("mt6752", "MediaTek mt6752"),
        ("smdk4x12", "Samsung smdk4x12"),
        ("uis8581a", "Unisoc UIS8581A"),
        ("sl8541e", "Unisoc SL8541E"),
        ("rk2928", "Rockchip RK2928"),
        ("rk356x", "Rockchip rk356x"),
        ("gxl", "Amlogic gxl"),
        ("meson8", "Amlogic meson8"),
        ("k3v2oem1", "HiSilicon K3V2"),
        ("sun50iw9p1", "Allwinner sun50iw9p1"),
        ("omap4", "Texas Instruments omap4"),
        ("hawaii", "Broadcom hawaii"),
    ],
)
def test_chips_of_tablets_and_boxes_have_their_makers(platform: str, text: str) -> None:
    assert chip({"ro.board.platform": platform}).text == text


def test_a_phones_own_name_is_not_its_chips() -> None:
    said = {"ro.soc.manufacturer": "acme", "ro.soc.model": "a77x", "ro.product.device": "a77x"}
    assert chip({**said, "ro.board.platform": "mt6789"}).text == "MediaTek MT6789 (Helio G99/G100/G200)"
    assert chip({**said, "ro.product.device": "b"}).text == "acme a77x"
    assert chip({"ro.soc.model": "mt6789", "ro.product.device": "mt6789"}).model == "mt6789"


@pytest.mark.parametrize("maker", ["Oculus", "Meta", "Pico"])
def test_a_headset_has_not_the_phones_chip_of_the_same_code_name(maker: str) -> None:
    said = {"ro.board.platform": "kona", "ro.hardware": "qcom", "ro.product.board": "kona"}
    assert chip(said).model == "SM8250"
    found = chip({**said, "ro.product.manufacturer": maker})
    assert (found.vendor, found.model) == ("Qualcomm", None)
    said = {**said, "ro.product.manufacturer": maker}
    assert chip(said, hardware="Qualcomm Technologies, Inc SXR2130").model == "SXR2130"


def test_a_code_name_that_stands_for_the_model_is_a_platform() -> None:
    found = chip({"ro.soc.manufacturer": "QTI", "ro.soc.model": "lahaina"})
    assert (found.model, found.platform, found.vendor) == (None, "lahaina", "Qualcomm")
    assert chip({"ro.soc.manufacturer": "Mediatek", "ro.soc.model": "MT6765"}).model == "MT6765"


@pytest.mark.parametrize(
    ("maker", "said", "model", "name"),
    [
        ("Unisoc", "Unisoc T615", "T615", None),
        ("", "Unisoc T615", "T615", None),
        ("MediaTek", "mediatek  MT6765", "MT6765", "Helio P35/G35/G36/G37/G50"),
        ("QTI", "QTI SM8550", "SM8550", "Snapdragon 8 Gen 2"),
        ("QTI", "Qualcomm SM8550", "SM8550", "Snapdragon 8 Gen 2"),
        ("Acme", "Acme 9 Pro", "9 Pro", None),
        ("Acme", "Acme", "Acme", None),
        ("Acme", "Acme9 Pro", "Acme9 Pro", None),
        ("Samsung", "Exynos 9810", "Exynos 9810", None),
        ("", "Newname 9", "Newname 9", None),
    ],
)
def test_a_maker_before_the_model_is_not_of_it(maker: str, said: str, model: str, name: str | None) -> None:
    found = chip({"ro.soc.manufacturer": maker, "ro.soc.model": said})
    assert (found.model, found.name) == (model, name)


@pytest.mark.parametrize("series", ["kirin", "Exynos", "snapdragon", "MediaTek"])
def test_a_series_is_no_model(series: str) -> None:
    said = {"ro.soc.manufacturer": "hisilicon", "ro.soc.model": series, "ro.board.chiptype": "kirin9010_cs"}
    assert chip({**said, "ro.board.platform": "newname"}).text == "HiSilicon Kirin 9010"


def test_broadcoms_words_for_its_platforms_are_phones_names_too() -> None:
    assert chip({"ro.hardware": "java", "ro.soc.model": "T700"}).vendor is None
    assert chip({"ro.hardware": "qcom", "ro.product.board": "capri"}).vendor == "Qualcomm"
    assert chip({"ro.board.platform": "hawaii"}).vendor == "Broadcom"


def test_every_raspberry_pi_says_bcm2835_and_its_platform_says_which_it_is() -> None:
    assert chip({"ro.board.platform": "bcm2711"}, hardware="BCM2835").text == "Broadcom BCM2711"


def test_a_platform_in_the_models_place_gives_way_to_what_tells_the_chip() -> None:
    said = {"ro.soc.model": "taro", "ro.soc.manufacturer": "QTI", "ro.vendor.qti.soc_model": "SM8475"}
    assert chip(said).model == "SM8475"


@pytest.mark.parametrize("word", ["common", "generic", "Common"])
def test_the_platform_of_an_image_for_phones_of_all_chips_names_none(word: str) -> None:
    said = {"ro.board.platform": word, "ro.product.board": word}
    assert chip(said).text is None
    assert chip({**said, "ro.hardware": "kirin985"}).model == "Kirin 985"
    assert chip({**said, "ro.hardware": "newname"}).platform == "newname"


@pytest.mark.parametrize(
    "said",
    [
        {"ro.soc.model": "O7", "ro.board.platform": "xring_o7_asic"},
        {"ro.soc.model": "o7", "ro.soc.manufacturer": "XRING", "ro.board.platform": "xring_o7_asic"},
        {"ro.board.platform": "xring_o7"},
        {"ro.soc.manufacturer": "Xiaomi", "ro.soc.model": "XRINGO7"},
        {"ro.soc.model": "Xring O7"},
    ],
)
def test_a_chip_of_xiaomis_is_of_its_series_however_short_the_phone_calls_it(said: dict[str, str]) -> None:
    assert (chip(said).vendor, (chip(said).model or "").casefold().replace(" ", "")) == ("Xiaomi", "xringo7")


def test_xiaomis_first_chip_is_known_by_its_platform() -> None:
    assert chip({"ro.board.platform": "O1_asic"}).text == "Xiaomi XRING O1"
    assert chip({"ro.board.platform": "O1_asic", "ro.soc.model": "O1"}).text == "Xiaomi XRING O1"
