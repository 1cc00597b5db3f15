"""The sampler under every shell that it must run under: it sees the run, and is in no one's way."""

import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from agents.device.run.run_control import SUPERVISOR_SCRIPT
from agents.virtual.course import Course, policy_limit, set_course
from farm.core.runs.trace import TraceSample
from tests.agents.device.run.sampled_runs import FILES, left_of, run_sampled, sampler_of
from tests.support.agents.shell_phone import (
    ALL_SHELLS,
    Phone,
    eventually,
    shell_phone,
    trace_of,
    wait_for_samples,
)


@pytest.fixture(params=ALL_SHELLS)
def phone(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Phone]:
    with shell_phone(request.param, tmp_path) as phone:
        yield phone


def test_a_run_is_sampled_from_its_start_to_its_end(phone: Phone, state: Path) -> None:
    run_sampled(phone, count=5)
    trace = trace_of(phone)
    assert [(policy.name, policy.cores, policy.hardware_max_hz) for policy in trace.policies] == [
        ("policy0", (0,), 1_800_000_000),
        ("policy1", (1,), 2_367_000_000),
    ]
    assert (trace.gpu_name, trace.gpu_max_hz, trace.pause_s) == ("kgsl", 680_000_000, 0.05)
    assert (trace.skipped_lines, trace.is_cut) == (0, False)
    assert len(trace.samples) >= 5
    assert trace.started_uptime_s is not None
    assert trace.ended_uptime_s is not None
    assert trace.started_uptime_s <= trace.samples[0].uptime_s
    assert trace.samples[-1].uptime_s <= trace.ended_uptime_s
    # The run was told to end when the fifth had begun; the last ones may be of a process that has just ended.
    sample = trace.samples[3]
    assert [(clock.limit_hz, clock.current_hz) for clock in sample.clocks] == [
        (1_800_000_000, 1_800_000_000),
        (2_367_000_000, 2_367_000_000),
    ]
    assert (sample.gpu.limit_hz, sample.gpu.current_hz) == (500_000_000, 220_000_000)
    assert (sample.temperatures_c, sample.cooling) == ({"cpu-0": 41.5}, {"thermal-cpufreq-0": 0})
    assert (sample.battery_a, sample.battery_v, sample.battery_charge_ah) == (-0.35, 4.0, 2.5)
    assert sample.charger == "discharging"
    assert sample.allowed_cores
    assert sample.rss_bytes
    assert sample.peak_rss_bytes
    assert sample.rss_bytes <= sample.peak_rss_bytes
    assert sample.swap_bytes is not None
    # Of the busiest process, which may be a child that has ended by the last sample.
    assert any(each.core is not None for each in trace.samples)


def test_a_ceiling_that_falls_and_recovers_within_a_run_is_seen(phone: Phone, state: Path) -> None:
    phone.start(1, "exec sleep 60")
    for khz in (2_367_000, 1_418_000, 2_367_000):
        set_course(state, Course(files={**FILES, **policy_limit(1, khz=khz)}))
        wait_for_samples(phone, 1)
    phone.call("stop", 1)
    phone.call("wait", 1, 20)
    limits = [sample.clocks[1].limit_hz for sample in trace_of(phone).samples]
    changes = [limit for place, limit in enumerate(limits) if place == 0 or limits[place - 1] != limit]
    assert changes == [2_367_000_000, 1_418_000_000, 2_367_000_000]


def test_a_phone_that_has_none_of_the_files_has_samples_of_the_process_only(
    phone: Phone, tmp_path: Path
) -> None:
    phone.env["BENCHFARM_SYS"] = str(tmp_path / "nothing")
    run_sampled(phone)
    trace = trace_of(phone)
    assert (trace.policies, trace.gpu_name, trace.skipped_lines, trace.is_cut) == ((), None, 0, False)
    assert len(trace.samples) >= 2
    last = trace.samples[-1]
    assert replace(
        last, core=None, cpu_s=None, allowed_cores=(), rss_bytes=None, swap_bytes=None, peak_rss_bytes=None
    ) == TraceSample(uptime_s=last.uptime_s)


