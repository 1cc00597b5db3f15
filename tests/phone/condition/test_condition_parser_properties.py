"""Whatever a phone prints, no parser raises, and what it says keeps to its range."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from farm.phone.adb.decoding import decimal_number, whole_number
from farm.phone.adb.shell_output import digest_by_path, exit_record, output_by_section
from farm.phone.condition.battery import battery_status
from farm.phone.condition.cpuinfo_dump import cpu_load
from farm.phone.condition.screen import screen_on
from farm.phone.condition.thermal import skin_limit_c, thermal, thermal_limits
from farm.phone.hardware.clocks import clocks
from farm.phone.hardware.proc import core_count_of_nproc, load_1m, memory_bytes, uptime_s
from farm.phone.hardware.storage import storage_free_bytes
from farm.phone.identity import facts
from farm.phone.identity.properties import properties
from farm.phone.identity.soc import chip
from tests.phone.adb.capture_text import decode_output

SCRAPS = st.sampled_from(
    [
        *[
            "[ro.a]: [",
            "[ro.a]: [b]",
            "]",
            "[",
            "level: ",
            "scale: ",
            "temperature: ",
            "voltage: 0",
            "status: ",
        ],
        *["Thermal Status: ", "Current temperatures from HAL:", "Cached temperatures:"],
        *["Temperature{mValue=", "31.5", ", mType=3", ", mName=skin", ", mStatus=0}", "E-5", "NaN"],
        *["MemTotal: ", " kB", "1.0 2.0 3.0 4/5 6", "/dev/a 1 2 3 4% /", "1G 2.5M 3K 4% /b", "processor : 0"],
        *["code=", "started_s=", "ended_s=", "@@benchfarm@@ a", "0123456789abcdef" * 4 + "  x"],
        *["AC powered: true", "USB powered: false", "mWakefulness=", "Awake", "Display Power: state=", "ON"],
        *["TemperatureThreshold{mType=3, mName=a, mHotThrottlingThresholds=[", "NaN, ", "40.0", "]}"],
        *[
            "cpufreq/policy0/",
            "cpu1/cpufreq/",
            "related_cpus:0 1",
            "scaling_max_freq:",
            "stats/time_in_state:7 7",
        ],
        *["online:0-3", "gpubusy: 1 2", "load:5@6Hz", "% 12/a: 3% user + 4% kernel", "9% TOTAL: 1% user"],
        *["\n", "\r\n", "\r", "\0", "\ufeff", " ", "\t", "-", "9" * 30, "²", "٣", "0", "7", "255"],
    ]
)
TEXTS = st.one_of(st.text(), st.lists(SCRAPS, max_size=60).map("".join))
PARSERS = [
    *[
        battery_status,
        thermal,
        properties,
        digest_by_path,
        exit_record,
        storage_free_bytes,
        output_by_section,
    ],
    *[clocks, cpu_load, screen_on, thermal_limits, skin_limit_c],
    *[core_count_of_nproc, load_1m, uptime_s, whole_number, decimal_number, facts.abi_of_machine],
]


@pytest.mark.parametrize("parse", PARSERS)
@given(text=TEXTS)
@example(text="")
def test_no_parser_raises_on_garbage(parse: Callable[[str], object], text: str) -> None:
    parse(text)


@given(data=st.binary())
def test_any_bytes_can_be_decoded(data: bytes) -> None:
    decode_output(data)


@given(text=TEXTS)
@example(text="")
def test_what_is_read_keeps_to_its_range(text: str) -> None:
    power, heat = battery_status(text), thermal(text)
    assert power.level_pct is None or 0 <= power.level_pct <= 100
    assert heat.skin_c is None or -50 < heat.skin_c < 200
    assert 0 <= (clocks(text).gpu_busy_pct or 0) <= 100
    assert all(policy.name.startswith("policy") for policy in clocks(text).cpus)
    assert (storage_free_bytes(text) or 0) >= 0
    assert (memory_bytes(text, "MemTotal") or 0) >= 0


NAMES = st.from_regex(r"[a-z][a-z0-9_.]{0,30}", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=20)


@given(known=st.dictionaries(NAMES, VALUES))
def test_properties_survive_being_printed(known: dict[str, str]) -> None:
    dump = "".join(f"[{name}]: [{value}]\r\n" for name, value in known.items())
    assert properties("getprop\r\n" + dump) == known


@given(known=st.dictionaries(NAMES, VALUES), values=st.lists(st.sampled_from(["", "?", "x", "-1", "26"])))
def test_facts_come_of_any_properties(known: dict[str, str], values: list[str]) -> None:
    given_facts = {
        **known,
        **dict(zip(["ro.build.version.sdk", "ro.soc.model", "ro.product.cpu.abilist"], values, strict=False)),
    }
    for fact in [
        partial(facts.text_fact, name="device_model"),
        chip,
        facts.api_level,
        facts.abis,
        partial(facts.text_fact, name="serialno"),
        facts.is_virtual,
    ]:
        fact(given_facts)
