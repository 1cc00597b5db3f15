"""ONNX files and ONNX Runtime's own: float32, or int8 inside by quantization nodes. Imports onnxruntime."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import onnxruntime
import torch
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import nn

from farm.core.models.variant import Format, Precision, Recipe

#: The newest one of torch's older exporter, which keeps weights in the file and needs no further package.
_OPSET = 17
_INPUT, _OUTPUT = "input", "output"


def write(net: nn.Module, images: torch.Tensor, recipe: Recipe, path: Path) -> None:
    """Write the network for one image; `images` give the ranges of a quantized one."""
    draft = path.with_suffix(".onnx")
    torch.onnx.export(
        net,
        (images[:1],),
        str(draft),
        dynamo=False,
        opset_version=_OPSET,
        input_names=[_INPUT],
        output_names=[_OUTPUT],
    )
    if recipe.precision == Precision.INT8_CORE:
        _quantize(draft, images)
    if recipe.format is Format.ORT:
        _convert(draft, path)


def run(path: Path, batch: torch.Tensor) -> torch.Tensor:
    """Return the file's output for each image of the batch."""
    session = _session(path, onnxruntime.SessionOptions())
    outputs = [session.run(None, {_INPUT: image.numpy()})[0] for image in batch.split(1)]
    return torch.from_numpy(numpy.concatenate(outputs))


def _session(path: Path, options: Any) -> Any:
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class _Calibration(quantization.CalibrationDataReader):  # type: ignore[misc]
    """The images one by one, as the quantizer asks for them."""

    def __init__(self, images: torch.Tensor) -> None:
        self._left: Iterator[torch.Tensor] = iter(images.split(1))

    def get_next(self) -> dict[str, Any] | None:
        image = next(self._left, None)
        return None if image is None else {_INPUT: image.numpy()}


def _quantize(path: Path, images: torch.Tensor) -> None:
    """Quantize a file in place.

    Activations are unsigned: with signed ones, its kernels for x86 take almost twice the time.
    """
    prepared = path.with_suffix(".prepared")
    quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
    quantization.quantize_static(
        str(prepared),
        str(path),
        _Calibration(images),
        quant_format=quantization.QuantFormat.QDQ,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
    )
    prepared.unlink()


def _convert(draft: Path, path: Path) -> None:
    """Write the runtime's own format, optimized as far as it is alike on every CPU."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    _session(draft, options)
    draft.unlink()
