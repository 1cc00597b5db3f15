"""A bundle of one's own on a phone: registered, tried, and put to work, with real processes all the way."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.device.paths import cache_folder
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.base.ids import digest_of
from tests.support.fakes import failing_program, stand_in_model, unsteady_program
from tests.support.farm.processes import (
    AgentProcess,
    FarmProcess,
    running_agent,
    running_farm,
    running_phones,
)
from tests.support.invariants.invariants import check_invariants

pytestmark = pytest.mark.long

HARNESS = "speed_benchmark_torch"
#: Prints what the tool prints, with numbers from the files that lie beside it.
SCRIPT = rb"""#!/bin/sh
# knows --iter --warmup --pthreadpool_size --use_bundled_input
. "$TABLES/words.sh"
for word; do
  case $word in --iter=*) iter=${word#*=} ;; esac
done
for number in $(head -n "$iter" data/numbers); do
  echo "$observed$number\"}"
done
echo "$last"
"""
WORDS = b"""observed='PyTorchObserver {"type": "NET", "unit": "us", "metric": "latency", "value": "'
last='Main run finished. Microseconds per iter: 1100. Iters per second: 909.091'
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FarmProcess, VirtualDeviceHandle]]:
    folder = tmp_path_factory.mktemp("lab")
    with (
        running_farm(FarmProcess(folder / "farm")) as farm,
        running_phones(1, folder / "phones") as phones,
        running_agent(AgentProcess(farm, folder / "agent", phones, host="bench-1")),
    ):
        for precision in ("float32", "int8-core"):
            farm.register_model(*stand_in_model(precision))
        farm.await_phones(phones)
        yield farm, phones[0]
        check_invariants(farm.database_path)


def command(farm: FarmProcess, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "farm.cli.shell.main", *words],
        env={**os.environ, "FARM_URL": farm.url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def bundle_folder(folder: Path, *, numbers: str) -> Path:
    for path, content in (
        ("bench", SCRIPT),
        ("lib/words.sh", WORDS),
        ("data/numbers", numbers.encode()),
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    (folder / "bench").chmod(0o755)
    return folder


def test_a_bundle_is_registered_and_tried_and_its_shared_files_are_on_the_phone_once(
    lab: tuple[FarmProcess, VirtualDeviceHandle], tmp_path: Path
) -> None:
    farm, phone = lab
    for numbers in ("1000\n1100\n1200\n", "1100\n1100\n1100\n"):
        folder = bundle_folder(tmp_path, numbers=numbers)
        added = farm.cli(
            *("harness", "add", HARNESS, str(folder), "--abi", "x86_64"), "--env", "TABLES=${work}/lib"
        )
        assert added["program"]["in_use"]
        words = ("harness", "test", HARNESS, "--device", phone.serial)
        tried = farm.cli(*words, "--backend", "cpu", "--model", "mobilenet_v2/float32/torchscript")
        assert tried["outcome"] == "succeeded"
    done = command(farm, *words, "--", "--iter", "3")
    assert (done.returncode, done.stderr.splitlines()[0][:6]) == (0, "Using ")
    for said in ("--iter=3", "code 0", "time     1.10 ms, the median of 3 samples", "Main run finished"):
        assert said in done.stdout
    work_root = phone.state / "data/local/tmp"
    cached = [path.read_bytes() for path in Path(cache_folder(str(work_root))).iterdir()]
    assert cached.count(WORDS) == 1
    assert b"1000\n1100\n1200\n" in cached


def test_a_program_that_fails_is_shown_with_why_and_its_blame_as_exit_code(
    lab: tuple[FarmProcess, VirtualDeviceHandle], tmp_path: Path
) -> None:
    farm, phone = lab
    program = tmp_path / "bench"
    program.write_bytes(failing_program("echo loading >&2; kill -s SEGV $$"))
    assert command(farm, "harness", "add", HARNESS, str(program), "--abi", "x86_64").returncode == 0
    done = command(farm, "harness", "test", HARNESS, "--device", phone.serial)
    assert done.returncode == 3
    assert "[run.crashed]" in done.stdout
    assert "stderr: 1 line\n  loading\n" in done.stdout


def test_a_run_that_is_too_noisy_is_shown_as_such_and_not_repeated(
    lab: tuple[FarmProcess, VirtualDeviceHandle], tmp_path: Path
) -> None:
    farm, phone = lab
    program = tmp_path / "bench"
    program.write_bytes(unsteady_program(noisy_every=1))
    assert command(farm, "harness", "add", HARNESS, str(program), "--abi", "x86_64").returncode == 0
    done = command(farm, "harness", "test", HARNESS, "--device", phone.serial)
    assert done.returncode == 0, done.stderr
    assert "quality  noisy" in done.stdout
    newest = farm.cli("matrix", "list")[0]
    assert newest["name"] == "harness test"
    assert newest["finished_at"] is not None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--device", "nowhere"), "nowhere"),
        (("--device", "PHONE", "--model", "nothing"), "nothing"),
        (("--device", "PHONE", "--", "--itre=3"), "did you mean `iter`?"),
        (("--device", "PHONE", "--backend", "gpu"), "gpu"),
    ],
)
def test_what_cannot_be_tried_is_the_users_fault_with_a_hint(
    lab: tuple[FarmProcess, VirtualDeviceHandle], words: tuple[str, ...], said: str
) -> None:
    farm, phone = lab
    named = [phone.serial if word == "PHONE" else word for word in words]
    done = command(farm, "harness", "test", HARNESS, *named)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "\nhint: " in done.stderr


def test_a_matrix_of_a_script_for_any_phone_runs_where_nothing_was_built(
    lab: tuple[FarmProcess, VirtualDeviceHandle], tmp_path: Path
) -> None:
    farm, phone = lab
    definition = tmp_path / "hello.yaml"
    definition.write_text("name: hello\n")
    script = tmp_path / "hello.sh"
    # Whole processes are timed in steps of 10 ms; one that ends within a step has no time.
    script.write_bytes(b"#!/bin/sh\nsleep 0.1\necho hello\n")
    words = ("harness", "add", "hello", str(script), "--definition", str(definition))
    program = farm.cli(*words)["program"]
    assert (program["abi"], program["digest"] == digest_of(script.read_bytes())) == ("any", False)
    tried: dict[str, Any] = farm.cli("harness", "test", "hello", "--device", phone.serial)
    assert tried["evidence"]["stdout"] == "hello\n"
    again = farm.cli("harness", "add", "hello", str(script))
    assert again["program"]["digest"] == program["digest"]
