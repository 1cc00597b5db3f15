"""Whether a built file runs and means something. Imports torch."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch.jit import mobile

from farm.core.errors import VariantInvalid
from farm.core.variant import Format, Precision

#: Below this correlation with the float32 network a file is not the same model any more.
_LEAST_CORRELATION = {Precision.FLOAT32: 0.999, Precision.INT8_CORE: 0.9}
#: Spread of an output over different inputs; degenerate networks have about 1e-10.
_LEAST_SPREAD = 1e-3


def check_outputs(expected: torch.Tensor, actual: torch.Tensor, precision: Precision) -> None:
    """Compare outputs for several inputs, one row each.

    Raises:
        VariantInvalid: they are not finite, do not depend on the input, or have little to do with each other.
    """
    if not bool(torch.isfinite(actual).all()):
        raise VariantInvalid("the built file puts out values that are not finite")
    spread = float(actual.std(dim=0).mean())
    if spread < _LEAST_SPREAD:
        raise VariantInvalid(f"the built file puts out the same for every input: spread {spread:.2g}")
    correlation = float(torch.corrcoef(torch.stack([expected.flatten(), actual.flatten()]))[0, 1])
    if not correlation > _LEAST_CORRELATION[precision]:
        raise VariantInvalid(
            f"the built file's outputs correlate {correlation:.3f} with the float32 network's,"
            f" less than {_LEAST_CORRELATION[precision]}"
        )


def outputs(path: Path, format: Format, batch: torch.Tensor, *, engine: str | None = None) -> torch.Tensor:
    """What the file puts out for each image, loaded as a harness would.

    Raises:
        VariantInvalid: the file's one bundled input is not there.
    """
    if engine is not None:
        torch.backends.quantized.engine = engine
    with torch.inference_mode():
        forward, bundled = _loaded(path, format)
        if [tuple(tensor.shape) for (tensor,) in bundled] != [tuple(batch[:1].shape)]:
            raise VariantInvalid("the built file does not have its one bundled input")
        return torch.cat([forward(image) for image in batch.split(1)])


def _loaded(
    path: Path, format: Format
) -> tuple[Callable[[torch.Tensor], torch.Tensor], list[tuple[torch.Tensor]]]:
    if format is Format.LITE:
        lite = mobile._load_for_lite_interpreter(str(path))
        return lite.forward, lite.run_method("get_all_bundled_inputs")
    module = torch.jit.load(str(path))
    return module.forward, module.get_all_bundled_inputs()
