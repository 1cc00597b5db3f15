"""The supervisor script under every shell it must run under, with only toybox's applets under mksh."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.device.run.run_control import SUPERVISOR_SCRIPT
from agents.host.process import stat_fields
from farm.phone.adb.shell_output import exit_record
from tests.support.agents.shell_phone import (
    ALL_SHELLS,
    Phone,
    alive,
    eventually,
    of_session,
    shell_phone,
    written_pid,
)

REFUSED, MISSING, RUNNING, LOST = 10, 11, 12, 13


@pytest.fixture(params=ALL_SHELLS)
def phone(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Phone]:
    with shell_phone(request.param, tmp_path) as phone:
        yield phone


@pytest.mark.parametrize("code", [0, 7, 255])
def test_an_exit_code_is_recorded(phone: Phone, code: int) -> None:
    record = phone.run(1, f"exit {code}")
    assert (record.code, record.timed_out) == (code, False)


@pytest.mark.parametrize(("name", "code"), [("SEGV", 139), ("KILL", 137)])
def test_a_death_by_signal_is_128_more_than_the_signal(phone: Phone, name: str, code: int) -> None:
    assert phone.run(1, f"kill -s {name} $$").code == code


def test_an_exit_record_is_synced_before_it_gets_its_name(phone: Phone, tmp_path: Path) -> None:
    """A power cut leaves no record, or a whole one, and never an empty one that says the run has ended."""
    log = tmp_path / "synced"
    # Android 8 has no `fsync`, and then `sync` is asked.
    for name in ("fsync", "sync"):
        applet = tmp_path / "bin" / name
        applet.unlink(missing_ok=True)
        applet.write_text(
            f'#!{tmp_path}/bin/sh\n[ -e "${{1%.new}}" ] && named=1\n'
            f"echo \"{name} ${{1##*/}} ${{named:-}}\" >>'{log}'\nexit 1\n"
        )
        applet.chmod(0o755)
    phone.run(1, "true")
    assert log.read_text().splitlines() == ["fsync exit.new ", "sync exit.new "]


def test_a_short_run_is_over_when_its_program_is(phone: Phone) -> None:
    for fence in range(1, 26):
        assert phone.start(fence, "exit 0") == 0
        # A watchdog that sleeps on would take its whole nap of 30 s: mksh can lose a signal.
        assert phone.call("wait", fence, 20) == 0


def test_a_run_leaves_no_process_behind(phone: Phone) -> None:
    phone.run(1, "exit 0")
    supervisor = int((phone.folder(1) / "supervisor").read_text().split()[0])
    eventually(lambda: not of_session(supervisor))


def test_a_command_that_does_not_exist_is_127(phone: Phone) -> None:
    assert phone.run(1, "exec no-such-program").code == 127


def test_both_outputs_are_kept_apart_and_whole(phone: Phone) -> None:
    phone.run(1, "echo out; echo err >&2; printf last")
    assert (phone.folder(1) / "stdout").read_text() == "out\nlast"
    assert (phone.folder(1) / "stderr").read_text() == "err\n"


def test_the_duration_is_the_runs_own_by_the_phones_clock(phone: Phone) -> None:
    assert 0.3 <= phone.run(1, "sleep 0.3").duration_s < 5


def test_a_run_sees_its_fence_its_folder_and_no_open_descriptors_of_ours(phone: Phone) -> None:
    phone.run(1, 'echo "$BENCHFARM_RUN"; pwd; for f in /proc/$$/fd/*; do echo "${f##*/}"; done')
    fence, folder, *descriptors = (phone.folder(1) / "stdout").read_text().splitlines()
    assert (fence, folder) == ("1", str(phone.folder(1)))
    targets = {int(number) for number in descriptors}
    assert {0, 1, 2} <= targets
    assert 9 not in targets


def test_the_supervisor_and_the_harness_live_in_two_sessions_away_from_the_caller(phone: Phone) -> None:
    assert phone.start(1, "exec sleep 60") == 0
    supervisor, harness = [
        int((phone.folder(1) / name).read_text().split()[0]) for name in ("supervisor", "harness")
    ]
    eventually(lambda: os.getsid(harness) == harness)
    assert os.getsid(supervisor) == supervisor
    assert os.getsid(0) not in {supervisor, harness}


def test_a_time_out_kills_the_whole_tree_even_what_ignores_the_polite_signal(phone: Phone) -> None:
    stubborn = "trap '' TERM; echo $$ >PID; while :; do sleep 0.2; done"
    program = f"""
        sh -c "{stubborn.replace("PID", "child").replace("$", chr(92) + "$")}" &
        setsid sh -c 'echo $$ >detached; exec sleep 60' &
        sh -c 'sh -c "echo \\$\\$ >grandchild; exec sleep 60" & wait' &
        wait"""
    # In this time the shells start and set their traps, on a busy machine, too.
    record = phone.run(1, program, timeout_s=6)
    assert record.timed_out
    assert record.code == 143
    for name in ("child", "detached", "grandchild"):
        assert not alive(written_pid(phone.folder(1) / name))


def test_a_harness_that_ignores_the_polite_signal_is_killed(phone: Phone) -> None:
    # In this time the shell starts and sets its trap, on a busy machine, too.
    record = phone.run(1, "trap '' TERM; while :; do sleep 0.2; done", timeout_s=5)
    assert (record.code, record.timed_out) == (137, True)


def test_a_run_whose_folder_is_gone_is_ended_at_its_time_out(phone: Phone) -> None:
    phone.start(1, "exec sleep 600", timeout_s=1)
    pids = [int((phone.folder(1) / name).read_text().split()[0]) for name in ("supervisor", "harness")]
    shutil.rmtree(phone.folder(1))
    eventually(lambda: not any(map(alive, pids)))


def test_killing_the_harnesss_group_leaves_an_exit_record(phone: Phone) -> None:
    phone.start(1, "sleep 60; exit 3")
    harness = int((phone.folder(1) / "harness").read_text().split()[0])
    eventually(lambda: os.getpgid(harness) == harness)
    os.killpg(harness, signal.SIGKILL)
    assert phone.call("wait", 1, 30) == 0
    assert phone.record(1).code == 137


def test_what_the_harness_left_in_its_session_is_gone_when_the_record_is_there(phone: Phone) -> None:
    phone.run(1, "sleep 60 & echo $! >child; exit 0")
    assert not alive(written_pid(phone.folder(1) / "child"))


@pytest.mark.invariant("I8")
def test_a_second_start_does_nothing(phone: Phone) -> None:
    phone.run(1, "echo again >>count")
    assert phone.call("start", 1, 600) == 0
    assert (phone.folder(1) / "count").read_text() == "again\n"


@pytest.mark.invariant("I8")
def test_starts_at_the_same_time_make_one_run(phone: Phone) -> None:
    phone.prepare(1, "echo again >>count; sleep 0.3")
    words = [*phone.shell, str(phone.script), "start", str(phone.work), "1", "600"]
    starts = [subprocess.Popen(words, env=phone.env) for _ in range(4)]
    assert [start.wait(30) for start in starts] == [0] * 4
    assert phone.call("wait", 1, 30) == 0
    assert (phone.folder(1) / "count").read_text() == "again\n"


@pytest.mark.invariant("I8")
@pytest.mark.fault(13)
def test_a_run_whose_supervisor_was_killed_is_lost_and_does_not_start_again(phone: Phone) -> None:
    phone.start(1, "echo again >>count; sleep 60")
    eventually((phone.folder(1) / "count").exists)
    os.kill(int((phone.folder(1) / "supervisor").read_text().split()[0]), signal.SIGKILL)
    eventually(lambda: phone.call("wait", 1) == LOST)
    assert phone.call("start", 1, 600) == 0
    assert (phone.folder(1) / "count").read_text() == "again\n"


@pytest.mark.invariant("I3", "I8")
def test_a_lower_fence_is_refused(phone: Phone) -> None:
    assert phone.call("fence", 5) == 0
    assert phone.start(4, "echo no >ran") == REFUSED
    assert phone.call("fence", 4) == REFUSED
    assert phone.start(5, "exit 0") == 0
    assert not (phone.folder(4) / "ran").exists()
    assert (phone.work / "fence").read_text() == "5\n"


@pytest.mark.invariant("I8")
def test_a_run_that_was_cleaned_up_never_starts(phone: Phone) -> None:
    assert phone.call("clean", 5) == 0
    assert phone.start(5, "exit 0") == REFUSED
    assert phone.start(6, "exit 0") == 0


@pytest.mark.invariant("I3", "I8")
def test_a_number_that_no_run_has_gives_way_to_the_farms_and_nothing_lives_on(phone: Phone) -> None:
    phone.start(6, f"echo $$ >'{phone.work}/pid'; exec sleep 60")
    running = written_pid(phone.work / "pid")
    for name in ("fence", "cleaned"):
        (phone.work / name).write_text("900000000\n")
    assert phone.start(8, "exit 0") == REFUSED
    assert phone.call("reset", 7) == 0
    eventually(lambda: not alive(running))
    assert [(phone.work / name).read_text() for name in ("fence", "cleaned")] == ["7\n", "7\n"]
    assert not phone.folder(6).exists()
    assert phone.start(7, "exit 0") == REFUSED
    assert phone.start(8, "exit 0") == 0


def test_waiting_tells_running_from_unknown(phone: Phone) -> None:
    assert phone.call("wait", 1) == MISSING
    phone.start(1, "sleep 60")
    assert phone.call("wait", 1) == RUNNING
    assert phone.call("wait", 1, 1) == RUNNING


def test_waiting_costs_no_cpu(phone: Phone) -> None:
    phone.start(1, "exec sleep 60")
    supervisor = int((phone.folder(1) / "supervisor").read_text().split()[0])
    # It has said that the run is started, and may just be going to wait for its end.
    eventually(lambda: _state(supervisor) == "S")
    before = _cpu_ticks(supervisor)
    assert phone.call("wait", 1, 1) == RUNNING
    assert _cpu_ticks(supervisor) == before


def _state(pid: int) -> str:
    return stat_fields(pid)[0]


def _cpu_ticks(pid: int) -> int:
    return sum(int(ticks) for ticks in stat_fields(pid)[11:15])


def test_stop_ends_a_run_and_leaves_its_record(phone: Phone) -> None:
    phone.start(1, "sleep 60")
    assert phone.call("stop", 1) == 0
    assert phone.call("wait", 1, 30) == 0
    assert (phone.record(1).code, phone.record(1).timed_out) == (143, False)


@pytest.mark.invariant("I7")
@pytest.mark.fault(14)
def test_clean_finds_a_detached_child_that_went_elsewhere(phone: Phone) -> None:
    phone.run(
        1,
        'setsid sh -c \'cd /; echo $$ >"$1/child"; exec sleep 60\' x "$PWD" & until [ -s child ]; do :; done',
    )
    child = written_pid(phone.folder(1) / "child")
    assert alive(child)
    assert phone.call("clean", 1) == 0
    assert not alive(child)


@pytest.mark.invariant("I7")
@pytest.mark.fault(14)
def test_clean_finds_a_child_that_threw_its_environment_away(phone: Phone) -> None:
    phone.run(1, "env -i setsid sh -c 'echo $$ >child; exec /bin/sleep 60' & until [ -s child ]; do :; done")
    child = written_pid(phone.folder(1) / "child")
    assert alive(child)
    assert phone.call("clean", 1) == 0
    assert not alive(child)


@pytest.mark.invariant("I8")
@pytest.mark.fault(22)
def test_clean_ends_a_run_under_way_with_its_supervisor(phone: Phone) -> None:
    phone.start(1, "sleep 60")
    supervisor, harness = [
        int((phone.folder(1) / name).read_text().split()[0]) for name in ("supervisor", "harness")
    ]
    assert phone.call("clean", 1) == 0
    assert not alive(supervisor)
    assert not alive(harness)
    assert not phone.folder(1).exists()


def test_clean_leaves_newer_runs_alone(phone: Phone) -> None:
    phone.start(1, "sleep 60")
    phone.start(2, "echo 2 >ran; exec sleep 60")
    assert phone.call("clean", 1) == 0
    assert not phone.folder(1).exists()
    assert phone.call("wait", 2) == RUNNING


def test_clean_leaves_the_runs_of_another_phone_on_the_same_kernel_alone(
    phone: Phone, tmp_path: Path
) -> None:
    other = Phone(shell=phone.shell, env=phone.env, work=tmp_path / "other")
    other.start(1, "sleep 60")
    phone.start(1, "sleep 60")
    assert phone.call("clean", 1) == 0
    assert other.call("wait", 1) == RUNNING
    assert other.call("clean", 1) == 0


@pytest.mark.parametrize("same", ["boot", "birth"])
def test_clean_never_kills_a_process_that_only_has_a_recorded_number(phone: Phone, same: str) -> None:
    """Not even with the recorded start time, which counts from the boot."""
    phone.run(1, "exit 0")
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        born = Path(f"/proc/{stranger.pid}/stat").read_text().rpartition(")")[2].split()[19]
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        record = f"{stranger.pid} 1 {boot_id}" if same == "boot" else f"{stranger.pid} {born} another-boot"
        for name in ("harness", "supervisor"):
            (phone.folder(1) / name).write_text(f"{record}\n")
        assert phone.call("clean", 1) == 0
        assert stranger.poll() is None
        stranger.kill()


def test_a_run_outlives_the_hang_up_of_the_shell_that_started_it(phone: Phone) -> None:
    phone.prepare(1, "sleep 0.5; echo done")
    words = [
        *phone.shell,
        "-c",
        '"$@"; kill -s HUP $$',
        "x",
        *phone.shell,
        str(phone.script),
        "start",
        str(phone.work),
        "1",
        "600",
    ]
    with subprocess.Popen(words, env=phone.env, start_new_session=True) as shell:
        shell.wait(30)
    assert phone.call("wait", 1, 30) == 0
    assert (phone.folder(1) / "stdout").read_text() == "done\n"


def test_the_script_names_no_gnu_option() -> None:
    assert re.search(r"\s--[a-z]", SUPERVISOR_SCRIPT.decode()) is None


def test_the_cpu_time_of_a_run_and_of_what_it_waited_for_is_recorded(phone: Phone) -> None:
    burn = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done"
    busy, idle = phone.run(1, f"sh -c '{burn}'"), phone.run(2, "sleep 0.5")
    assert busy.cpu_s is not None
    assert idle.cpu_s is not None
    assert busy.cpu_s >= 0.02
    assert idle.cpu_s < 0.2 < idle.duration_s


def start_part(phone: Phone, fence: int, program: str) -> Path:
    """A further command of a run that has ended."""
    folder = phone.folder(fence) / "pass.placement"
    folder.mkdir(parents=True)
    (folder / "run.sh").write_text(f"cd '{phone.folder(fence)}' || exit 126\n{program}\n")
    assert phone.call("start", fence, 600, "pass.placement") == 0
    return folder


def test_a_part_of_a_run_has_a_record_of_its_own_and_the_runs_stays(phone: Phone) -> None:
    phone.run(1, "echo measured; exit 3")
    folder = start_part(phone, 1, "echo told")
    assert phone.call("wait", 1, 60, "pass.placement") == 0
    ended = exit_record((folder / "exit").read_text())
    assert ended is not None
    assert (ended.code, phone.record(1).code) == (0, 3)
    assert (phone.folder(1) / "stdout").read_text() == "measured\n"
    assert (folder / "stdout").read_text() == "told\n"


def test_the_clean_up_of_a_run_ends_its_parts_with_all_they_started(phone: Phone) -> None:
    phone.run(1, "true")
    folder = start_part(phone, 1, "sleep 600 & echo $! >child; setsid sleep 600 & echo $! >away; sleep 600")
    pids = [written_pid(phone.folder(1) / name) for name in ("child", "away")]
    supervisor = int((folder / "supervisor").read_text().split()[0])
    assert phone.call("clean", 1) == 0
    assert not any(map(alive, [*pids, supervisor]))
    assert not phone.folder(1).exists()


def test_a_part_that_takes_too_long_is_ended_and_says_so(phone: Phone) -> None:
    phone.run(1, "true")
    folder = phone.folder(1) / "pass.placement"
    folder.mkdir()
    (folder / "run.sh").write_text("sleep 600 & sleep 600\n")
    assert phone.call("start", 1, 5, "pass.placement") == 0
    assert phone.call("wait", 1, 60, "pass.placement") == 0
    ended = exit_record((folder / "exit").read_text())
    assert ended is not None
    assert ended.timed_out
