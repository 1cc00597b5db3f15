"""Verification of a built file: it runs, and agrees with its float32 reference. Imports torch."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch.jit import mobile

from farm.core.errors import VariantInvalid
from farm.core.models.variant import Fidelity, Format, Precision
from farm.variants.export import NO_NNAPI_HERE

#: Below this correlation with the float32 network a file is not the same model.
_LEAST_FLOAT32, _LEAST_INT8 = 0.999, 0.9
#: Spread of an output over different inputs; degenerate networks have about 1e-10.
_LEAST_SPREAD = 1e-3

_Forward = Callable[[torch.Tensor], torch.Tensor]


def measure_fidelity(expected: torch.Tensor, actual: torch.Tensor) -> Fidelity:
    """Compare outputs for several inputs, one row of class scores each."""
    pair = torch.stack([expected.flatten(), actual.flatten()])
    same_class = expected.argmax(dim=1) == actual.argmax(dim=1)
    return Fidelity(
        inputs=len(expected),
        correlation=float(torch.corrcoef(pair)[0, 1]),
        max_difference=float((expected - actual).abs().max()),
        top1_share=float(same_class.float().mean()),
    )


def check_outputs(expected: torch.Tensor, actual: torch.Tensor, precision: str) -> Fidelity:
    """Compare outputs, and refuse those of a file that is not the same model.

    Raises:
        VariantInvalid: they are not finite, do not depend on the input, or have little in common.
    """
    if not bool(torch.isfinite(actual).all()):
        raise VariantInvalid("the built file's output is not finite")
    spread = float(actual.std(dim=0).mean())
    if spread < _LEAST_SPREAD:
        raise VariantInvalid(f"the built file's output is the same for every input: spread {spread:.2g}")
    fidelity = measure_fidelity(expected, actual)
    least = _LEAST_FLOAT32 if precision == Precision.FLOAT32 else _LEAST_INT8
    if not fidelity.correlation > least:
        raise VariantInvalid(
            f"the built file's outputs correlate {fidelity.correlation:.3f} with the float32 network's, less"
            f" than {least}; the largest difference is {fidelity.max_difference:.3g}, and it names the same"
            f" class for {fidelity.top1_share:.0%} of {fidelity.inputs} inputs",
            hint="its numbers would be those of another model: keep this model in float32",
        )
    return fidelity


def outputs(path: Path, format: Format, batch: torch.Tensor, *, engine: str) -> torch.Tensor:
    """Return the file's output for each image of the batch, as real values, loaded as a harness would.

    Raises:
        VariantInvalid: its bundled input is missing, or differs from the images.
    """
    torch.backends.quantized.engine = engine
    with torch.inference_mode():
        forward = _load(path, format, batch[:1])
        return torch.cat([real_values(forward(image)) for image in batch.split(1)])


def real_values(output: torch.Tensor) -> torch.Tensor:
    """Return the output, dequantized where it is quantized."""
    return output.dequantize() if output.is_quantized else output


def check_starts_nnapi(path: Path, format: Format, image: torch.Tensor) -> None:
    """Run the file once: here it can only get as far as loading NNAPI.

    Raises:
        VariantInvalid: it failed earlier, or its bundled input differs from the image.
    """
    with torch.inference_mode():
        forward = _load(path, format, image)
        try:
            forward(image)
        except RuntimeError as error:
            if NO_NNAPI_HERE not in str(error):
                raise VariantInvalid(f"the built file does not run: {error}") from error


def _load(path: Path, format: Format, like: torch.Tensor) -> _Forward:
    forward, bundled = _load_lite(path) if format is not Format.TORCHSCRIPT else _load_full(path)
    if [_layout(tensor) for (tensor,) in bundled] != [_layout(like)]:
        raise VariantInvalid("the built file does not have its one bundled input")
    return forward


def _load_lite(path: Path) -> tuple[_Forward, list[tuple[torch.Tensor]]]:
    module = mobile._load_for_lite_interpreter(str(path))
    return module.forward, module.run_method("get_all_bundled_inputs")


def _load_full(path: Path) -> tuple[_Forward, list[tuple[torch.Tensor]]]:
    module = torch.jit.load(str(path))
    return module.forward, module.get_all_bundled_inputs()


def _layout(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.dtype, tuple(tensor.shape), tensor.stride()
