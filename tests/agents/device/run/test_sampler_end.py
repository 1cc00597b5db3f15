"""The end of the sampler: with its run or before it, it leaves nothing behind."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.device.run.run_control import SUPERVISOR_SCRIPT
from tests.agents.device.run.sampled_runs import DONE, LOST, UNTIL_OVER, left_of, sampler_of, supervisor_of
from tests.support.agents.shell_phone import ALL_SHELLS, Phone, alive, eventually, shell_phone, trace_of


@pytest.fixture(params=ALL_SHELLS)
def phone(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Phone]:
    with shell_phone(request.param, tmp_path) as phone:
        yield phone


def test_a_sampler_that_dies_first_costs_its_samples_and_nothing_else(phone: Phone, state: Path) -> None:
    phone.start(1, f"until [ -e '{state}/go' ]; do sleep 0.05; done; exit 3")
    trace = phone.folder(1) / "run.trace"
    eventually(lambda: trace.read_text().count("\ns ") > 2)
    sampler = sampler_of(phone)
    os.kill(sampler, signal.SIGKILL)
    eventually(lambda: not alive(sampler))
    count = trace.read_text().count("\ns ")
    (state / "go").touch()
    assert phone.call("wait", 1, 20) == DONE
    assert phone.record(1).code == 3
    assert trace.read_text().count("\ns ") == count
    assert trace_of(phone).ended_uptime_s is not None


def test_a_full_disk_costs_samples_and_nothing_else(phone: Phone) -> None:
    phone.prepare(1, "exec sleep 0.4")
    (phone.folder(1) / "run.trace").symlink_to("/dev/full")
    assert phone.call("start", 1, 600) == DONE
    assert phone.call("wait", 1, 20) == DONE
    assert phone.record(1).code == 0
    eventually(lambda: not left_of(phone))


def test_the_sampler_holds_neither_the_lock_nor_the_runs_output(phone: Phone) -> None:
    phone.start(1, "exec sleep 60")
    sampler = sampler_of(phone)
    targets = {str(path.readlink()) for path in Path(f"/proc/{sampler}/fd").iterdir()}
    folder = str(phone.folder(1))
    assert {target for target in targets if target.startswith(folder)} == {f"{folder}/run.trace"}


def test_the_sampler_ends_with_the_run(phone: Phone) -> None:
    phone.start(1, UNTIL_OVER)
    sampler = sampler_of(phone)
    (phone.folder(1) / "over").touch()
    assert phone.call("wait", 1, 20) == DONE
    eventually(lambda: not alive(sampler) and not left_of(phone))


def test_the_sampler_ends_by_itself_when_the_run_is_over_and_no_one_ends_it(phone: Phone) -> None:
    phone.start(1, UNTIL_OVER)
    sampler = sampler_of(phone)
    os.kill(supervisor_of(phone), signal.SIGKILL)
    (phone.folder(1) / "over").touch()
    eventually(lambda: not alive(sampler))
    assert phone.call("wait", 1) == LOST


def instrumented(shell: str) -> tuple[str, int]:
    """The script with a place to die before each line of the sampler, and the number of these places."""
    lines = SUPERVISOR_SCRIPT.decode().splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("# Samples what"))
    begin = next(place for place, line in enumerate(lines) if line.startswith("begin_sampling()"))
    end = next(place for place, line in enumerate(lines) if line.startswith("# Ends the watchdog's nap"))
    last = next(place for place, line in enumerate(lines) if line.startswith("# The on-phone supervisor"))
    places, text = 0, list(lines)
    for place in sorted({*range(first, last), *range(begin + 1, end)}, reverse=True):
        # Before a `do`, the new line's status would take the place of the loop's condition.
        if not lines[place].startswith("  ") or lines[place].strip() == "do":
            continue
        trial = [*text[:place], f'  [ "${{DIE_AT:-}}" != {places} ] || kill -s KILL $$', *text[place:]]
        if subprocess.run([shell, "-n"], input="\n".join(trial).encode(), check=False).returncode == 0:
            text, places = trial, places + 1
    return "\n".join([*text, ""]), places


@pytest.mark.parametrize(
    ("first", "every"), [(0, 24), *(pytest.param(first, 8, marks=pytest.mark.long) for first in range(8))]
)
def test_a_kill_at_any_line_leaves_nothing_behind(phone: Phone, state: Path, first: int, every: int) -> None:
    text, places = instrumented(phone.shell[0])
    assert places > 100
    phone.script.write_text(text)
    for fence, place in enumerate(range(first, places, every), start=1):
        phone.env["DIE_AT"] = str(place)
        assert phone.start(fence, "exec sleep 0.1") in (DONE, LOST)
        assert phone.call("wait", fence, 20) in (DONE, LOST)
        assert phone.call("clean", fence) == DONE
        assert not left_of(phone), place
        assert not phone.folder(fence).exists()
    del phone.env["DIE_AT"]
