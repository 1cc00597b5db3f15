"""TVM's own clients on a phone that `farm live tvm` holds: real libraries, and what goes wrong with them."""

import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from farm.variants.recipe import host_abi
from farm.variants.sources.tuning_records import read_records
from tests.e2e.farm.test_device_reservation import Lab, running_lab
from tests.e2e.live.test_hold import held, session_folders
from tests.e2e.runtimes.built.test_built_for_tvm import INPUT, of_this_machine, small_network
from tests.support.farm.processes import CHECKOUT, eventually
from tests.support.harness.built_programs import built_program

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("tvm") is None, reason="apache-tvm is not installed"),
    pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed"),
    pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler"),
]

TRIPLE_BY_ABI = {"x86_64": "x86_64-linux-gnu", "arm64-v8a": "aarch64-linux-gnu"}
#: The exit code of a session whose time was over.
EXPIRED = 3
#: The first packet of a client: its size, the code, and a version that the server answers with an error.
OF_ANOTHER_VERSION = struct.pack("<QiQci", 17, 2, 1, b"x", 0)
#: What people write who drive the phone themselves.
CLIENT = """
import sys, time
import numpy, tvm
from tvm import relax, rpc
port, library, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
phone = rpc.connect_tracker("127.0.0.1", port).request("pixel", session_timeout=seconds)
print("has the phone", flush=True)
"""
ENDLESS = """
phone.upload(library, target="library.so")
machine = relax.VirtualMachine(phone.load_module("library.so"), phone.cpu(0))
machine.set_input("main", tvm.runtime.tensor(numpy.ones((1, 3, 32, 32), "float32"), phone.cpu(0)))
print("computes", flush=True)
machine.time_evaluator("invoke_stateful", phone.cpu(0), number=10**9, repeat=1)("main")
"""
IDLE = """
time.sleep(seconds + 3)
phone.upload(bytearray(b"late"), target="late")
"""
BROKEN = """
phone.upload(bytearray(b"no library"), target="library.so")
try:
    phone.load_module("library.so")
except Exception as error:
    print(error)
    phone.upload(library, target="library.so")
    phone.load_module("library.so").get_function("vm_load_executable")
    print("the phone goes on")
"""
#: TVM's tuner, as it is configured for phones: they link nothing, so it exports libraries.
TUNER = """
import sys
from types import ModuleType
if __name__ == "__main__":
    import torch, tvm
    from tvm.relax.frontend.torch import from_exported_program
    from tvm.s_tir.meta_schedule import relax_integration
    from tvm.s_tir.meta_schedule.builder import LocalBuilder
    from tvm.s_tir.meta_schedule.runner import EvaluatorConfig, RPCConfig, RPCRunner
    from tvm.s_tir.meta_schedule.tune import tune_tasks
    from farm.variants.exporters.tuning import metaschedule

    port, folder, triple = int(sys.argv[1]), sys.argv[2], sys.argv[3]

    def build(module, target, _parameters):
        from tvm.driver import build as build_module
        from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

        return build_module(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=target)

    def export(module):
        import os, tempfile
        from farm.variants.exporters.tvm import _linker

        path = os.path.join(tempfile.mkdtemp(dir=folder), "part.so")
        module.export_library(path, fcompile=_linker(triple), workspace_dir=os.path.dirname(path))
        return path

    sys.modules.setdefault("tvm.s_tir.tensor_intrin", ModuleType("tvm.s_tir.tensor_intrin"))
    net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU()).eval()
    module = from_exported_program(torch.export.export(net, (torch.ones(1, 64),)))
    target = tvm.target.Target({"kind": "llvm", "mtriple": triple, "num-cores": 1})
    contexts, weights = relax_integration.extracted_tasks_to_tune_contexts(
        metaschedule._tasks(module, target), folder, space="llvm", seed=1, num_threads=1
    )
    phone = RPCConfig("127.0.0.1", port, "pixel", session_timeout_sec=120)
    tune_tasks(
        tasks=contexts[:1], task_weights=weights[:1], work_dir=folder, max_trials_global=2,
        num_trials_per_iter=2,
        builder=LocalBuilder(max_workers=1, timeout_sec=300, f_build=build, f_export=export),
        runner=RPCRunner(phone, EvaluatorConfig(3, 1, 0)),
    )
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    _, built = small_network(tmp_path_factory, worker_id)
    return of_this_machine(built).path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder of `tvm_benchmark` for this machine."""
    return built_program("tvm_benchmark", "apache-tvm", tmp_path_factory, worker_id)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("lab")) as running:
        library_path = ("--env", "LD_LIBRARY_PATH=${work}/lib")
        added = running.command("harness", "add", "tvm_benchmark", str(program), *library_path)
        assert added.returncode == 0, added.stderr
        yield running


@pytest.fixture(scope="module")
def port(lab: Lab) -> Iterator[int]:
    with held(lab) as (_, listening):
        yield listening


