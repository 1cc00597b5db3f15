"""The network's files, each by what writes it: `files.py WRITER FOLDER`.

Most are written as `farm variant build` writes them, by the farm's exporters. Each writer runs in a process
of its own, and fails in it where its runtime is not installed.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from network import calibration, network
from torch import nn

from farm.core.models.variant import Format, Precision, PrecisionWord, Recipe
from farm.variants.recipe import QCONFIG, host_abi


def write_torch(folder: Path) -> None:
    """Write TorchScript and files of the lite interpreter; any engine takes the int8 one."""
    module = torch.jit.freeze(torch.jit.script(network()))
    module.save(str(folder / "net.pt"))
    module._save_for_lite_interpreter(str(folder / "net.ptl"))
    quantized = torch.jit.freeze(torch.jit.script(_quantized()))
    quantized._save_for_lite_interpreter(str(folder / "net-int8.ptl"))


def write_onnx(folder: Path) -> None:
    """Write ONNX in float32, and in int8 with activations that are unsigned and signed."""
    _export("onnxruntime", Format.ONNX, Precision.FLOAT32, "cpu", folder / "net.onnx")
    _export("onnxruntime", Format.ONNX, Precision.INT8_CORE, "cpu", folder / "net-int8.onnx")
    _quantize_signed(folder / "net.onnx", folder / "net-int8-signed.onnx")


def write_tflite(folder: Path) -> None:
    """Write `.tflite` in float32, in static int8, and with weights in int8 (dynamic range)."""
    from ai_edge_quantizer import quantizer, recipe
    from tflite_file import tflite_of

    content = tflite_of(network())
    (folder / "net.tflite").write_bytes(content)
    samples = [{"input": sample[0].permute(0, 2, 3, 1).numpy()} for sample in calibration()]
    for name, how in (("int8", recipe.static_wi8_ai8()), ("int8-dynamic", recipe.dynamic_wi8_afp32())):
        tool = quantizer.Quantizer(content, how)
        ranges = tool.calibrate({"main": samples}, num_threads=1) if tool.need_calibration else None
        made = tool.quantize(ranges, enable_progress_report=False).quantized_model
        (folder / f"net-{name}.tflite").write_bytes(made)


def write_executorch(folder: Path) -> None:
    """Write programs for XNNPACK in float32 and int8, and one for ExecuTorch's portable kernels."""
    _export("executorch", Format.EXECUTORCH, Precision.FLOAT32, "xnnpack", folder / "net-xnnpack.pte")
    _export("executorch", Format.EXECUTORCH, Precision.INT8_CORE, "xnnpack", folder / "net-xnnpack-int8.pte")
    _export("executorch", Format.EXECUTORCH, Precision.FLOAT32, "cpu", folder / "net-portable.pte")


def write_ncnn(folder: Path) -> None:
    """Write ncnn's two files: layers and weights."""
    _export("ncnn", Format.NCNN, Precision.FLOAT32, "cpu", folder / "net.param", "net.bin")


def write_mnn(folder: Path) -> None:
    """Write MNN's file."""
    _export("mnn", Format.MNN, Precision.FLOAT32, "cpu", folder / "net.mnn")


def write_tvm(folder: Path) -> None:
    """Write a library for this machine's CPU, whose loops nothing tuned."""
    _export("tvm", Format.TVM, Precision.FLOAT32, f"{host_abi()}-untuned", folder / "net.so")


def _export(
    runtime: str, format: Format, precision: PrecisionWord, target: str, path: Path, *further: str
) -> None:
    """Write a file as `farm variant build` does, and what the runtime needs beside it."""
    recipe = Recipe(precision=precision, format=format, target=target)
    exporter = import_module(f"farm.variants.exporters.{runtime}")
    # Exporters leave drafts beside their files.
    with TemporaryDirectory(dir=path.parent) as drafts:
        exporter.write(network(), calibration(), recipe, Path(drafts) / path.name)
        for name in (path.name, *further):
            (Path(drafts) / name).replace(path.parent / name)


def _quantize_signed(source: Path, path: Path) -> None:
    from onnxruntime import quantization

    class Samples(quantization.CalibrationDataReader):  # type: ignore[misc]
        left = iter(calibration())

        def get_next(self) -> dict[str, Any] | None:
            sample = next(self.left, None)
            return None if sample is None else {"input": sample[0].numpy()}

    quantization.quantize_static(
        str(source),
        str(path),
        Samples(),
        quant_format=quantization.QuantFormat.QOperator,
        activation_type=quantization.QuantType.QInt8,
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
    )


def _quantized() -> nn.Module:
    """Return the network in int8, as torch quantizes for phones."""
    from torch.ao import quantization

    torch.backends.quantized.engine = QCONFIG
    net = network()
    pairs = [[str(at), str(at + 1)] for at, part in enumerate(net) if isinstance(part, nn.Conv2d)]
    fused: Sequence[nn.Module] = quantization.fuse_modules(net, pairs)
    wrapped = nn.Sequential(quantization.QuantStub(), *fused, quantization.DeQuantStub()).eval()
    wrapped.qconfig = quantization.get_default_qconfig(QCONFIG)
    quantization.prepare(wrapped, inplace=True)
    for sample in calibration():
        wrapped(*sample)
    made: nn.Module = quantization.convert(wrapped)
    return made


WRITERS: Mapping[str, Callable[[Path], None]] = {
    "torch": write_torch,
    "onnx": write_onnx,
    "tflite": write_tflite,
    "executorch": write_executorch,
    "ncnn": write_ncnn,
    "mnn": write_mnn,
    "tvm": write_tvm,
}


def main() -> None:
    """Write the files of one entry of WRITERS into a folder: `files.py torch FOLDER`."""
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    WRITERS[sys.argv[1]](Path(sys.argv[2]).resolve())


if __name__ == "__main__":
    main()
