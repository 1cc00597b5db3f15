"""A storm that breaks off leaves nothing behind, whatever stood still at that moment."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.host.process import command_line, start_ticks
from tests.chaos.testbed.testbed import set_arena, stopped
from tests.support.farm.processes import eventually


class BrokenOffError(Exception):
    """What a test that fails raises."""


def _working_in(folder: Path) -> Iterator[list[str]]:
    for name in os.listdir("/proc"):  # noqa: PTH208 - ten times as quick
        if name.isdigit() and str(folder) in " ".join(words := command_line(int(name))):
            yield words


def _breaks_off(folder: Path, pids: list[int]) -> None:
    """Everything there is stands still, and the test fails."""
    with set_arena(folder, agents=1, phones=1) as arena:
        (agent,), (phone,) = arena.agents, arena.phones
        pids += [arena.farms[0].pid, agent.pid, agent.adb_server_pid(), phone.pid]
        for pid in pids:
            stopped(pid)
        assert len(list(_working_in(folder))) >= 3
        raise BrokenOffError


@pytest.mark.long
def test_all_processes_are_gone_when_a_test_fails_while_they_stand_still(tmp_path: Path) -> None:
    pids: list[int] = []
    with pytest.raises(BrokenOffError):
        _breaks_off(tmp_path, pids)
    assert len(pids) == 4
    eventually(lambda: not any(map(start_ticks, pids)), "they are gone", within_s=120)
    assert list(_working_in(tmp_path)) == []
