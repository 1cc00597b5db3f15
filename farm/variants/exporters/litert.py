"""Files of LiteRT (`.tflite`): float32, float16, int8, or weights in 8 or 4 bits. Imports litert_torch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import litert_torch
import torch
from ai_edge_litert.interpreter import Interpreter
from ai_edge_quantizer import qtyping, quantizer, recipe_manager
from ai_edge_quantizer import recipe as quantizer_recipes
from ai_edge_quantizer.algorithm_manager import AlgorithmName
from ai_edge_quantizer.qtyping import TFLOperationName

from farm.core.models.builders import INT4_DYNAMIC
from farm.core.models.variant import Precision, Recipe
from farm.variants.sources.samples import Interface, Sample


def write(net: Any, samples: Sequence[Sample], recipe: Recipe, path: Path) -> Interface | None:
    """Write the network for one sample; `samples` give the ranges of a quantized one."""
    litert_torch.convert(net, samples[0]).export(str(path))
    if recipe.precision != Precision.FLOAT32:
        _quantize(path, samples, recipe.precision)
    return _interface(path) if recipe.precision == Precision.INT8_FULL else None


def run(path: Path, samples: Sequence[Sample], interface: Interface | None) -> list[list[torch.Tensor]]:
    """Return the file's outputs for each sample, as real values."""
    interpreter = Interpreter(model_path=str(path), num_threads=1)
    [signature] = interpreter.get_signature_list()
    runner = interpreter.get_signature_runner(signature)
    inputs, outputs = _in_order(runner.get_input_details()), _in_order(runner.get_output_details())
    rows = []
    for sample in samples:
        given = {name: _stored(tensor, inputs[name]) for name, tensor in zip(inputs, sample, strict=True)}
        made = runner(**given)
        rows.append([_real(made[name], outputs[name]) for name in outputs])
    return rows


def _in_order(details: dict[str, Any]) -> dict[str, Any]:
    """Return tensors of a signature in the order of the network: `args_0`, `args_1`, ..., `args_10`."""
    return dict(sorted(details.items(), key=lambda item: (len(item[0]), item[0])))


def _stored(tensor: torch.Tensor, detail: Any) -> Any:
    scale, zero_point = detail["quantization"]
    if not scale:
        return tensor.numpy()
    limits = torch.iinfo(torch.int8)
    return torch.clamp((tensor / scale).round() + zero_point, limits.min, limits.max).to(torch.int8).numpy()


def _real(array: Any, detail: Any) -> torch.Tensor:
    scale, zero_point = detail["quantization"]
    tensor = torch.from_numpy(array.copy())
    return (tensor.float() - zero_point) * scale if scale else tensor


def _interface(path: Path) -> Interface:
    """Return the quantization of the file's input.

    Raises:
        ValueError: its inputs are not quantized in one way.
    """
    details = Interpreter(model_path=str(path)).get_input_details()
    kinds = {(float(scale), int(zero)) for scale, zero in (each["quantization"] for each in details)}
    if len(kinds) != 1 or any(each["dtype"].__name__ != "int8" for each in details):
        raise ValueError("its inputs are not quantized in one way")
    [(scale, zero_point)] = kinds
    return Interface(scale=scale, zero_point=zero_point, dtype="int8")


def _quantize(path: Path, samples: Sequence[Sample], precision: str) -> None:
    """Quantize a file in place."""
    tool = quantizer.Quantizer(path.read_bytes(), _recipe(precision))
    ranges = None
    if tool.need_calibration:
        interpreter = Interpreter(model_path=str(path))
        [signature] = interpreter.get_signature_list()
        names = list(_in_order(interpreter.get_signature_runner(signature).get_input_details()))
        fed = [{name: each.numpy() for name, each in zip(names, sample, strict=True)} for sample in samples]
        ranges = tool.calibrate({signature: fed}, num_threads=1)
    path.write_bytes(tool.quantize(ranges, enable_progress_report=False).quantized_model)


def _recipe(precision: str) -> Any:
    match precision:
        case Precision.FLOAT16:
            return _float16()
        case Precision.INT8_FULL:
            return quantizer_recipes.static_wi8_ai8()
        case Precision.INT8_CORE:
            return _static_inside()
        case str() if precision == INT4_DYNAMIC:
            return quantizer_recipes.dynamic_wi4_afp32()
        case _:
            return quantizer_recipes.dynamic_wi8_afp32()


def _static_inside() -> Any:
    """Return the recipe of int8 with float32 at both ends."""
    recipe = recipe_manager.RecipeManager()
    recipe.load_quantization_recipe(quantizer_recipes.static_wi8_ai8())
    for end in (TFLOperationName.INPUT, TFLOperationName.OUTPUT):
        recipe.add_quantization_config(".*", end, algorithm_key=AlgorithmName.NO_QUANTIZE)
    return recipe.get_quantization_recipe()


def _float16() -> Any:
    """Return the recipe of weights in float16, which delegates for GPUs compute with as they are."""
    recipe = recipe_manager.RecipeManager()
    recipe.add_quantization_config(
        ".*",
        TFLOperationName.ALL_SUPPORTED,
        op_config=qtyping.OpQuantizationConfig(
            weight_tensor_config=qtyping.TensorQuantizationConfig(
                num_bits=16, dtype=qtyping.TensorDataType.FLOAT
            ),
            compute_precision=qtyping.ComputePrecision.FLOAT,
            explicit_dequantize=True,
        ),
        algorithm_key=AlgorithmName.FLOAT_CASTING,
    )
    return recipe.get_quantization_recipe()
