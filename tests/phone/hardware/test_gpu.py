"""GPUs of invented phones."""

import re

import pytest

from farm.core.devices.device import Gpu
from farm.phone.hardware.gpu import gpu


@pytest.mark.parametrize(
    ("line", "vendor", "renderer", "driver"),
    [
        (
            "GLES: Qualcomm, Adreno (TM) 999, OpenGL ES 3.2 V@0999.1 (GIT@abc, I1, 17) (Date:02/02/26)",
            "Qualcomm",
            "Adreno (TM) 999",
            "V@0999.1",
        ),
        ("GLES: ARM, Mali-G99, OpenGL ES 3.2 v1.r77p2-01eac0.abcdef", "ARM", "Mali-G99", "r77p2-01eac0"),
        (
            "  GLES: Imagination Technologies, PowerVR A99, OpenGL ES 3.2 build 9.9@1234567\r\n",
            "Imagination Technologies",
            "PowerVR A99",
            "9.9@1234567",
        ),
        (
            "GLES: Samsung Electronics Co., Ltd., ANGLE (Xclipse 999) on Vulkan 1.4.1, "
            "OpenGL ES 3.2 ANGLE git hash: abc",
            "Samsung Electronics Co., Ltd.",
            "ANGLE (Xclipse 999) on Vulkan 1.4.1",
            "ANGLE git hash: abc",
        ),
        (
            "GLES: Google Inc. (Acme), ANGLE (Acme, Card 1, OpenGL ES 3.2), OpenGL ES 3.1.0 (ANGLE 2.1)",
            "Google Inc. (Acme)",
            "ANGLE (Acme, Card 1, OpenGL ES 3.2)",
            "ANGLE 2.1",
        ),
    ],
)
def test_a_gles_line_is_vendor_renderer_and_driver(
    line: str, vendor: str, renderer: str, driver: str
) -> None:
    found = gpu(f"dumpsys SurfaceFlinger\n{line}\n", "")
    assert found is not None
    assert (found.vendor, found.renderer, found.driver) == (vendor, renderer, driver)


def test_builds_of_one_driver_version_differ_in_what_it_says() -> None:
    one, other = (gpu(f"GLES: A, B, OpenGL ES 3.2 V@0512.1 (GIT@{git})\n", "") for git in ("aaa", "bbb"))
    assert one is not None
    assert other is not None
    assert one.driver == other.driver
    assert one != other


VKJSON = """            "apiVersion": 4206592,
            "driverVersion": 2150105089,
            "deviceName": "Acme 9",
    "driverInfo": "build 7",
            "apiVersion": 1,
"""


def test_vulkan_and_its_driver_are_read_off_the_first_device() -> None:
    assert gpu("", VKJSON) == Gpu(renderer="Acme 9", vulkan="1.3.0", vulkan_driver="512.640.1, build 7")


def test_a_driver_may_tell_all_that_vulkan_has_room_for() -> None:
    said = r"Driver Build: 0a1b2c, I0d, 1799999999\nDate: 02/02/26\nBranch: " + "b" * 200
    found = gpu("", VKJSON.replace("build 7", said))
    assert found is not None
    assert said in (found.vulkan_driver or "")


def test_a_gles_line_without_its_vendor_names_no_gpu() -> None:
    assert gpu("GLES: Adreno (TM) 999, OpenGL ES 3.2 V@0999.1\n", "") is None


def test_a_document_on_one_line_says_the_same() -> None:
    assert gpu("", "{" + "".join(line.strip() for line in VKJSON.splitlines()) + "}") == gpu("", VKJSON)


def test_features_tell_the_version_of_vulkan_where_nothing_else_does() -> None:
    found = gpu("", "", "feature:android.hardware.vulkan.version=4198400\n", egl="acme")
    assert found == Gpu(vendor="acme", vulkan="1.1.0")


@pytest.mark.parametrize("text", ["", "GLES: ", "GLES: one", "Permission Denial: can't dump SurfaceFlinger"])
def test_no_gpu_is_no_answer(text: str) -> None:
    assert gpu(text, "") is None


