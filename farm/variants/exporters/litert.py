"""Files of LiteRT (`.tflite`): float32, int8 inside, or int8 weights alone. Imports litert_torch."""

from pathlib import Path
from typing import Any

import litert_torch
import numpy
import torch
from ai_edge_litert.interpreter import Interpreter
from ai_edge_quantizer import quantizer, recipe_manager
from ai_edge_quantizer import recipe as quantizer_recipes
from ai_edge_quantizer.algorithm_manager import AlgorithmName
from ai_edge_quantizer.qtyping import TFLOperationName
from torch import nn

from farm.core.models.variant import Precision, Recipe


def write(net: nn.Module, images: torch.Tensor, recipe: Recipe, path: Path) -> None:
    """Write the network for one image; `images` give the ranges of a quantized one."""
    litert_torch.convert(net, (images[:1],)).export(str(path))
    if recipe.precision != Precision.FLOAT32:
        _quantize(path, images, recipe.precision)


def run(path: Path, batch: torch.Tensor) -> torch.Tensor:
    """Return the file's output for each image of the batch."""
    interpreter = Interpreter(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    [given], [made] = interpreter.get_input_details(), interpreter.get_output_details()
    outputs = []
    for image in batch.split(1):
        interpreter.set_tensor(given["index"], image.numpy())
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(made["index"]))
    return torch.from_numpy(numpy.concatenate(outputs))


def _quantize(path: Path, images: torch.Tensor, precision: str) -> None:
    """Quantize a file in place; its input and output stay float32."""
    tool = quantizer.Quantizer(
        path.read_bytes(), _static() if precision == Precision.INT8_CORE else _dynamic()
    )
    [(signature, tensors)] = Interpreter(model_path=str(path)).get_signature_list().items()
    [name] = tensors["inputs"]
    ranges = tool.calibrate({signature: [{name: image.numpy()} for image in images.split(1)]}, num_threads=1)
    path.write_bytes(tool.quantize(ranges, enable_progress_report=False).quantized_model)


def _dynamic() -> Any:
    return quantizer_recipes.dynamic_wi8_afp32()


def _static() -> Any:
    recipe = recipe_manager.RecipeManager()
    recipe.load_quantization_recipe(quantizer_recipes.static_wi8_ai8())
    for end in (TFLOperationName.INPUT, TFLOperationName.OUTPUT):
        recipe.add_quantization_config(".*", end, algorithm_key=AlgorithmName.NO_QUANTIZE)
    return recipe.get_quantization_recipe()
