"""Records order the loops of the network that they were measured for, as TVM itself reads them."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(find_spec("tvm") is None, reason="apache-tvm is not installed"),
]

ROOT = Path(__file__).parents[3]
#: Compiles for records of a network's first part: that took so many seconds, and of another network.
COMPILED = """
import sys, tempfile
from pathlib import Path

import torch, tvm
from torch import nn
from tvm.relax.frontend.torch import from_exported_program
from tvm.s_tir import Schedule
from tvm.s_tir.meta_schedule.arg_info import ArgInfo
from tvm.s_tir.meta_schedule.database import JSONDatabase, TuningRecord

from farm.core.errors import VariantInvalid
from farm.variants.exporters.tuning import metaschedule
from farm.variants.sources.tuning_records import read_records

target = tvm.target.Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu", "num-cores": 1})

def network(channels):
    net, sample = nn.Conv2d(3, channels, 3).eval(), torch.ones(1, 3, 16, 16)
    return from_exported_program(torch.export.export(net, (sample,)))

def records(module, seconds):
    with tempfile.TemporaryDirectory() as folder:
        database = JSONDatabase(work_dir=folder)
        [part] = metaschedule._tasks(module, target)[0].dispatched
        schedule = Schedule(part)
        for block in schedule.get_child_blocks(schedule.get_sblock("root")):
            schedule.get_loops(block)
        workload, arguments = database.commit_workload(part), ArgInfo.from_prim_func(part["main"])
        database.commit_tuning_record(TuningRecord(schedule.trace, workload, [seconds], target, arguments))
        return read_records(Path(folder))

def told(module, found):
    try:
        metaschedule.compiled(module, target, found)
    except VariantInvalid as error:
        return error.message
    return "compiled"

net, other = network(8), network(4)
print(told(net, records(net, 1e-5)))
print(told(net, records(other, 1e-5)))
print(told(net, records(net, 1e10)))
"""


def test_a_library_is_not_called_tuned_by_records_of_another_network_or_of_failed_trials() -> None:
    words = [sys.executable, "-W", "ignore", "-c", COMPILED]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["compiled", *["no record is of this network"] * 2]
