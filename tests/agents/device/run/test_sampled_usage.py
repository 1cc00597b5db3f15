"""Samples tell what a run and its children use of CPU and memory, under every shell."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

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


@pytest.mark.long
def test_cpu_time_tells_a_busy_run_from_an_idle_one(phone: Phone) -> None:
    phone.start(1, "while :; do :; done")
    eventually(lambda: cpu_s_of(phone, 1) > 0.1)
    # The measured process waits, and its child works; that counts at its end, which a sample has to follow.
    phone.start(
        2, "(i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done) & wait; touch worked; exec sleep 60"
    )
    eventually((phone.folder(2) / "worked").exists)
    phone.start(3, "exec sleep 60")
    for fence in (2, 3):
        wait_for_samples(phone, fence)
    assert cpu_s_of(phone, 3) < 0.1 < cpu_s_of(phone, 2)


def cpu_s_of(phone: Phone, fence: int) -> float:
    """The CPU time of a run at its last sample, in seconds; 0 before the first."""
    samples = trace_of(phone, fence).samples
    cpu_s = samples[-1].cpu_s if samples else 0.0
    assert cpu_s is not None
    return cpu_s


def test_the_memory_of_children_counts(phone: Phone) -> None:
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        pytest.skip("this kernel lists no children (CONFIG_PROC_CHILDREN)")
    phone.start(1, "sleep 60 & sleep 60 & wait")
    # Both may not be there at the first sample.
    wait_for_samples(phone, 1)
    lines = (phone.folder(1) / "run.trace").read_text().splitlines()
    columns = next(line for line in lines if line.startswith("columns ")).split()
    widths = {len(line.split()) for line in lines if line.startswith("s ")}
    # The mark, the time and the end beside the values; six values of each child.
    assert max(widths) == len(columns) - 1 + 3 + 2 * 6
    assert trace_of(phone).skipped_lines == 0
