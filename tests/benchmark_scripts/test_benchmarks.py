"""Each benchmark runs in its short form and prints its table; how quick anything was is none of a test's."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

_BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
_PROMISED = {
    "overhead": [
        "adb shell by hand",
        "through the farm",
        "wall time   farm / hand",
        "own medians farm / hand",
    ],
    "push": ["adb push", "the agent, push alone", "speed of a cold push", "warm push: 0 bytes sent"],
    "dispatch": ["claim of 10 phones", "benchfarm on SQLite", "a matrix of 4,000 cells", "idle agents"],
    "calibration": [
        "A/A alarms, iid",
        "coverage of a true 3 %",
        "80 equal rows",
        "matrices that grow",
        "at any of 20 looks, pooled",
        "A/A gates of 8 cells that fail, of 200",
        "A/A gates of 8 cells, --decide, that fail, of 200",
        "starts for the half-width of 49 pairs",
    ],
    "history": [
        "latest speedup over all devices",
        "x that at half of the history",
        "a search for changes",
        "with their points",
    ],
    "page": ["first byte", "its SQL", "open tabs, nothing changes"],
    "pauses": ["full collection, CPU", "GET beside 2 threads, longest"],
    "cancel": ["SQLite      2,000 jobs", "times the bare statements", "the longest of"],
    "client_samples": [
        "samples(), unpacked",
        "numbers in JSON / samples(), CPU",
        "a million samples as a frame",
    ],
    "sampler": ["1 core, sh", "sampled / without", "of one core"],
    "fleet": ["1 x 0.2 s", "2 x 0.2 s", "2 beside one hung", "throughput of the others while a phone hangs"],
}


@pytest.mark.timeout(660)
@pytest.mark.parametrize("name", _PROMISED)
def test_a_benchmark_prints_its_table_and_the_machine_it_ran_on(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(_BENCHMARKS / f"{name}.py"), "--quick"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for words in ("cores", "Python", "load:", *_PROMISED[name]):
        assert words in done.stdout


def test_a_history_that_has_no_half_is_refused() -> None:
    script = [sys.executable, str(_BENCHMARKS / "history.py"), "--matrices", "1"]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--matrices must be 2 at least: half of them is measured first" in done.stderr


def test_an_interrupted_benchmark_leaves_no_process_behind(tmp_path: Path) -> None:
    bench = subprocess.Popen(
        [sys.executable, str(_BENCHMARKS / "fleet.py"), "--quick", "--phones", "1"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline_s = time.monotonic() + 60
    while not list(tmp_path.glob("benchfarm-*/phones/*/phone.json")):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    bench.send_signal(signal.SIGINT)
    assert bench.wait(60) != 0
    # A device that was told to end may take a moment, on a busy machine.
    deadline_s = time.monotonic() + 20
    while _working_in(tmp_path) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert _working_in(tmp_path) == []
    assert list(tmp_path.glob("benchfarm-*")) == []


def _working_in(folder: Path) -> list[str]:
    """The command lines of processes that know of the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found
