"""Inputs of an ONNX file that variants are built from. Imports no runtime."""

from collections.abc import Sequence

from farm.core.errors import VariantInvalid
from farm.core.models.declared_inputs import InputsContradict, completed_inputs, input_text
from farm.core.models.variant import TensorSpec
from farm.variants.sources.source import Source


def completed_onnx_inputs(stated: Sequence[TensorSpec], source: Source) -> tuple[TensorSpec, ...]:
    """Return the inputs of an ONNX file with the sizes that were declared.

    Raises:
        VariantInvalid: the declared ones are not the file's, or a size stays open.
    """
    hint = "--input gives all sizes: " + " ".join(
        f"--input {input_text(spec).replace('?', '1')}" for spec in stated
    )
    try:
        specs = completed_inputs(stated, source.inputs)
    except InputsContradict as error:
        raise VariantInvalid(f"{source.origin}: {error}", hint=hint) from error
    if not all(spec.is_complete for spec in specs):
        sizes = ", ".join(map(input_text, specs))
        raise VariantInvalid(f"{source.origin} leaves sizes of its inputs open: {sizes}", hint=hint)
    return specs