@pytest.mark.parametrize(
    ("version", "driver"),
    [
        ("OpenGL ES 3.2 v1.g15p0-01eac0", "g15p0-01eac0"),
        ("OpenGL ES 3.2 v1.r44p1-03eac0.a1b2c3", "r44p1-03eac0"),
        ("OpenGL ES 3.2 V@0837.0.7 (GIT@abc, I1, 17) (Date:01/12/26)", "V@0837.0.7"),
        ("OpenGL ES 3.2 V@415.0 (GIT@abc)", "V@415.0"),
        ("OpenGL ES 2.0 3d6a80e", "3d6a80e"),
        ("OpenGL ES 3.2 v334 R", "v334 R"),
        ("OpenGL ES 3.2", None),
    ],
)
def test_every_maker_writes_its_drivers_version_in_its_own_way(version: str, driver: str | None) -> None:
    found = gpu(f"GLES: Acme, Card 7, {version}\n", "")
    assert found is not None
    assert found.driver == driver


def test_a_gles_line_that_may_be_cut_names_no_driver() -> None:
    dump = "Displays (1 entries)\nGLES: ARM, Mali-G99, OpenGL ES 3.2 v1.r77p2-01eac0"
    assert gpu(dump, "") == Gpu(vendor="ARM", renderer="Mali-G99")
    assert gpu(dump[: dump.index(", Open")], "") is None


def test_a_gles_line_alone_is_whole_without_its_end() -> None:
    found = gpu("GLES: ARM, Mali-G99, OpenGL ES 3.2 v1.r77p2-01eac0", "")
    assert found is not None
    assert found.driver == "r77p2-01eac0"


def test_a_phone_that_draws_with_vulkan_names_its_gpu_there() -> None:
    text = " ------------RE Vulkan----------\n Vulkan device initialized: 1\n"
    assert gpu(text, VKJSON) == gpu("", VKJSON)


@pytest.mark.parametrize("mark", ["`", '"', "'"])
def test_a_gles_line_may_be_quoted(mark: str) -> None:
    found = gpu(f"it says {mark}GLES: ARM, Mali-G99, OpenGL ES 3.2 v1.r77p2-01eac0{mark}\n", "")
    assert found is not None
    assert (found.vendor, found.driver_text) == ("ARM", "OpenGL ES 3.2 v1.r77p2-01eac0")


DOCUMENT = """{
\t"apiVersion" : 4210688.0,
\t"devices" :
\t[
\t\t{
\t\t\t"core12" :
\t\t\t{
\t\t\t\t"driverInfo" : "v1.r51p0-acme",
\t\t\t},
\t\t\t"properties" :
\t\t\t{
\t\t\t\t"apiVersion" : 4202701.0,
\t\t\t\t"deviceID" : 2468.0,
\t\t\t\t"deviceName" : "Acme-9 MC4",
\t\t\t\t"driverVersion" : 213909504.0,
\t\t\t}
\t\t}
\t]
}
"""


def test_the_version_is_the_devices_and_not_that_of_the_loader() -> None:
    whole = Gpu(renderer="Acme-9 MC4", vulkan="1.2.205", vulkan_driver="51.0.0, v1.r51p0-acme")
    assert gpu("", DOCUMENT) == whole
    asked = re.compile('"(apiVersion|driverVersion|driverInfo|deviceName)"')
    lines = [line for line in DOCUMENT.splitlines(keepends=True) if asked.search(line)]
    assert gpu("", "".join(lines)) == whole
    assert gpu("", " ".join(DOCUMENT.split())) == whole


def test_a_loader_without_a_device_tells_no_version() -> None:
    text = '{\n\t"apiVersion" : 4210688.0,\n\t"devices" : []\n}\n'
    assert gpu("", text) is None
    found = gpu("", text, "feature:android.hardware.vulkan.version=4198400\n")
    assert found == Gpu(vulkan="1.1.0")
