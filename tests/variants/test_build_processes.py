"""Processes of a build: none is left, however the build or the one who asked for it ends."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

#: A build imports torch, which takes a minute where others want the cores too.
pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
#: A process that holds a pipe, as those that compile and time schedules hold what they inherit.
NETS = """
import os, signal, subprocess, time
from torch import nn

def started():
    pipe = os.open("PIPE", os.O_WRONLY)
    subprocess.Popen(["sleep", "250"], stderr=pipe)
    os.write(pipe, b"started")

def waiting():
    started()
    time.sleep(250)

def crashing():
    started()
    os.kill(os.getpid(), signal.SIGKILL)

def ending():
    started()
    return nn.Linear(2, 2)
"""
BUILD = """
import signal
import sys
from pathlib import Path

from farm.core.errors import FarmError
from farm.core.models.variant import Format, Precision, Recipe
from farm.variants.build import build_variants
from farm.variants.sources.source import parse_source

# Ignored by all that nohup starts.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
folder = Path(sys.argv[1])
source = parse_source(sys.argv[2], inputs=["1x2:float32"], folder=folder)
recipe = Recipe(precision=Precision.FLOAT32, format=Format.TORCHSCRIPT)
try:
    [built] = build_variants(source, [recipe], folder / "out")
    print("built")
except FarmError as error:
    print(error.message)
"""


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[int]:
    """The end of a pipe that reads, while each process of a build may hold the one that writes."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    (tmp_path / "nets.py").write_text(NETS.replace("PIPE", str(path)))
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield end
    os.close(end)


def asking(folder: Path, factory: str) -> "subprocess.Popen[str]":
    """A process that builds a network."""
    words = [sys.executable, "-c", BUILD, str(folder), f"nets:{factory}"]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def read(pipe: int, timeout_s: float) -> bytes:
    """What was written; nothing when no process holds the pipe any more."""
    ready, _, _ = select.select([pipe], [], [], timeout_s)
    assert ready, "a process still holds the pipe"
    return os.read(pipe, 100)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_build_ends_with_the_process_that_asked_for_it(
    number: signal.Signals, pipe: int, tmp_path: Path
) -> None:
    with asking(tmp_path, "waiting") as process:
        try:
            assert read(pipe, 200) == b"started"
        finally:
            process.send_signal(number)
    assert process.returncode == -number
    assert read(pipe, 30) == b""


@pytest.mark.parametrize(
    ("factory", "said"), [("crashing", "killed by signal 9"), ("ending", "built")], ids=["crash", "success"]
)
def test_what_a_build_started_ends_with_it(factory: str, said: str, pipe: int, tmp_path: Path) -> None:
    with asking(tmp_path, factory) as process:
        assert read(pipe, 200) == b"started"
        printed, _ = process.communicate(timeout=60)
    assert said in printed
    assert read(pipe, 30) == b""
