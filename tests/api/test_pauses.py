"""What keeps one request from waiting for another: settings of the interpreter, and a free event loop."""

import asyncio
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from farm.api.app import ROUTERS
from farm.api.http.openapi import DescribedApp

#: Starts a farm, prints the interpreter's settings before and once it listens, and stops it.
_FARM = """
import gc, os, signal, sys
from pathlib import Path
from farm.config import FarmConfig
from farm.daemon import UpOptions, run

def show(*_):
    print(gc.get_freeze_count(), sys.getswitchinterval(), gc.get_threshold()[0], flush=True)

def stop(*_):
    show()
    os.kill(os.getpid(), signal.SIGTERM)

show()
run(UpOptions(config=FarmConfig(data_dir=Path(sys.argv[1]), port=0), agent=False, announce=stop))
"""


@pytest.mark.long
def test_a_farm_that_serves_collects_nothing_of_what_it_is_made_of_and_an_import_changes_nothing(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FARM, str(tmp_path / "farm")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (imported, default_s, default_young), (serving, interval_s, young) = (
        line.split() for line in done.stdout.splitlines()
    )
    assert imported == "0"
    # Modules, classes and routes are hundreds of thousands.
    assert int(serving) > 50_000
    assert float(interval_s) < float(default_s)
    assert int(young) > 10 * int(default_young)


def test_the_event_loop_is_free_while_the_description_is_built() -> None:
    first, second, turns = asyncio.run(_ask_twice_for_the_description())
    assert "/api/v1/health" in first.json()["paths"]
    assert second.content == first.content
    # Each request takes a few dozen of turns itself.
    assert turns > 1000


async def _ask_twice_for_the_description() -> tuple[httpx.Response, httpx.Response, int]:
    """Return both answers, and how often the event loop went round until they were there."""
    app = DescribedApp(ROUTERS, title="farm")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://farm") as http:
        asked = [asyncio.create_task(http.get("/openapi.json")) for _ in range(2)]
        turns = 0
        while not all(task.done() for task in asked):
            await asyncio.sleep(0)
            turns += 1
    first, second = (task.result() for task in asked)
    return first, second, turns
