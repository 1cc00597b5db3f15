"""Build one variant in a process of its own: python -m farm.variants.worker MODEL RECIPE FILE.

RECIPE is JSON. Steps go to stdout, one `step: ...` a line; a refusal as `refused: {json}`; any other failure
is a traceback on stderr. Scripted classes, engines and import side effects are global to a process of torch.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from farm.core.base.ids import digest_of
from farm.core.errors import FarmError
from farm.core.models.variant import Fidelity, Manifest, Precision, Recipe
from farm.variants.manifest_file import manifest_path, write_manifest
from farm.variants.recipe import QCONFIG, built_with, recipe_digest

if TYPE_CHECKING:
    from farm.variants.networks import PreparedNetwork

_RECIPE = TypeAdapter(Recipe)


def build(model: str, recipe: Recipe, path: Path) -> None:
    """Write the variant and its manifest.

    Raises:
        FarmError: the model is unknown, the recipe is impossible, or the file fails its verification.
    """
    _say("importing torch")
    import torch

    from farm.variants import export
    from farm.variants.networks import prepare_network

    torch.set_num_threads(1)  # sums in one order: the same bytes every time
    torch.set_grad_enabled(False)
    loading_engine = torch.backends.quantized.engine
    prepared = prepare_network(model, recipe, _say)
    if recipe.target == "nnapi":
        _check_before_conversion(prepared, recipe)
    _say("writing")
    export.save(prepared.net, prepared.first_input, recipe, path)
    _say("checking")
    fidelity = _check_file(prepared, recipe, path, loading_engine)
    write_manifest(_manifest(model, recipe, path, prepared, fidelity), manifest_path(path))


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


def _manifest(
    model: str, recipe: Recipe, path: Path, prepared: "PreparedNetwork", fidelity: Fidelity | None
) -> Manifest:
    from farm.variants.networks import input_spec

    content = path.read_bytes()
    return Manifest(
        model=model,
        recipe=recipe,
        digest=digest_of(content),
        size_bytes=len(content),
        backends=(recipe.target,),
        inputs=(input_spec(prepared.inputs),),
        parameters=prepared.parameters,
        flops=prepared.flops,
        fidelity=fidelity,
        built_with={**built_with(recipe), **_interface_words(prepared)},
        recipe_digest=recipe_digest(model, recipe),
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
    model, recipe, path = arguments
    try:
        build(model, _RECIPE.validate_json(recipe), Path(path))
    except FarmError as error:
        sys.stdout.write(f"refused: {json.dumps({'message': error.message, 'hint': error.hint})}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
