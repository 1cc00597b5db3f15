"""The flags by which `speed_benchmark_torch` makes inputs for files that bring none of their own."""

from collections.abc import Mapping

from farm.core.base.setting_values import SettingValue
from farm.core.models.declared_inputs import InputProblem, unknown_inputs
from farm.core.models.variant import Manifest, variant_name
from farm.harness.base.options import InputSettings

#: The types that the tool makes tensors of.
_TYPE_BY_DTYPE = {"float32": "float", "uint8": "uint8_t", "int64": "int64"}
_CONTIGUOUS, _CHANNELS_LAST = "contiguous_format", "channels_last"


def input_settings(tool: str, variant: Manifest, given: Mapping[str, SettingValue]) -> InputSettings:
    """Return the flags for the inputs of a variant besides the given ones; none where it brings its own.

    Where nothing looked for bundled inputs, it is taken to have one, which is the tool's default.
    """
    index = given.get("use_bundled_input")
    uses_bundled = variant.bundled_inputs is not False if index is None else index != -1
    if given.get("no_inputs") or uses_bundled:
        return _missing_bundled_input(variant) if variant.bundled_inputs is False and uses_bundled else {}
    types = [_TYPE_BY_DTYPE.get(spec.dtype) for spec in variant.inputs]
    if "input_dims" not in given or "input_type" not in given:
        if not variant.inputs or not all(spec.is_complete for spec in variant.inputs):
            return unknown_inputs(tool, variant)
        if None in types and "input_type" not in given:
            return InputProblem(
                reason=f"{tool} makes no inputs of type {variant.inputs[types.index(None)].dtype}",
                hint="bundle an input: torch.utils.bundled_inputs.augment_model_with_bundled_inputs",
            )
    dims = given.get("input_dims", ";".join(",".join(map(str, spec.shape)) for spec in variant.inputs))
    filled: dict[str, SettingValue] = {
        "use_bundled_input": -1,
        "input_dims": dims,
        "input_type": ";".join(word for word in types if word),
        "input_memory_format": _memory_formats(str(dims), variant.recipe.memory_format),
    }
    return {flag: value for flag, value in filled.items() if flag not in given}


def _memory_formats(dims: str, layout: str) -> str:
    """Return a memory format for each input: only images have another than the usual one."""
    return ";".join(
        _CHANNELS_LAST if layout == _CHANNELS_LAST and sizes.count(",") == 3 else _CONTIGUOUS
        for sizes in dims.split(";")
    )


def _missing_bundled_input(variant: Manifest) -> InputProblem:
    return InputProblem(
        reason=f"{variant_name(variant.model, variant.recipe)} has no bundled input",
        hint="leave `use_bundled_input` out: inputs are made as they are declared",
    )
