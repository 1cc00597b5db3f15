"""Files of MNN (`.mnn`), converted from ONNX: float32, or with weights in int8. Imports MNN's runtime.

Never imports `MNN.tools`: that installs packages into whatever Python is first on the path, and reports to
its vendor. The converter is the extension module of the wheel alone, in a process without a path.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import _mnncengine as engine
import numpy
import torch

from farm.core.models.builders import INT8_WEIGHT_ONLY
from farm.core.models.variant import Recipe
from farm.variants.export import save_onnx
from farm.variants.sources.samples import Interface, Sample

_CONVERT = "import sys, _tools; _tools.mnnconvert(['mnnconvert', *sys.argv[1:]])"
#: The converter wants a name of who uses it, and writes it into the file.
_USER = "benchfarm"


def write(net: Any, samples: Sequence[Sample], recipe: Recipe, path: Path) -> Interface | None:
    """Write the network for one sample."""
    draft = path.with_suffix(".onnx")
    save_onnx(net, samples[0], draft)
    words = ["-f", "ONNX", "--modelFile", draft.name, "--MNNModel", path.name, "--bizCode", _USER]
    if recipe.precision == INT8_WEIGHT_ONLY:
        words += ["--weightQuantBits", "8"]
    done = subprocess.run(
        [sys.executable, "-I", "-c", _CONVERT, *words],
        env={"PATH": "", "HOME": str(path.parent.resolve())},
        cwd=path.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0 or not path.is_file():
        lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        raise ValueError(
            f"MNN's converter ended with {done.returncode}: {lines[-1] if lines else 'it printed nothing'}"
        )
    return None


def run(path: Path, samples: Sequence[Sample], interface: Interface | None) -> list[list[torch.Tensor]]:
    """Return the file's outputs for each sample, computed in float32."""
    interpreter = engine.Interpreter(str(path))
    session = interpreter.createSession({"backend": "CPU", "numThread": 1, "precision": "high"})
    inputs = _in_order(interpreter.getSessionInputAll(session))
    outputs = _in_order(interpreter.getSessionOutputAll(session))
    rows = []
    for sample in samples:
        for tensor, given in zip(inputs, sample, strict=True):
            tensor.copyFrom(_host_tensor(_stored(given)))
        interpreter.runSession(session)
        rows.append([_read(tensor) for tensor in outputs])
    return rows


def _in_order(tensors: dict[str, Any]) -> list[Any]:
    """Return tensors in the order of the network: `input_0`, `input_1`, ..., `input_10`."""
    return [tensors[name] for name in sorted(tensors, key=lambda name: (len(name), name))]


def _stored(tensor: torch.Tensor) -> Any:
    """Return a tensor as MNN takes it: whole numbers have 32 bits, all others are float32."""
    return tensor.to(torch.float32 if tensor.dtype.is_floating_point else torch.int32).contiguous().numpy()


def _host_tensor(array: Any) -> Any:
    kind = engine.Halide_Type_Float if array.dtype == numpy.float32 else engine.Halide_Type_Int
    return engine.Tensor(array.shape, kind, array, engine.Tensor_DimensionType_Caffe)


def _read(tensor: Any) -> torch.Tensor:
    shape = tensor.getShape()
    host = _host_tensor(numpy.zeros(shape, numpy.float32))
    tensor.copyToHostTensor(host)
    return torch.from_numpy(numpy.array(host.getData(), numpy.float32).reshape(shape))