def test_files_that_cannot_be_read_or_are_empty_are_left_out_and_those_that_vanish_are_unknown(
    phone: Phone, state: Path
) -> None:
    zone, clock = state / "sys/class/thermal/thermal_zone0/temp", "devices/system/cpu/cpufreq/policy1"
    zone.unlink()
    # A folder can be opened and not read, by root neither.
    zone.mkdir()
    (state / "sys/class/power_supply/battery/voltage_now").write_text("")
    phone.start(1, "exec sleep 60")
    trace = phone.folder(1) / "run.trace"
    eventually(lambda: "\ns " in trace.read_text())
    shutil.rmtree(state / "sys" / clock)
    charge = state / "sys/class/power_supply/battery/charge_counter"
    charge.unlink()
    charge.mkdir()
    wait_for_samples(phone, 1)
    phone.call("stop", 1)
    phone.call("wait", 1, 20)
    columns = next(line for line in trace.read_text().splitlines() if line.startswith("columns "))
    assert "zone:" not in columns
    assert "voltage" not in columns
    first, *_, last = trace_of(phone).samples
    assert first.clocks[1].limit_hz == 2_367_000_000
    assert last.clocks[1].limit_hz is None
    assert last.clocks[0].limit_hz == 1_800_000_000
    assert (first.battery_charge_ah, last.battery_charge_ah) == (2.5, None)


def test_of_a_file_with_several_words_or_lines_the_first_word_counts(phone: Phone, state: Path) -> None:
    battery, cooling = state / "sys/class/power_supply/battery", state / "sys/class/thermal/cooling_device0"
    (cooling / "cur_state").write_text("2\n7\n")
    (battery / "voltage_now").write_text("3900000 uV\n")
    phone.start(1, "exec sleep 60")
    trace = phone.folder(1) / "run.trace"
    eventually(lambda: "\ns " in trace.read_text())
    (battery / "status").write_text("Not charging\n")
    (battery / "current_now").write_text("  -350000\n")
    eventually(lambda: trace.read_text().count(" Not .") > 2)
    phone.call("stop", 1)
    phone.call("wait", 1, 20)
    found = trace_of(phone)
    last = found.samples[-1]
    assert found.skipped_lines == 0
    assert (last.cooling, last.battery_v, last.battery_a) == ({"thermal-cpufreq-0": 2}, 3.9, -0.35)


def test_a_driver_that_never_answers_holds_up_nothing(phone: Phone, state: Path) -> None:
    limit = state / "sys/devices/system/cpu/cpufreq/policy1/scaling_max_freq"
    limit.unlink()
    os.mkfifo(limit)
    record = phone.run(1, "exec sleep 0.3")
    assert (record.code, record.timed_out) == (0, False)
    assert trace_of(phone).samples == ()
    eventually(lambda: not left_of(phone))


def test_a_file_that_was_slow_just_once_is_sampled(phone: Phone, state: Path) -> None:
    """As where the sampler had to wait for the CPU."""
    zone = state / "sys/class/thermal/thermal_zone0"
    slow, quick = zone / "temp", zone / "temp.quick"
    slow.rename(quick)
    os.mkfifo(slow)
    phone.start(1, "exec sleep 60")
    # Opened as soon as the sampler reads it.
    with slow.open("w") as pipe:
        quick.rename(slow)
        time.sleep(0.5)
        pipe.write("41500\n")
    wait_for_samples(phone, 1)
    assert trace_of(phone).samples[-1].temperatures_c == {"cpu-0": 41.5}


def test_runs_one_after_the_other_have_a_trace_each(phone: Phone, state: Path) -> None:
    for fence in (1, 2):
        run_sampled(phone, fence)
    first, second = trace_of(phone, 1), trace_of(phone, 2)
    assert first.ended_uptime_s is not None
    assert second.started_uptime_s is not None
    assert first.samples[-1].uptime_s <= first.ended_uptime_s <= second.started_uptime_s


def test_a_run_that_is_not_to_be_sampled_has_no_trace(phone: Phone) -> None:
    phone.sampling = ""
    phone.run(1, "exec sleep 0.2")
    assert not (phone.folder(1) / "run.trace").exists()
    assert not left_of(phone)


