"""Build one variant in a process of its own: main([MODEL, RECIPE, FILE, FACTS]).

RECIPE is JSON. Steps go to stdout, one `step: ...` a line; a refusal as `refused: {json}`; any other failure
is a traceback on stderr. Scripted classes, engines and import side effects are global to a process of torch.
It runs in the environments of other runtimes too, and imports nothing but torch and what they have.
"""

import json
import sys
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from farm.core.errors import FarmError, VariantInvalid
from farm.core.models.builders import TORCH, runtime_of
from farm.core.models.variant import Fidelity, Format, Precision, Recipe, TensorSpec
from farm.variants.recipe import QCONFIG

if TYPE_CHECKING:
    from farm.variants.networks import PreparedNetwork


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFacts:
    """What a manifest says of a file beside recipe and bytes. Parameters are the float32 network's."""

    inputs: tuple[TensorSpec, ...]
    parameters: int
    flops: int
    fidelity: Fidelity | None
    #: What only the network knows of how it was made, by its name in `built_with`.
    built_with: dict[str, str]


def build(model: str, recipe: Recipe, path: Path) -> BuildFacts:
    """Write the variant; return its facts.

    Raises:
        FarmError: the model is unknown, the recipe is impossible, or the file fails its verification.
    """
    _say("importing torch")
    import torch

    torch.set_num_threads(1)  # sums in one order: the same bytes every time
    torch.set_grad_enabled(False)
    runtime = runtime_of(recipe.format)
    return (
        _build_for_torch(model, recipe, path)
        if runtime == TORCH
        else _build_for(runtime, model, recipe, path)
    )


def _build_for(runtime: str, model: str, recipe: Recipe, path: Path) -> BuildFacts:
    """Build with the runtime's exporter, and compare what the runtime computes with the float32 network."""
    from farm.variants import networks, verify

    _say(f"importing {runtime}")
    exporter = import_module(f"farm.variants.exporters.{runtime}")
    prepared = networks.prepare_network(
        model, Recipe(precision=Precision.FLOAT32, format=recipe.format), _say
    )
    _say("writing")
    try:
        exporter.write(prepared.net, networks.calibration_images(model), recipe, path)
    except Exception as error:  # exporters raise what they like
        raise VariantInvalid(
            f"{runtime} cannot make {model} in {recipe.precision}: {_reason(error)}",
            hint="another precision, format or target may work",
        ) from error
    _say("checking")
    fidelity = verify.check_outputs(prepared.expected, exporter.run(path, prepared.inputs), recipe.precision)
    return _facts(prepared, fidelity)


def _reason(error: Exception) -> str:
    """Return the first lines of an error, where exporters name the operator."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])}"[:400]


def _build_for_torch(model: str, recipe: Recipe, path: Path) -> BuildFacts:
    import torch

    from farm.variants import export
    from farm.variants.networks import prepare_network

    loading_engine = torch.backends.quantized.engine
    prepared = prepare_network(model, recipe, _say)
    if recipe.target == "nnapi":
        _check_before_conversion(prepared, recipe)
    _say("writing")
    export.save(prepared.net, prepared.first_input, recipe, path)
    _say("checking")
    return _facts(prepared, _check_file(prepared, recipe, path, loading_engine))


def _check_before_conversion(prepared: "PreparedNetwork", recipe: Recipe) -> None:
    """Check the network before its conversion: the output of an NNAPI file cannot be computed here."""
    from farm.variants import verify

    actual = verify.real_values(prepared.net(prepared.inputs))
    verify.check_outputs(prepared.expected, actual, recipe.precision)


def _check_file(
    prepared: "PreparedNetwork", recipe: Recipe, path: Path, loading_engine: str
) -> Fidelity | None:
    """Return the file's fidelity on the engine of mobile devices; it must also pass on this machine's."""
    from farm.variants import verify

    if recipe.target == "nnapi":
        verify.check_starts_nnapi(path, recipe.format, prepared.first_input)
        return None
    fidelities = [
        verify.check_outputs(
            prepared.expected,
            verify.outputs(path, recipe.format, prepared.inputs, engine=engine),
            recipe.precision,
        )
        for engine in (QCONFIG, loading_engine)
    ]
    return None if recipe.precision == Precision.FLOAT32 else fidelities[0]


def _facts(prepared: "PreparedNetwork", fidelity: Fidelity | None) -> BuildFacts:
    from farm.variants.networks import input_spec

    return BuildFacts(
        inputs=(input_spec(prepared.inputs),),
        parameters=prepared.parameters,
        flops=prepared.flops,
        fidelity=fidelity,
        built_with=_interface_words(prepared),
    )


def _interface_words(prepared: "PreparedNetwork") -> dict[str, str]:
    if prepared.interface is None:
        return {}
    return {"input": f"scale {prepared.interface.scale:.6g}, zero point {prepared.interface.zero_point}"}


def _say(step: str) -> None:
    sys.stdout.write(f"step: {step}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Build the variant of the arguments; return the exit code."""
    model, recipe, path, facts = arguments
    try:
        words = json.loads(recipe)
        made = build(model, Recipe(**{**words, "format": Format(words["format"])}), Path(path))
    except FarmError as error:
        sys.stdout.write(f"refused: {json.dumps({'message': error.message, 'hint': error.hint})}\n")
        return 1
    Path(facts).write_text(json.dumps(asdict(made)))
    return 0
