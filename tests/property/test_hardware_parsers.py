"""Whatever a phone prints, nothing that reads its hardware raises, and what is read keeps to its form."""

from hypothesis import given
from hypothesis import strategies as st

from farm.phone.adb_listing import listed_phones
from farm.phone.cpu import clusters, core_by_number, hardware_line, possible_cores
from farm.phone.gpu import gpu
from farm.phone.nnapi import nnapi_drivers
from farm.phone.properties import properties
from farm.phone.soc import chip
from farm.phone.storage import data_file_system
from farm.phone.whole import device_facts

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
def test_no_parser_of_hardware_raises_on_garbage(text: str) -> None:
    clusters(text, text)
    core_by_number(text)
    hardware_line(text)
    possible_cores(text)
    gpu(text, text, text)
    nnapi_drivers(service_list=text, lshal=text, vintf=text, properties=properties(text))
    chip(properties(text), hardware=text, machine=text)
    data_file_system(text)
    listed_phones(text)
