"""`farm run` through the real command, farm, agent and two virtual phones."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from farm.core.base.ids import MatrixId
from tests.support.fakes import stand_in_model
from tests.support.farm.processes import FarmProcess, eventually, running_farm_with_agent
from tests.support.farm.service_fixture import model_file

_UP = (sys.executable, "-m", "farm.cli.shell.main", "up", "--virtual", "2")
_RUN = (sys.executable, "-m", "farm.cli.shell.main", "run")

BENCH = """#!/bin/sh
# Prints a time for each of --runs, and how much memory it took.
for word; do case $word in --runs=*) runs=${word#*=} ;; esac; done
i=0
while [ $i -lt "$runs" ]; do
  i=$((i + 1))
  echo "took $((100 + i)).5 us"
done
echo "peak memory: 12.25 MB"
sleep 0.05
"""
INFER = """#!/bin/sh
# A stand-in of somebody's runtime: JSON on stdout, talk on stderr.
for word; do
  case $word in
  --model=*) bytes=$(wc -c <"${word#*=}") ;;
  --runs=*) runs=${word#*=} ;;
  --gpu) gpu=1 ;;
  esac
done
us=1000
[ -n "$gpu" ] && us=400 && echo "I: delegate on Stand-in GPU" >&2
echo loading
printf '{"bytes": %s, "runs": [' "$bytes"
i=0
while [ $i -lt "$runs" ]; do
  [ $i -gt 0 ] && printf ', '
  i=$((i + 1))
  printf '{"us": %s.5}' $((us + i))
done
printf ']}\\ndone\\n'
"""
DEFINITION = """
name: infer
arguments: --model=${model} --runs=${runs} ${backend_arguments}
flags:
  runs: {default: 20, help: timed runs, minimum: 1}
backends:
  cpu: {}
  gpu: {arguments: --gpu, accelerator: gpu, proof: delegate on (.*)}
samples: {json: "$.runs[*].us", unit: us}
iterations_flag: runs
metrics:
  model_size: {json: $.bytes, unit: B, better: lower}
