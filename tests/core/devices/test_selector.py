from typing import Any

import pytest

from farm.core.base.ids import DeviceId, HostId
from farm.core.devices.device import DeviceFacts, Gpu, NnapiDriver
from farm.core.devices.selector import KnownDevice, Selector, closest_mismatch, select_devices, selector_text
from farm.core.errors import SelectorEmpty


def device(
    device_id: str,
    *,
    host: str = "lab-1",
    label: str | None = None,
    tags: tuple[str, ...] = (),
    unit: int | None = 1,
    **facts: Any,
) -> KnownDevice:
    known: dict[str, Any] = {"serialno": device_id, "device_model": "Pixel 7", "work_root": "/tmp", **facts}
    return KnownDevice(
        device_id=DeviceId(device_id),
        host=HostId(host),
        facts=DeviceFacts(**known),
        label=label,
        tags=tags,
        unit=unit,
    )


PIXEL = device(
    "p7", soc="Tensor G2", android="14", api_level=34, abis=("arm64-v8a", "armeabi-v7a"), label="Desk"
)
GALAXY = device(
    "s21",
    device_model="SM-G991B",
    host="lab-2",
    soc="Exynos 2100",
    android="13",
    api_level=33,
    tags=("fast", "rooted"),
    unit=2,
)
VIRTUAL = device("v1", device_model="virtual", virtual=True, abis=("x86_64",))
FARM = [PIXEL, GALAXY, VIRTUAL]


@pytest.mark.parametrize(
    ("selector", "ids"),
    [
        ({}, ["p7", "s21", "v1"]),
        ({"virtual": (True,)}, ["v1"]),
        ({"virtual": (False,)}, ["p7", "s21"]),
        ({"device_model": ("pixel*",)}, ["p7"]),
        ({"device_model": ("Pixel*", "SM-*")}, ["p7", "s21"]),
        ({"soc": ("*",)}, ["p7", "s21"]),
        ({"android": (14,)}, ["p7"]),
        ({"api_level": (33, 34), "host": ("lab-2",)}, ["s21"]),
        ({"abi": ("arm64-v8a",)}, ["p7"]),
        ({"device_id": ("v?",)}, ["v1"]),
        ({"label": ("desk",)}, ["p7"]),
        ({"tag": ("ROOTED",)}, ["s21"]),
        ({"tag": ("slow", "f*")}, ["s21"]),
        ({"unit": (2,)}, ["s21"]),
        ({"unit": ("<2",)}, ["p7", "v1"]),
        ({"api_level": (">=33",)}, ["p7", "s21"]),
        ({"api_level": (" > 33 ",)}, ["p7"]),
        ({"api_level": ("<=33", ">40")}, ["s21"]),
        ({"device": ("P7",)}, ["p7"]),
        ({"device": ("desk",)}, ["p7"]),
        ({"device": ("sm-*", "virt*")}, ["s21", "v1"]),
    ],
)
def test_a_device_fits_every_key_by_any_of_its_values(selector: Selector, ids: list[str]) -> None:
    assert [device.device_id for device in select_devices([selector], FARM)] == ids


def test_any_of_several_selectors_suffices_and_no_device_comes_twice() -> None:
    selectors: list[Selector] = [{"virtual": (True,)}, {"device_id": ("p7", "v1")}]
    assert [device.device_id for device in select_devices(selectors, FARM)] == ["p7", "v1"]


def test_the_abi_that_programs_run_for_is_the_one_that_counts() -> None:
    with pytest.raises(SelectorEmpty):
        select_devices([{"abi": ("armeabi-v7a",)}], FARM)


def test_a_selector_that_fits_nothing_is_named_with_what_the_farm_has() -> None:
    with pytest.raises(SelectorEmpty) as caught:
        select_devices([{}, {"soc": ("Snapdragon*", "sm*"), "virtual": (False,)}], FARM)
    assert caught.value.message == (
        "no device fits the selector {soc: Snapdragon* or sm*, virtual: false};"
        " the farm has soc: Exynos 2100, Tensor G2; virtual: false, true"
    )


@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        ({"device_model": ("Pixl 7",)}, "did you mean `device_model: Pixel 7`?"),
        ({"device": ("dsk",)}, "did you mean `device: Desk`?"),
        ({"tag": ("root",)}, "did you mean `tag: rooted`?"),
        ({"tag": ("fast",), "virtual": (True,)}, "each of these fits some device, and all together fit none"),
        ({"android": (">=12",)}, "`>=12` compares whole numbers: api_level and unit"),
        ({"tag": ("qqq",)}, SelectorEmpty.default_hint),
    ],
)
def test_a_selector_that_fits_nothing_is_refused_with_what_was_probably_meant(
    selector: Selector, hint: str
) -> None:
    with pytest.raises(SelectorEmpty) as caught:
        select_devices([selector], FARM)
    assert caught.value.hint == hint


def test_a_farm_whose_devices_have_no_such_fact_says_nothing_is_there() -> None:
    with pytest.raises(SelectorEmpty, match="the farm has label: nothing"):
        select_devices([{"label": ("desk",)}], [GALAXY])


def test_a_device_that_is_left_out_is_told_by_the_key_that_it_fails() -> None:
    selectors: list[Selector] = [
        {"virtual": (True,)},
        {"api_level": (">=34",), "soc": ("Tensor*",), "virtual": (False,)},
    ]
    assert closest_mismatch(GALAXY, selectors[:1]) == "its virtual is false"
    assert closest_mismatch(GALAXY, selectors[1:]) == "its api_level is 33"
    assert closest_mismatch(GALAXY, [{"label": ("desk",)}]) == "it has no label"


def test_a_farm_without_devices_says_so() -> None:
    with pytest.raises(SelectorEmpty, match="selector all") as caught:
        select_devices([{}], [])
    assert "farm up --virtual" in caught.value.hint


def test_a_selector_reads_as_one_would_write_it() -> None:
    assert selector_text({"virtual": (True,), "soc": ("T*",)}) == "{virtual: true, soc: T*}"


CHIP = device(
    "p9",
    soc="Qualcomm SM8650 (Snapdragon 8 Gen 3)",
    soc_vendor="Qualcomm",
    soc_model="SM8650",
    manufacturer="Acme",
    market_name="Acme Nine",
    gpu=Gpu(renderer="Adreno (TM) 750"),
    nnapi=(NnapiDriver(name="acme-npu"), NnapiDriver(name="acme-dsp")),
    root=True,
)


@pytest.mark.parametrize(
    "selector",
    [
        {"soc": ("qualcomm*",)},
        {"soc": ("snapdragon 8 gen 3",)},
        {"soc": ("SM8650",)},
        {"soc_vendor": ("qualcomm",), "soc_model": ("sm86*",)},
        {"manufacturer": ("acme",), "market_name": ("*nine",)},
        {"gpu": ("adreno*",), "nnapi": ("acme-dsp",), "root": (True,)},
    ],
)
def test_a_phone_is_selected_by_what_it_is_built_of(selector: Selector) -> None:
    assert [each.device_id for each in select_devices([selector], [*FARM, CHIP])] == ["p9"]
