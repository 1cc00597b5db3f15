"""A beat does not wait for a disk: names are looked up while every thread for files is busy."""

import asyncio
import os
from pathlib import Path

import pytest

from agents.adb.sync import open_source

pytestmark = pytest.mark.anyio

#: More than asyncio's own threads, on any machine.
MANY = 40


@pytest.mark.fault(28)
async def test_a_name_is_looked_up_while_a_disk_holds_up_all_that_is_pushed(tmp_path: Path) -> None:
    slow = [tmp_path / str(number) for number in range(MANY)]
    for path in slow:
        os.mkfifo(path)
    opening = [asyncio.create_task(open_source(path)) for path in slow]
    try:
        await asyncio.sleep(0)
        async with asyncio.timeout(120):
            assert await asyncio.get_running_loop().getaddrinfo("localhost", 80)
        assert not any(task.done() for task in opening)
    finally:
        # Whoever waits for a writer has one now.
        writers = [os.open(path, os.O_RDWR) for path in slow]
        for source in await asyncio.gather(*opening):
            source.close()
        for writer in writers:
            os.close(writer)
