"""Processes told from strangers."""

import os
import signal
import subprocess

from agents.host.process import command_line, end_process, start_ticks


def test_a_process_that_ignores_the_gentle_signal_is_ended_by_the_next() -> None:
    stubborn = subprocess.Popen(["sh", "-c", "trap '' TERM; echo; read x"], stdin=-1, stdout=-1)
    with stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.read(1)
        assert end_process(stubborn.pid, lambda _: True, deadline_s=0.2)

    assert stubborn.returncode == -signal.SIGKILL


def test_a_stranger_is_not_signalled() -> None:
    with subprocess.Popen(["cat"], stdin=-1, stdout=-1, bufsize=0) as stranger:
        assert stranger.stdin is not None
        assert stranger.stdout is not None
        # Once it answers it is surely cat: right after the spawn, /proc may still show nothing.
        stranger.stdin.write(b"x")
        stranger.stdout.read(1)
        assert end_process(stranger.pid, lambda _: False, deadline_s=1)
        assert start_ticks(stranger.pid) is not None
        assert command_line(stranger.pid) == ["cat"]


def test_a_process_that_is_not_there_is_gone() -> None:
    with subprocess.Popen(["true"]) as ended:
        pass

    assert end_process(ended.pid, lambda _: True, deadline_s=1)
    assert start_ticks(ended.pid) is None
    assert command_line(ended.pid) == []


def test_the_start_of_a_living_process_does_not_change() -> None:
    assert start_ticks(os.getpid()) == start_ticks(os.getpid()) is not None
