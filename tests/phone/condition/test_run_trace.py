"""Traces as the sampler writes them, whole and damaged."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.runs.trace import ClockSample, RunTrace, TracePolicy, TraceSample
from farm.phone.condition.run_trace import run_trace

HEAD = """\
trace 1
start 100.10
pause 0.5
policy policy0 300000 1800000 0 1 2 3
policy policy4 - 2367000 4 5
gpu kgsl 680000000 220000000
columns utime stime cutime cstime core cores rss swap peak \
limit:policy0 clock:policy0 limit:policy4 clock:policy4 gpu_clock \
gpu_limit zone:cpu-0 cooling:cpu current voltage charge status
"""
FIRST = (
    "s 100.50 12 3 0 0 4 4-5 2048 0 4096 1800000 300000 2367000 1418000 "
    "220000000 680000000 41500 0 -350000 4123000 2500000 Discharging .\n"
)
SECOND = (
    "s 101.02 60 5 7 3 5 4-5 2048 1024 4096 1800000 - 1418000 1418000 - - 43 2 -420000 4.1 - Not "
    "100 20 300 4 6 1 .\n"
)
END = "end 101.30\n"


def test_a_whole_trace_is_read_in_the_units_of_the_farm() -> None:
    assert run_trace(HEAD + FIRST + SECOND + END) == RunTrace(
        policies=(
            TracePolicy(
                name="policy0",
                cores=(0, 1, 2, 3),
                hardware_min_hz=300_000_000,
                hardware_max_hz=1_800_000_000,
            ),
            TracePolicy(name="policy4", cores=(4, 5), hardware_max_hz=2_367_000_000),
        ),
        gpu_name="kgsl",
        gpu_max_hz=680_000_000,
        started_uptime_s=100.1,
        ended_uptime_s=101.3,
        pause_s=0.5,
        samples=(
            TraceSample(
                uptime_s=100.5,
                clocks=(
                    ClockSample(limit_hz=1_800_000_000, current_hz=300_000_000),
                    ClockSample(limit_hz=2_367_000_000, current_hz=1_418_000_000),
                ),
                gpu=ClockSample(limit_hz=680_000_000, current_hz=220_000_000),
                allowed_cores=(4, 5),
                rss_bytes=2048 * 1024,
                swap_bytes=0,
                peak_rss_bytes=4096 * 1024,
                cpu_s=0.15,
                core=4,
                temperatures_c={"cpu-0": 41.5},
                cooling={"cpu": 0},
                battery_a=-0.35,
                battery_v=4.123,
                battery_charge_ah=2.5,
                charger="discharging",
            ),
            TraceSample(
                uptime_s=101.02,
                clocks=(
                    ClockSample(limit_hz=1_800_000_000),
                    ClockSample(limit_hz=1_418_000_000, current_hz=1_418_000_000),
                ),
                allowed_cores=(4, 5),
                # With those of a child.
                rss_bytes=2148 * 1024,
                swap_bytes=1044 * 1024,
                peak_rss_bytes=4396 * 1024,
                cpu_s=0.85,
                core=5,
                temperatures_c={"cpu-0": 43.0},
                cooling={"cpu": 2},
                battery_a=-0.42,
                charger="not charging",
            ),
        ),
    )


def test_without_a_trace_there_is_none() -> None:
    assert run_trace("") is None
    assert run_trace("sh: trace: not found\n") is None


@pytest.mark.parametrize(
    "line",
    [
        FIRST[:40] + "\n",
        FIRST[:30] + SECOND,
        FIRST[:-2] + SECOND,
        FIRST,
        "s 100.51 .\n",
        "columns utime\n",
        "policy policy7 1 2 7\n",
        "start 3\n",
        "\x00\n",
    ],
    ids=lambda line: line[:20],
)
def test_a_line_that_is_cut_doubled_or_interleaved_is_counted_and_changes_nothing(line: str) -> None:
    whole = run_trace(HEAD + FIRST + SECOND + END)
    assert whole is not None
    assert run_trace(HEAD + FIRST + line + SECOND + END) == replace(whole, skipped_lines=1)


def test_a_trace_without_its_end_is_cut() -> None:
    trace = run_trace(HEAD + FIRST + SECOND[:50])
    assert trace is not None
    assert (len(trace.samples), trace.skipped_lines, trace.is_cut) == (1, 1, True)
    assert trace.ended_uptime_s is None


def test_a_phone_that_hides_everything_has_samples_that_say_nothing() -> None:
    trace = run_trace("trace 1\npause 0.5\ncolumns utime\ns 5.00 - .\nend 6\n")
    assert trace is not None
    assert trace.samples == (TraceSample(uptime_s=5.0),)
    assert trace.policies == ()


@pytest.mark.parametrize(
    ("values", "core"),
    [
        # Of the process itself, its ended children, and two that live.
        ("10 0 0 0 4 - - - 4 5 1 - - - 0 0 2", 4),
        ("3 0 1 1 4 - - - 4 5 1 - - - 0 0 2", 1),
        ("3 0 90 1 4 - - - 4 5 1 - - - 0 0 2", None),
        ("0 0 0 0 4 - - - 0 0 1 - - - 0 0 2", 4),
        ("- - - - 4 - - - - - 1 - - - - - -", 4),
    ],
)
def test_the_core_is_that_of_the_process_that_works_most(values: str, core: int | None) -> None:
    trace = run_trace(f"trace 1\ncolumns utime stime cutime cstime core\ns 1 {values} .\n")
    assert trace is not None
    assert trace.samples[0].core == core


@pytest.mark.parametrize(
    ("text", "hz"), [("680000000", 680_000_000), ("890000", 890_000_000), ("676", 676_000_000), ("0", None)]
)
def test_the_clock_of_a_gpu_is_read_in_the_unit_of_its_size(text: str, hz: int | None) -> None:
    trace = run_trace(f"trace 1\ncolumns gpu_clock\ns 1 {text} .\n")
    assert trace is not None
    assert trace.samples[0].gpu.current_hz == hz


def battery(rows: list[tuple[float, int, str, str]]) -> list[float | None]:
    """Return the currents in A of rows of uptime, current, charge and status."""
    lines = "".join(f"s {uptime} {current} {charge} {status} .\n" for uptime, current, charge, status in rows)
    trace = run_trace(f"trace 1\ncolumns current charge status\n{lines}end 99999\n")
    assert trace is not None
    return [sample.battery_a for sample in trace.samples]


@pytest.mark.parametrize(
    ("rows", "amperes"),
    [
        # Pixel: µA, negative is discharge.
        ([(1, -350_000, "-", "Discharging"), (2, -90, "-", "Discharging")], [-0.35, -0.00009]),
        # Samsung: mA.
        ([(1, -435, "-", "Discharging"), (2, -900, "-", "Discharging")], [-0.435, -0.9]),
        # Oppo: mA, positive is discharge.
        ([(1, 476, "-", "Discharging"), (2, 513, "-", "Discharging")], [-0.476, -0.513]),
        # The counter moved by 10 mAh in a minute of 600: mA, though it charges.
        ([(60, 600, "2500000", "Charging"), (120, 600, "2510000", "Charging")], [0.6, 0.6]),
        # It rose while the current was negative: the driver's sign is the other one.
        ([(60, -600, "2500000", "Charging"), (120, -600, "2510000", "Charging")], [0.6, 0.6]),
        # The counter in mAh.
        ([(60, -600, "2510", "Charging"), (120, -600, "2500", "Charging")], [-0.6, -0.6]),
        # Full on its charger: 1.5 mA or 1.5 A.
        ([(1, 1500, "-", "Full")], [None]),
        ([(1, 1500, "2500000", "Charging"), (2, 1500, "2500000", "Charging")], [None, None]),
        ([(1, 0, "-", "Discharging")], [None]),
        ([(1, 10**17, "-", "Discharging")], [None]),
    ],
)
def test_the_current_of_a_battery_is_read_in_its_drivers_unit_and_sign(
    rows: list[tuple[float, int, str, str]], amperes: list[float | None]
) -> None:
    assert battery(rows) == pytest.approx(amperes)


@given(
    text=st.lists(
        st.sampled_from(
            [
                *HEAD.split(" "),
                *FIRST.split(" "),
                *[
                    "\n",
                    "\ns ",
                    " .\n",
                    ".\n",
                    "trace 1\n",
                    "end ",
                    "columns ",
                    "9" * 30,
                    "-",
                    "²",
                    "\0",
                    " ",
                ],
                HEAD,
                FIRST,
                SECOND,
                END,
            ]
        ),
        max_size=40,
    ).map("".join)
)
def test_any_text_is_read_within_bounds(text: str) -> None:
    trace = run_trace(text)
    for sample in trace.samples if trace else ():
        assert 0 <= sample.uptime_s <= 1e10
        for value in (sample.rss_bytes, sample.swap_bytes, sample.peak_rss_bytes):
            assert value is None or 0 <= value < 2**53
        assert sample.core is None or 0 <= sample.core < 256