def timed(lab: Lab, port: int, library: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    where = ("--tracker", f"127.0.0.1:{port}", "--key", "pixel", "--python", sys.executable)
    return lab.command("live", "time", str(library), *where, "--input", INPUT, "--json", *words)


def client(script: str, port: int, library: Path, seconds: float) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", CLIENT + script, str(port), str(library), str(seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_timing_is_recorded_as_driven_live(lab: Lab, port: int, library: Path) -> None:
    done = timed(lab, port, library, "--number", "2", "--repeat", "4", "--model", "small")
    assert done.returncode == 0, done.stderr
    timing = json.loads(done.stdout)
    assert len(timing["times_ns"]) == 4
    assert min(timing["times_ns"]) > 0
    assert (timing["driven"], timing["number"], timing["inputs"]) == ("live", 2, INPUT)
    listed = lab.command("import", "results", "--import", str(timing["import_id"]), "--json")
    results: list[dict[str, Any]] = json.loads(listed.stdout)
    with lab.farm.client() as farm:
        device_id = farm.device("bench-a").device_id
        [program] = farm.harness("tvm_benchmark").programs
    for result in results:
        assert (result["model"], result["device"], result["backend"]) == ("small", device_id, "cpu")
        settings = json.loads(result["settings"])
        assert (settings["driven"], settings["program"]) == ("live", program.digest)
        assert settings["library_digest"] == timing["library_digest"]
    assert [each["statistic"] for each in results] == ["mean", "median", "value"]
    assert json.loads(results[0]["samples"]) == timing["times_ns"]
    assert "driven" in lab.command("import", "results", COLUMNS="200").stdout.splitlines()[0]


def test_what_cannot_be_timed_is_named(lab: Lab, port: int, library: Path, tmp_path: Path) -> None:
    unknown = timed(lab, port, library, "--key", "mate")
    assert unknown.returncode == 4
    assert "no phone has the key 'mate'; keys there: pixel" in unknown.stderr
    other_shape = timed(lab, port, library, "--input", "1x3x32x31:float32")
    assert other_shape.returncode == 4
    assert "error: TVM: " in other_shape.stderr
    (tmp_path / "net.so").write_bytes(library.read_bytes()[:1000])
    cut = timed(lab, port, tmp_path / "net.so")
    assert cut.returncode == 2
    absent = timed(lab, 1, library)
    assert absent.returncode == 4
    assert "no tracker answers at 127.0.0.1:1" in absent.stderr
    assert timed(lab, port, library, "--no-record").returncode == 0


def test_a_library_that_does_not_load_costs_its_client_nothing_else(
    lab: Lab, port: int, library: Path
) -> None:
    said, _ = client(BROKEN, port, library, 60).communicate(timeout=200)
    assert "file too short" in said or "invalid ELF header" in said
    assert "the phone goes on" in said


def test_a_session_that_has_expired_says_so_and_the_next_client_has_the_phone(
    lab: Lab, port: int, library: Path
) -> None:
    said, _ = client(IDLE, port, library, 2).communicate(timeout=200)
    assert "RPCSessionTimeoutError: Your 2s session has expired" in said
    eventually(lambda: not session_folders(lab), "its files are removed")
    assert timed(lab, port, library).returncode == 0


@pytest.mark.parametrize("request_bytes", [b"", OF_ANOTHER_VERSION], ids=["idle", "in an answer"])
def test_a_session_whose_client_reads_nothing_ends_when_its_time_is_over(
    program: Path, request_bytes: bytes
) -> None:
    reads, writes = os.pipe()
    capacity = fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writes, b"x" * capacity)
    with subprocess.Popen(
        [str(program / "tvm_benchmark"), "--serve=1"],
        env={**os.environ, "LD_LIBRARY_PATH": str(program / "lib")},
        stdin=subprocess.PIPE,
        stdout=writes,
    ) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(request_bytes)
            process.stdin.flush()
            assert process.wait(timeout=60) == EXPIRED
        finally:
            process.kill()
            os.close(reads)
            os.close(writes)


def test_a_client_that_is_killed_leaves_no_computation_behind(lab: Lab, port: int, library: Path) -> None:
    with client(ENDLESS, port, library, 600) as driver:
        assert driver.stdout is not None
        assert any("computes" in line for line in driver.stdout)
        busy = timed(lab, port, library, "--wait", "1s")
        assert busy.returncode == 4
        assert "pixel did not become free within 1 s" in busy.stderr
        time.sleep(1)
        driver.kill()
    eventually(lambda: not session_folders(lab), "the worker has ended, and its files are removed")
    assert timed(lab, port, library).returncode == 0


@pytest.mark.skipif(
    find_spec("xgboost") is None or find_spec("cloudpickle") is None,
    reason="the tuner needs xgboost-cpu and cloudpickle",
)
def test_tvms_tuner_measures_on_the_phone(lab: Lab, port: int, tmp_path: Path) -> None:
    (tmp_path / "tuner.py").write_text(TUNER)
    folder = tmp_path / "records"
    folder.mkdir()
    triple = TRIPLE_BY_ABI[host_abi()]
    done = subprocess.run(
        [sys.executable, str(tmp_path / "tuner.py"), str(port), str(folder), triple],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    records = read_records(folder)
    assert records.timed == 2, done.stderr[-2000:]
    eventually(lambda: not session_folders(lab), "its files are removed")
