"""Libraries that TVM compiled, each for one ABI, untuned or by records of its tuner. Imports tvm.

One for another machine cannot be run here: a library for this machine, compiled of the same network, serves
the comparison, and is deleted with the folder of the build.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import tvm
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program

from farm.core.models.builders import abi_of
from farm.core.models.variant import Recipe
from farm.variants.exporters.tuning import metaschedule
from farm.variants.recipe import host_abi, runs_here
from farm.variants.sources.samples import Interface, Sample
from farm.variants.sources.tuning_records import TuningRecords, check_records

#: Of the code generator, and of the linker.
_TRIPLE_BY_ABI = {"x86_64": "x86_64-linux-gnu", "arm64-v8a": "aarch64-linux-gnu"}


def write(net: Any, samples: Sequence[Sample], recipe: Recipe, path: Path) -> Interface | None:
    """Write the network for one sample, and one for this machine beside it where the file is for another."""
    module = from_exported_program(torch.export.export(net, samples[0]))
    _write_libraries(module, recipe, path, None)
    return None


def write_tuned(
    net: Any,
    samples: Sequence[Sample],
    recipe: Recipe,
    path: Path,
    *,
    trials: int,
    records: TuningRecords | None,
    say: Callable[[str], None],
) -> TuningRecords:
    """Write the network as `write` does, by records to which `trials` are added; return all of them.

    Raises:
        VariantInvalid: nothing was timed, or it was on another ABI or of another network.
    """
    module = from_exported_program(torch.export.export(net, samples[0]))
    abi = abi_of(recipe)
    assert abi is not None
    if trials:
        records = metaschedule.tuned(module, _target(abi), trials, records, say)
    assert records is not None
    check_records(records, abi)
    say("writing")
    _write_libraries(module, recipe, path, records)
    return records


def run(path: Path, samples: Sequence[Sample], interface: Interface | None) -> list[list[torch.Tensor]]:
    """Return the outputs for each sample: of the file, or of what was compiled for this machine beside it."""
    library = _local_path(path) if _local_path(path).exists() else path
    main = relax.VirtualMachine(tvm.runtime.load_module(str(library)), tvm.cpu())["main"]
    return [[torch.from_numpy(output.numpy()) for output in main(*map(_given, sample))] for sample in samples]


def _given(tensor: torch.Tensor) -> Any:
    return tvm.runtime.tensor(tensor.contiguous().numpy(), tvm.cpu())


def _write_libraries(module: Any, recipe: Recipe, path: Path, records: TuningRecords | None) -> None:
    abi = abi_of(recipe)
    assert abi is not None
    _compile(module, abi, path, records)
    if not runs_here(recipe):
        _compile(module, host_abi(), _local_path(path), records)


def _target(abi: str) -> Any:
    # The tuner divides loops among so many threads; programs of the farm run one unless they are told more.
    return tvm.target.Target({"kind": "llvm", "mtriple": _TRIPLE_BY_ABI[abi], "num-cores": 1})


def _compile(module: Any, abi: str, path: Path, records: TuningRecords | None) -> None:
    triple = _TRIPLE_BY_ABI[abi]
    if records is None:
        made = tvm.compile(module, target=tvm.target.Target({"kind": "llvm", "mtriple": triple}))
    else:
        made = metaschedule.compiled(module, _target(abi), records)
    folder = path.with_name(f"{path.stem}-objects")
    folder.mkdir()
    made.export_library(str(path), fcompile=_linker(triple), workspace_dir=str(folder))


def _linker(triple: str) -> Callable[..., None]:
    """Return what links object files; the library takes functions of C from the program that loads it."""

    def link(output: str, objects: Sequence[str], options: Sequence[str] | None = None) -> None:
        compiler = [sys.executable, "-I", "-m", "ziglang", "cc", "-target", triple]
        done = subprocess.run(
            [*compiler, "-shared", "-nostdlib", "-s", "-o", output, *objects],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise ValueError(f"zig ended with {done.returncode}: {done.stderr.strip()[:300]}")

    # TVM asks its linkers for both.
    link.output_format, link.get_target_triple = "so", lambda: triple  # type: ignore[attr-defined]
    return link


def _local_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}-here{path.suffix}")