@pytest.mark.parametrize(("bound", "expected"), [("", "0"), ("taskset -p 1 $$ >/dev/null;", "1")])
def test_the_sampler_keeps_to_the_slowest_cluster_that_the_run_is_not_bound_to(
    phone: Phone, state: Path, bound: str, expected: str
) -> None:
    if os.sched_getaffinity(0) != {0, 1}:
        pytest.skip("this machine has not just cores 0 and 1")
    phone.start(1, f"{bound} exec sleep 60")
    status = Path(f"/proc/{sampler_of(phone)}/status")
    eventually(lambda: f"\nCpus_allowed_list:\t{expected}\n" in status.read_text())


def test_mksh_starts_no_process_while_it_samples(phone: Phone, state: Path) -> None:
    if not Path(phone.shell[0]).resolve().name.startswith("mksh"):
        pytest.skip("this shell cannot wait by itself")
    phone.start(1, "exec sleep 60")
    sampler, trace = sampler_of(phone), phone.folder(1) / "run.trace"
    eventually(lambda: trace.read_text().count("\ns ") > 2)
    children, count = Path(f"/proc/{sampler}/task/{sampler}/children"), trace.read_text().count("\ns ")
    seen = set()
    while trace.read_text().count("\ns ") < count + 5:
        seen.update(children.read_text().split())
        time.sleep(0.001)
    assert seen == set()


def test_mksh_reads_each_file_in_blocks(phone: Phone, state: Path) -> None:
    if not Path(phone.shell[0]).resolve().name.startswith("mksh"):
        pytest.skip("this shell reads files a byte at a time")
    phone.start(1, "exec sleep 60")
    calls, trace = Path(f"/proc/{sampler_of(phone)}/io"), phone.folder(1) / "run.trace"
    counts = []
    for least in (3, 8):
        eventually(lambda least=least: trace.read_text().count("\ns ") >= least)  # type: ignore[misc]
        counts.append((int(calls.read_text().split()[5]), trace.read_text().count("\ns ")))
    (first, early), (last, late) = counts
    # Two of each file, the second one of its end, five of the status; 119 where each byte is one.
    assert (last - first) / (late - early) < 60


def test_a_run_that_is_over_before_the_usual_pause_is_sampled_all_the_time(phone: Phone) -> None:
    phone.sampling = "60"
    run_sampled(phone, count=5)
    trace = trace_of(phone)
    assert trace.pause_s == 60
    # On a busy machine, the first and the last may find a program that has not begun or is over.
    inner = trace.samples[1:-1]
    assert inner
    assert all(sample.peak_rss_bytes for sample in inner)


def test_after_the_early_samples_the_usual_pause_lies_between_them(phone: Phone) -> None:
    text = SUPERVISOR_SCRIPT.decode()
    assert "readonly EARLY_SAMPLES=20 " in text
    phone.script.write_text(text.replace("EARLY_SAMPLES=20 ", "EARLY_SAMPLES=3 "))
    phone.sampling = "0.4"
    run_sampled(phone, count=6)
    times = [sample.uptime_s for sample in trace_of(phone).samples]
    # The first one, and three more after short pauses; /proc/uptime has steps of 10 ms.
    assert all(after - before > 0.38 for before, after in pairwise(times[3:]))


def test_a_long_run_is_sampled_less_and_less_often(phone: Phone) -> None:
    text = SUPERVISOR_SCRIPT.decode()
    assert "readonly SAMPLES_PER_PAUSE=360\n" in text
    phone.script.write_text(text.replace("SAMPLES_PER_PAUSE=360", "SAMPLES_PER_PAUSE=3"))
    phone.start(1, "exec sleep 60")
    trace = phone.folder(1) / "run.trace"
    eventually(lambda: "\npause 2\n" in trace.read_text())
    lines = re.findall(r"^(pause \S+|s )", trace.read_text(), re.MULTILINE)
    assert lines[:10] == ["pause 0.05", *["s "] * 4, "pause 1", *["s "] * 3, "pause 2"]
