"""Networks of ncnn (`.param`, as text), converted by pnnx. Imports ncnn.

The file has no weights: benchncnn, which runs it, makes them up. Those that pnnx writes beside it serve the
comparison, and are deleted with the folder of the build.
"""

import subprocess
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import ncnn
import numpy
import torch

from farm.core.models.variant import Recipe
from farm.variants.export import traced
from farm.variants.sources.samples import Interface, Sample

_TYPES = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.float64: "f64",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
}


def write(net: Any, samples: Sequence[Sample], recipe: Recipe, path: Path) -> Interface | None:
    """Write the network for one sample, and its weights in float32 beside it."""
    # The converter works in the folder of the file.
    path = path.resolve()
    converter = Path(str(distribution("pnnx").locate_file("pnnx/pnnx")))
    archive = path.with_name("traced.pt")
    traced(net, samples[0]).save(str(archive))
    shapes = ",".join(_input(tensor) for tensor in samples[0])
    words = [f"inputshape={shapes}", "fp16=0", f"ncnnparam={path}", f"ncnnbin={_weights(path)}"]
    # Its other outputs are named after the archive.
    done = subprocess.run(
        [str(converter), str(archive), *words],
        cwd=path.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0 or not path.is_file():
        lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        raise ValueError(f"pnnx ended with {done.returncode}: {lines[-1] if lines else 'it printed nothing'}")
    return None


def run(path: Path, samples: Sequence[Sample], interface: Interface | None) -> list[list[torch.Tensor]]:
    """Return the file's outputs for each sample, computed in float32."""
    net = ncnn.Net()
    for option in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
        setattr(net.opt, option, False)
    net.opt.num_threads = 1
    if net.load_param(str(path)) != 0 or net.load_model(str(_weights(path))) != 0:
        raise ValueError("ncnn cannot load it: it has a layer that ncnn does not know")
    return [_run_one(net, sample) for sample in samples]


def _run_one(net: Any, sample: Sample) -> list[torch.Tensor]:
    with net.create_extractor() as extractor:
        # ncnn's tensors have no dimension for the batch.
        given = [ncnn.Mat(numpy.ascontiguousarray(tensor.squeeze(0).numpy())) for tensor in sample]
        for name, mat in zip(net.input_names(), given, strict=True):
            extractor.input(name, mat)
        outputs = []
        for name in net.output_names():
            code, mat = extractor.extract(name)
            if code != 0:
                raise ValueError(f"ncnn cannot compute {name}")
            outputs.append(torch.from_numpy(numpy.array(mat)))
        return outputs


def _input(tensor: torch.Tensor) -> str:
    if tensor.dtype not in _TYPES:
        raise ValueError(f"pnnx takes no input of {tensor.dtype}")
    return f"[{','.join(map(str, tensor.shape))}]{_TYPES[tensor.dtype]}"


def _weights(path: Path) -> Path:
    return path.with_suffix(".bin")
