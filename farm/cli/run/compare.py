"""`farm compare`: measure two model files against each other, on each device."""

from pathlib import Path
from typing import Annotated, Any

import typer

from farm.cli.files.local_variants import add_variant
from farm.cli.results.gate import (
    Decide,
    GateOption,
    Summary,
    check_gate_is_watched,
    deciding_rounds,
)
from farm.cli.run.matrix import (
    DEFAULT_AXES,
    RunOptions,
    flag_values,
    listed_backends,
    run_backends,
    run_selectors,
    variant_axes,
)
from farm.cli.run.model_file import file_manifest, has_own_name, same_files
from farm.cli.run.run import run_spec, submit_spec
from farm.cli.run.versions import variant_to_run
from farm.cli.shell.address import connect
from farm.cli.shell.options import DeclaredInputs, DeviceNames, Json, ProcessTimeout, WatchToEnd
from farm.cli.shell.output import print_notice
from farm.client.farm_client import FarmClient
from farm.core.errors import InvalidInput
from farm.core.matrices.matrix import USUAL_ROUNDS
from farm.core.models.variant import Variant, named_by_digest, precision_note, variant_name
from farm.presentation.text import seconds
from farm.wire.documents.files.programs import HarnessView

_LONGEST_NAME = 200


def compare(
    context: typer.Context,
    baseline: Annotated[str, typer.Argument(metavar="A", help="Model file, or name or digest of a variant.")],
    candidate: Annotated[str, typer.Argument(metavar="B", help="The same; it is compared with A.")],
    harness: Annotated[
        str | None, typer.Option(metavar="NAME", help="Harness that runs both; see `farm harness list`.")
    ] = None,
    device: DeviceNames = None,
    backend: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Comma-separated; A and B are compared on each. Default: cpu."),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, max=100, metavar="N", help="Process starts of each. Default: 10."),
    ] = None,
    precision: Annotated[
        str | None, typer.Option(metavar="WORD", help="Precision of new files: float32, int8-core, ...")
    ] = None,
    inputs: DeclaredInputs = None,
    timeout: ProcessTimeout = "2m",
    watch: WatchToEnd = True,
    gate: GateOption = None,
    decide: Decide = False,
    summary: Summary = None,
    as_json: Json = False,
) -> None:
    """Compare two model files or variants on devices: B against A. Ctrl-C detaches.

    Both run in every round on the same device, so heat and drift cancel. It is a matrix like others. Those of
    two matrices are of different hours, and are not compared. `--input` declares an input of both. Flags of
    the harness follow `--`.

    Example: farm compare old.ptl new.ptl --harness speed_benchmark_torch --gate not-slower=3% --decide
    """
    check_gate_is_watched(gate, watch=watch, summary=summary, as_json=as_json)
    options = RunOptions(
        devices=tuple(device or ()),
        backends=listed_backends(backend),
        rounds=rounds or USUAL_ROUNDS,
        timeout_s=float(seconds(timeout)),
        precision=precision,
        inputs=tuple(inputs or ()),
    )
    if harness is None:
        hint = "farm compare A B --harness NAME; `farm harness list` has the names"
        raise InvalidInput("no harness to run them", hint=hint)
    with connect() as farm:
        spec = comparison_spec(farm, baseline, candidate, harness, context.obj, options)
        if decide:
            spec["rounds"] = deciding_rounds(spec["rounds"], gate)
        if not watch:
            raise typer.Exit(submit_spec(farm, spec, as_json=as_json))
        code = run_spec(
            farm, spec, metrics=False, gate=gate, can_decide=not decide, summary=summary, as_json=as_json
        )
    raise typer.Exit(code)


def comparison_spec(
    farm: FarmClient, a: str, b: str, name: str, flags: list[str], options: RunOptions
) -> dict[str, Any]:
    """Return the matrix of two variants, and register their files.

    Raises:
        NotFound: there is no such harness, variant or file.
        SelectorEmpty: the farm has no device with such a name.
        InvalidInput: both are one file, have one name in a matrix, or do not fit the harness.
    """
    harness = farm.harness(name)
    if not harness.needs_model:
        hint = "its own programs are compared as flags of one: axes of a matrix (docs/matrix.md)"
        raise InvalidInput(f"{name} runs no model: there are no two files to compare", hint=hint)
    settings = flag_values(flags, harness)
    baseline, candidate = (_variant(farm, word, harness, options) for word in (a, b))
    if baseline.manifest.digest == candidate.manifest.digest:
        hint = "`aa: true` in a matrix measures how far two equal cells lie apart"
        raise InvalidInput(f"{a} and {b} are the same file", hint=hint)
    own, other = variant_axes(baseline), variant_axes(candidate)
    if own == other:
        hint = "a matrix takes the newest file of a name: give the older one as a file, and it gets a name"
        raise InvalidInput(f"{a} and {b} are both {baseline.name}", hint=hint)
    named = [axis for axis in own if {own[axis], other[axis]} != {DEFAULT_AXES.get(axis)}]
    backends = run_backends(harness, options, baseline)
    spec: dict[str, Any] = {
        "name": f"compare {baseline.name} with {candidate.name}"[:_LONGEST_NAME],
        "harness": name,
        "axes": {**{axis: own[axis] for axis in named}, "backend": list(backends)},
        "include": [{**{axis: other[axis] for axis in named}, "backend": backend} for backend in backends],
        "baseline": {axis: own[axis] for axis in named if own[axis] != other[axis]},
        "settings": {flag: value for flag, value in settings.items() if value != ""},
        "devices": run_selectors(farm, options.devices),
        "rounds": options.rounds,
        "timeout_s": options.timeout_s,
    }
    # One declaration for both: the two get the same inputs.
    return {**spec, "inputs": list(options.inputs)} if options.inputs else spec


def _variant(farm: FarmClient, word: str, harness: HarnessView, options: RunOptions) -> Variant:
    """Return the variant of a file, registered where it is new, or the one that a name or digest means."""
    path = Path(word)
    if not path.is_file():
        hint = f"it is a file or a variant; `farm speedups {word}` has the comparisons of a matrix"
        return variant_to_run(farm, word, hint=hint if word.isdecimal() else None)
    variants = farm.variants()
    manifest = file_manifest(path, harness, precision=options.precision, inputs=options.inputs)
    for view in same_files(variants, manifest, precision=options.precision):
        if has_own_name(variants, view):
            return view
    if variant_name(manifest.model, manifest.recipe) in {view.name for view in variants}:
        # So that both stay.
        manifest = named_by_digest(manifest)
    if note := precision_note(manifest.recipe):
        print_notice(f"note: {note}")
    return add_variant(farm, path, manifest)
