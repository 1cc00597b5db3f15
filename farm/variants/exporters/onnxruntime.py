"""ONNX files and ONNX Runtime's own: float32, or int8 inside by quantization nodes. Imports onnxruntime."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnxruntime
import torch
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process

from farm.core.models.variant import Format, Precision, Recipe, TensorSpec
from farm.variants.export import save_onnx
from farm.variants.sources.samples import Interface, Sample

#: By ONNX Runtime's names of types.
_DTYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int16)": "int16",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
}


def write(net: Any, samples: Sequence[Sample], recipe: Recipe, path: Path) -> Interface | None:
    """Write the network for one sample; `samples` give the ranges of a quantized one."""
    draft = path.with_suffix(".onnx")
    save_onnx(net, samples[0], draft)
    _finish(draft, samples, recipe, path)
    return None


def write_from_file(source: Path, samples: Sequence[Sample], recipe: Recipe, path: Path) -> None:
    """Write what the recipe makes of an ONNX file; `samples` give the ranges of a quantized one."""
    draft = path.with_suffix(".onnx")
    shutil.copyfile(source, draft)
    _finish(draft, samples, recipe, path)


def run(path: Path, samples: Sequence[Sample], interface: Interface | None) -> list[list[torch.Tensor]]:
    """Return the file's outputs for each sample."""
    session = _session(path, onnxruntime.SessionOptions())
    names = [each.name for each in session.get_inputs()]
    return [
        [torch.from_numpy(output) for output in session.run(None, _fed(names, sample))] for sample in samples
    ]


def stated_inputs(path: Path) -> tuple[TensorSpec, ...]:
    """Return the inputs of an ONNX file; free sizes are -1.

    Raises:
        ValueError: it has one that is no tensor of numbers.
    """
    inputs = _session(path, onnxruntime.SessionOptions()).get_inputs()
    unknown = [each for each in inputs if each.type not in _DTYPES]
    if unknown:
        raise ValueError(f"its input {unknown[0].name} is a {unknown[0].type}")
    return tuple(
        TensorSpec(
            name=each.name,
            shape=tuple(size if isinstance(size, int) and size >= 0 else -1 for size in each.shape),
            dtype=_DTYPES[each.type],
        )
        for each in inputs
    )


def _fed(names: Sequence[str], sample: Sample) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in zip(names, sample, strict=True)}


def _finish(draft: Path, samples: Sequence[Sample], recipe: Recipe, path: Path) -> None:
    if recipe.precision == Precision.INT8_CORE:
        _quantize(draft, samples)
    if recipe.format is Format.ORT:
        _convert(draft, path)


def _session(path: Path, options: Any) -> Any:
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class _Calibration(quantization.CalibrationDataReader):  # type: ignore[misc]
    """The samples one by one, as the quantizer asks for them."""

    def __init__(self, names: Sequence[str], samples: Sequence[Sample]) -> None:
        self._names = names
        self._left: Iterator[Sample] = iter(samples)

    def get_next(self) -> dict[str, Any] | None:
        sample = next(self._left, None)
        return None if sample is None else _fed(self._names, sample)


def _quantize(path: Path, samples: Sequence[Sample]) -> None:
    """Quantize a file in place.

    Activations are unsigned: with signed ones, its kernels for x86 take almost twice the time.
    """
    prepared = path.with_suffix(".prepared")
    names = [each.name for each in _session(path, onnxruntime.SessionOptions()).get_inputs()]
    quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
    quantization.quantize_static(
        str(prepared),
        str(path),
        _Calibration(names, samples),
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
