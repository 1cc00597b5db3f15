"""Build one variant, in a process of its own: python -m farm.variants.build_one MODEL PRECISION FORMAT FILE.

Steps go to stdout, one `step: ...` a line; a refusal as `refused: {json}`; anything else that goes wrong is a
traceback on stderr. Scripted classes, engines and import side effects are global to a process of torch.
"""

import json
import sys
from pathlib import Path

from farm.core.errors import FarmError
from farm.core.ids import digest_of
from farm.core.variant import Format, Manifest, Precision, Recipe
from farm.variants.catalogue import get_entry
from farm.variants.manifest_file import manifest_path, write_manifest
from farm.variants.recipe import QCONFIG, SEED, made_with, recipe_digest

_CHECK_IMAGES = 6


def build(model: str, recipe: Recipe, path: Path) -> None:
    """Write the variant and its manifest.

    Raises:
        FarmError: the model is unknown, or the built file does not do what the network does.
    """
    _say("importing torch")
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from farm.variants import export, networks, quantize, verify

    torch.set_num_threads(1)  # sums in one order: the same bytes every time
    torch.set_grad_enabled(False)
    loading_engine = torch.backends.quantized.engine
    spec = get_entry(model).input

    _say("making weights")
    net = networks.network(model)
    parameters = networks.parameter_count(net)
    net = networks.fused(net)
    batch = networks.images(spec.shape, _CHECK_IMAGES, seed=SEED + 1)
    expected = net(batch)
    with FlopCounterMode(display=False) as flops:
        net(batch[:1])

    if recipe.precision is Precision.INT8_CORE:
        _say("quantizing")
        net = quantize.int8_core(net, networks.images(spec.shape, networks.CALIBRATION_IMAGES, seed=SEED))

    _say("writing")
    export.save(net, batch[:1].clone(), recipe.format, path)

    _say("checking")
    for engine in (QCONFIG, loading_engine):
        actual = verify.outputs(path, recipe.format, batch, engine=engine)
        verify.check_outputs(expected, actual, recipe.precision)
    write_manifest(_manifest(model, recipe, path, parameters, flops.get_total_flops()), manifest_path(path))


def _manifest(model: str, recipe: Recipe, path: Path, parameters: int, flops: int) -> Manifest:
    content = path.read_bytes()
    return Manifest(
        model=model,
        recipe=recipe,
        digest=digest_of(content),
        size_bytes=len(content),
        backends=("cpu",),
        inputs=(get_entry(model).input,),
        parameters=parameters,
        flops=flops,
        made_with=made_with(recipe),
        recipe_digest=recipe_digest(model, recipe),
    )


def _say(step: str) -> None:
    sys.stdout.write(f"step: {step}\n")
    sys.stdout.flush()


def main(words: list[str]) -> int:
    """Build the variant that the words name; the exit code says how it went."""
    model, precision, format, path = words
    try:
        build(model, Recipe(precision=Precision(precision), format=Format(format)), Path(path))
    except FarmError as error:
        sys.stdout.write(f"refused: {json.dumps({'message': error.message, 'hint': error.hint})}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
