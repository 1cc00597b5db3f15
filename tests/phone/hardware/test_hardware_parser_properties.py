"""Whatever a phone prints, nothing that reads its hardware raises, and what is read keeps to its form."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from farm.core.devices.device import DeviceFacts
from farm.phone.adb.listing import adb_device_rows
from farm.phone.assemble import device_facts
from farm.phone.hardware.cpu import clusters, core_by_number, hardware_line, possible_cores
from farm.phone.hardware.gpu import gpu
from farm.phone.hardware.nnapi import nnapi_drivers
from farm.phone.hardware.storage import data_file_system
from farm.phone.identity.properties import properties
from farm.phone.identity.soc import chip
from tests.phone.adb.capture_text import decode_output

SCRAPS = st.sampled_from(
    [
        *["processor : 0", "[ro.board.platform]: [", "]", "[", "ro.hardware=", "/dev/a 1 2 3 4% /data"],
        *["CPU implementer : 0x41", "CPU part : 0xd05", "Hardware : mt6789", "policy0/related_cpus:0-3"],
        *["cpu1/cpufreq/cpuinfo_max_freq:", "GLES: ARM, Mali, OpenGL ES 3.2 r1p0", "(", ")", ", ", "kona"],
        *['"apiVersion": ', '"driverVersion": 7,', "<hal>", "</hal>", "<name>", "</name>", "IDevice/a"],
        *["android.hardware.neuralnetworks", ".IDevice/a", "@1.3::IDevice/b", "[ro.soc.model]: [gs201]"],
        *[
            "List of devices attached",
            "serial device usb:1-2",
            " product:a",
            "* daemon",
            "adb server version",
        ],
        *["\n", "\r\n", "\r", "\0", "\ufeff", " ", "\t", "-", "9" * 30, "²", "٣", "0", "7", "255"],
    ]
)
TEXTS = st.one_of(st.text(), st.lists(SCRAPS, max_size=60).map("".join))
SECTIONS = (
    *["getprop", "machine", "kernel", "system", "cpuinfo", "possible", "cpufreq", "soc_machine", "nproc"],
    *["meminfo", "gles", "vkjson", "features", "services", "lshal", "vintf", "root", "work_root", "storage"],
)


@given(said=st.dictionaries(st.sampled_from(SECTIONS), TEXTS))
def test_a_phone_that_talks_nonsense_still_has_facts(said: dict[str, str]) -> None:
    found = device_facts(said, "serial")
    assert found.device_model
    assert all(cluster.cores for cluster in found.clusters)
    assert all(fact in type(found).__slots__ for fact in found.sources)


@given(text=TEXTS)
@example(text="")
def test_no_parser_of_hardware_raises_on_garbage(text: str) -> None:
    clusters(text, text)
    core_by_number(text)
    hardware_line(text)
    possible_cores(text)
    gpu(text, text, text)
    nnapi_drivers(service_list=text, lshal=text, vintf=text, properties=properties(text))
    chip(properties(text), hardware=text, machine=text)
    data_file_system(text)
    adb_device_rows(text)


SAID = {
    "getprop": "[ro.product.model]: [A-9]\n[ro.board.platform]: [kona]\n[ro.hardware]: [qcom]\n",
    "cpuinfo": "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd05\n\nHardware : SM8250\n",
    "cpufreq": "policy0/related_cpus:0 1\npolicy0/cpuinfo_max_freq:1800000\n",
    "gles": "GLES: Qualcomm, Adreno (TM) 9, OpenGL ES 3.2 V@9.1 (GIT@a, b)\n",
    "services": "1\tandroid.hardware.neuralnetworks.IDevice/npu: [x]\n",
    "storage": "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/a 100 40 60 40% /data\n",
    "possible": "0-1\n",
}


def spoiled(how: Callable[[str], str]) -> DeviceFacts:
    return device_facts({section: how(text) for section, text in SAID.items()}, "serial")


@pytest.mark.parametrize(
    "how",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: decode_output(b"\xff\xfe" + text.encode("utf-16-le")),
        lambda text: f"$ some command that was echoed\n{text}",
        lambda text: f"{text}sh: some/file: Permission denied\n",
        lambda text: f"\n\n{text}\n\n",
    ],
    ids=["CRLF", "UTF-16", "echo", "refusal", "blank lines"],
)
def test_what_happens_to_text_on_its_way_changes_no_fact(how: Callable[[str], str]) -> None:
    assert spoiled(how) == spoiled(lambda text: text)


@given(cut=st.integers(0, 200))
def test_an_answer_that_is_cut_tells_less_and_nothing_else(cut: int) -> None:
    whole, found = spoiled(lambda text: text), spoiled(lambda text: text[:cut])
    assert found.device_model in (whole.device_model, "unknown")
    assert found.soc_vendor in (whole.soc_vendor, None)
    assert found.storage_bytes in (whole.storage_bytes, None)
    assert {driver.name for driver in found.nnapi} <= {"n", "np", "npu"}