"""


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarmProcess]:
    """A farm with two virtual phones that have passed their checks."""
    farm = FarmProcess(tmp_path_factory.mktemp("run") / "farm", command=_UP)
    with running_farm_with_agent(farm):
        with farm.client() as client:
            eventually(lambda: [each.health for each in client.devices()] == ["good"] * 2, "both are checked")
        yield farm


def environment(farm: FarmProcess) -> dict[str, str]:
    return {**os.environ, "FARM_URL": farm.url, "COLUMNS": "80"}


def run(farm: FarmProcess, folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*_RUN, *words],
        cwd=folder,
        env=environment(farm),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def document(farm: FarmProcess, folder: Path, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(farm, folder, "--json", *words).stdout)
    return found


def script(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_program_of_ones_own_is_timed_on_every_phone(farm: FarmProcess, tmp_path: Path) -> None:
    script(tmp_path, "my_bench", BENCH)
    done = run(farm, tmp_path, "--", "./my_bench", "--runs=3")
    assert "the clock's step of 10.0 ms is" in done.stderr
    lines = done.stdout.splitlines()
    rows = [line for line in lines if "coarse" in line]
    assert [row.split()[0] for row in rows] == sorted(_devices(farm)), done.stdout
    # A process of less than half a second, in steps of 10 ms. On a busy machine one may take longer: then the
    # time is that of this valid round alone.
    if all("5 coarse" in row for row in rows):
        columns = ["device", "time", "95", "%", "interval", "min", "to", "max", "rounds"]
        assert lines[0].split() == columns, done.stdout
    assert any("the whole process from its start to its end" in line for line in lines)
    assert max(map(len, lines)) <= 80


@pytest.mark.long
def test_what_a_program_prints_may_be_read_instead(farm: FarmProcess, tmp_path: Path) -> None:
    script(tmp_path, "my_bench", BENCH)
    reads = ["--time", "took ([0-9.]+) us", "--metric", "memory=peak memory: ([0-9.]+) MB lower"]
    found = document(farm, tmp_path, "--quick", *reads, "--", "./my_bench", "--runs=3")
    assert found["matrix"]["rounds"] == 1
    assert [result["time"]["median"] for result in found["results"]] == [102_500.0] * 2
    assert [result["metrics"][0]["level"]["median"] for result in found["results"]] == [12.25] * 2
    plain = run(farm, tmp_path, "--quick", *reads, "--", "./my_bench", "--runs=3")
    assert "One round: no interval and no verdict" in plain.stderr


@pytest.mark.long
def test_a_generic_harness_runs_a_model_on_its_backends(farm: FarmProcess, tmp_path: Path) -> None:
    (tmp_path / "infer.yaml").write_text(DEFINITION)
    farm.cli(
        "harness", "add", "infer", str(script(tmp_path, "infer", INFER)),
        "--definition", str(tmp_path / "infer.yaml"),
    )  # fmt: skip
    _, content = stand_in_model("float32")
    (tmp_path / "net.pt").write_bytes(content)
    options = ["--harness", "infer", "--backend", "cpu,gpu", "--device", "virtual-*", "--", "--runs", "5"]
    found = document(farm, tmp_path, "net.pt", *options)
    assert [each["verdict"] for each in found["speedups"]] == ["faster"] * 2
    assert [each["speedup"] for each in found["speedups"]] == [pytest.approx(1003.5 / 403.5)] * 2
    assert {result["proof"] for result in found["results"] if result["backend"] == "gpu"} == {
        "I: delegate on Stand-in GPU"
    }
    sizes = {result["metrics"][0]["level"]["median"] for result in found["results"]}
    assert sizes == {float(len(content))}
    # The same file again is the same variant.
    assert document(farm, tmp_path, "net.pt", "--quick", *options)["matrix"]["jobs"] == 4


@pytest.mark.long
def test_the_file_that_made_it_slower_is_found_among_versions(farm: FarmProcess, tmp_path: Path) -> None:
    (tmp_path / "sized.yaml").write_text(DEFINITION.replace("name: infer", "name: sized"))
    program = script(tmp_path, "sized", INFER.replace("us=1000", "us=$bytes"))
    farm.cli("harness", "add", "sized", str(program), "--definition", str(tmp_path / "sized.yaml"))
    digests = []
    for place in range(6):
        file = tmp_path / f"{place}.pt"
        # The program takes as long as the file is large.
        file.write_bytes(model_file("torchscript", marker=f"{place}" + "x" * (100 if place > 3 else 10)))
        added = farm.cli("variant", "add", str(file), "--model", "sized-net")
        digests.append(added["manifest"]["digest"])
    words = ["--good", digests[0][:8], "--bad", digests[5][:8], "--harness", "sized", "--device", "*-0"]
    found = farm.cli("bisect", *words)
    assert (found["outcome"], found["first_bad"]["digest"]) == ("found", digests[4])
    assert [row["version"]["place"] for row in found["comparisons"]] == [6, 3, 4, 5]
    assert found["change"]["speedup"] < 0.8
    assert farm.cli("bisect", *words) == found


@pytest.mark.long
def test_a_program_that_fails_is_told_with_the_command_that_shows_what_it_printed(
    farm: FarmProcess, tmp_path: Path
) -> None:
    script(tmp_path, "broken", "#!/bin/sh\necho took 12,5 ms\n")
    words = ["--quick", "--device", "*-0", "--time", "took ([0-9.]+) ms", "--", "./broken"]
    done = run(farm, tmp_path, *words, code=3)
    assert "is it a decimal comma" in done.stderr
    number = re.search(r"Output of a run: .*attempt show (\d+)$", done.stderr, re.MULTILINE)
    assert number, done.stderr
    assert farm.cli("attempt", "show", number[1])["evidence"]["stdout"] == "took 12,5 ms\n"


def test_ctrl_c_detaches_and_the_matrix_goes_on(farm: FarmProcess, tmp_path: Path) -> None:
    script(tmp_path, "slow_bench", "#!/bin/sh\nsleep 1\n")
    log = tmp_path / "run.log"
    with log.open("w") as sink:
        child = subprocess.Popen(
            [*_RUN, "--rounds", "1", "--", "./slow_bench"],
            cwd=tmp_path, env=environment(farm), stdout=sink, stderr=sink, start_new_session=True,
        )  # fmt: skip
    try:
        eventually(lambda: "0 of 2 jobs" in log.read_text(), f"it watches; {log}")
    finally:
        child.send_signal(signal.SIGINT)
        code = child.wait(20)
    said = log.read_text()
    assert code == 130, said
    matrix_id = MatrixId(int(said.partition("Detached: matrix ")[2].split()[0]))
    assert f"matrix watch {matrix_id}" in said
    assert f"matrix cancel {matrix_id}" in said
    assert farm.await_matrix(matrix_id, within_s=120).jobs_by_outcome == {"succeeded": 2}


def _devices(farm: FarmProcess) -> list[str]:
    with farm.client() as client:
        return [str(device.device_id) for device in client.devices()]
