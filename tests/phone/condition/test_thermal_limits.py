import pytest

from farm.core.devices.condition import ThermalStatus
from farm.phone.condition.thermal import skin_limit_c, thermal_limits

NOTHING = ", ".join(["NaN"] * 7)


def aidl(kind: int, name: str, hot: str) -> str:
    cold = f"mColdThrottlingThresholds=[{NOTHING}]"
    return f"\tTemperatureThreshold{{mType={kind}, mName={name}, mHotThrottlingThresholds=[{hot}], {cold}}}\n"


AIDL = (
    "Temperature static thresholds from HAL:\n"
    + aidl(2, "pack", "NaN, NaN, NaN, NaN, NaN, 57.5, 80.0")
    + aidl(3, "back cover", "NaN, 37.0, 39.5, 41.0, 44.0, NaN, NaN")
    + aidl(6, "vbat", NOTHING)
    + "Temperature headroom thresholds:\n[NaN, 0.8, 1.0]\n"
)
HIDL = (
    "Temperature static thresholds from HAL:\n"
    "\t{.type = SKIN, .name = skin, .hotThrottlingThresholds = [NaN, 33.0, 43.0], "
    ".coldThrottlingThresholds = [NaN], .vrThrottlingThreshold = NaN}\n"
)


def test_thresholds_are_told_by_status_and_without_those_that_are_not_set() -> None:
    pack, skin = thermal_limits(AIDL)
    assert (pack.name, pack.is_skin) == ("pack", False)
    assert pack.from_c == {ThermalStatus.EMERGENCY: 57.5, ThermalStatus.SHUTDOWN: 80.0}
    assert (skin.name, skin.is_skin) == ("back cover", True)
    assert skin.from_c[ThermalStatus.SEVERE] == 41.0


@pytest.mark.parametrize(
    ("text", "limit_c"), [(AIDL, 37.0), (HIDL, 33.0), (HIDL.replace("SKIN", "CPU"), None)]
)
def test_a_phone_says_from_where_on_its_skin_is_too_warm(text: str, limit_c: float | None) -> None:
    assert skin_limit_c(text) == limit_c
    assert skin_limit_c(text.replace("\n", " \r\n")) == limit_c


def test_a_line_that_is_cut_is_no_threshold() -> None:
    assert skin_limit_c(HIDL[: HIDL.index("43.0")]) is None


def test_the_threshold_of_no_throttling_is_no_limit() -> None:
    text = aidl(3, "back", "33.0, 36.5, 39.0, NaN, NaN, NaN, NaN")
    assert skin_limit_c(text) == 36.5
    assert thermal_limits(text)[0].from_c[ThermalStatus.NONE] == 33.0


def test_zeros_stand_for_thresholds_that_are_not_set() -> None:
    assert skin_limit_c(aidl(3, "back", "0.0, 0.0, 0.0, 41.0, 0.0, 0.0, 0.0")) == 41.0
    assert thermal_limits(aidl(3, "back", ", ".join(["0.0"] * 7))) == []


def test_limits_that_cannot_be_told_apart_are_none() -> None:
    row = "TemperatureThreshold{mType=3, mName=back, mHotThrottlingThresholds=[%s], mCold=[]}\n"
    assert skin_limit_c(row % "NaN, 38.5, 41.0, NaN, NaN, NaN, 55.0") == 38.5
    assert skin_limit_c(row % "NaN, 38,5, 41,0, NaN, NaN, NaN, 55,0") is None
