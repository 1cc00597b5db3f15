"""Verification of a built file: it runs, and agrees with its float32 reference. Imports torch."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.jit import mobile

from farm.core.errors import VariantInvalid
from farm.core.models.builders import INT4_DYNAMIC
from farm.core.models.variant import Fidelity, Format, Precision
from farm.variants.export import NO_NNAPI_HERE
from farm.variants.sources.samples import Sample, output_row

#: Below this correlation with the float32 network a file is not the same model.
_LEAST_CORRELATION = {Precision.FLOAT32: 0.999, Precision.FLOAT16: 0.999, INT4_DYNAMIC: 0.8}
_LEAST_INT8 = 0.9
#: Spread of an output over different inputs, where that of the network is 1 or more; below, its share of it.
_LEAST_SPREAD = 1e-3

_Forward = Callable[..., Any]


def measure_fidelity(expected: torch.Tensor, actual: torch.Tensor) -> Fidelity:
    """Compare outputs for several inputs, one row of numbers each."""
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
    if spread <= _LEAST_SPREAD * min(1.0, float(expected.std(dim=0).mean())):
        raise VariantInvalid(f"the built file's output is the same for every input: spread {spread:.2g}")
    fidelity = measure_fidelity(expected, actual)
    least = _LEAST_CORRELATION.get(precision, _LEAST_INT8)
    if not fidelity.correlation > least:
        raise VariantInvalid(
            f"the built file's outputs correlate {fidelity.correlation:.3f} with the float32 network's, less"
            f" than {least}; the largest difference is {fidelity.max_difference:.3g}, and it names the same"
            f" class for {fidelity.top1_share:.0%} of {fidelity.inputs} inputs",
            hint="its numbers would be those of another model: keep this model in float32",
        )
    return fidelity


def outputs(path: Path, format: Format, samples: Sequence[Sample], *, engine: str) -> torch.Tensor:
    """Return the file's outputs for each sample as a row of real values, loaded as a harness would.

    Raises:
        VariantInvalid: its bundled input is missing, or differs from the samples.
    """
    torch.backends.quantized.engine = engine
    with torch.inference_mode():
        forward = _load(path, format, samples[0])
        return torch.cat([output_row(forward(*sample)) for sample in samples])


def check_starts_nnapi(path: Path, format: Format, sample: Sample) -> None:
    """Run the file once: here it can only get as far as loading NNAPI.

    Raises:
        VariantInvalid: it failed earlier, or its bundled input differs from the sample.
    """
    with torch.inference_mode():
        forward = _load(path, format, sample)
        try:
            forward(*sample)
        except RuntimeError as error:
            if NO_NNAPI_HERE not in str(error):
                raise VariantInvalid(f"the built file does not run: {error}") from error


def _load(path: Path, format: Format, like: Sample) -> _Forward:
    forward, bundled = _load_lite(path) if format is not Format.TORCHSCRIPT else _load_full(path)
    if [list(map(_layout, sample)) for sample in bundled] != [list(map(_layout, like))]:
        raise VariantInvalid("the built file does not have its one bundled input")
    return forward


def _load_lite(path: Path) -> tuple[_Forward, list[Sample]]:
    module = mobile._load_for_lite_interpreter(str(path))
    return module.forward, module.run_method("get_all_bundled_inputs")


def _load_full(path: Path) -> tuple[_Forward, list[Sample]]:
    module = torch.jit.load(str(path))
    return module.forward, module.get_all_bundled_inputs()


def _layout(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.dtype, tuple(tensor.shape), tensor.stride()
