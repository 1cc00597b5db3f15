"""Build one variant in a process of its own: main([SOURCE, RECIPE, FILE, FACTS, TRIALS, RECORDS]).

SOURCE and RECIPE are JSON. TRIALS and RECORDS are for a tuned file only: how many schedules to measure, and a
file of records, which has those of earlier trials before, and all afterwards. Steps go to stdout, one
`step: ...` a line; a refusal as `refused: {json}`; any other failure is a traceback on stderr. Scripted
classes, engines and import side effects are global to a process of torch. It runs in the environments of
other runtimes too, and imports nothing but torch, what they have, and what a person's own factory imports.
It leads a process group: when stdin closes, because the process that started it ended, the group ends.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farm.core.errors import FarmError, VariantInvalid
from farm.core.models.builders import TORCH, runtime_of
from farm.core.models.variant import Fidelity, Format, Precision, Recipe, TensorSpec
from farm.variants.recipe import QCONFIG, runs_here
from farm.variants.sources.source import Source, SourceKind, source_of_json
from farm.variants.sources.tuning_records import read_records

if TYPE_CHECKING:
    from farm.variants.networks import PreparedNetwork


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFacts:
    """What a manifest says of a file beside recipe and bytes. Parameters are the float32 network's."""

    inputs: tuple[TensorSpec, ...]
    parameters: int | None
    flops: int | None
    fidelity: Fidelity | None
    #: What only the network knows of how it was made, by its name in `built_with`.
    built_with: dict[str, str]


def build(
    source: Source, recipe: Recipe, path: Path, *, trials: int = 0, records: Path | None = None
) -> BuildFacts:
    """Write the variant; return its facts.

    Args:
        source: the network.
        recipe: what is made of it.
        path: the variant's file.
        trials: of a tuned file, how many schedules are measured.
        records: of a tuned file, those of earlier trials, if it exists; all are written to it.

    Raises:
        FarmError: the source yields no network, the recipe is impossible, or the file fails its verification.
    """
    _say("importing torch")
    import torch

    torch.set_num_threads(1)  # sums in one order: the same bytes every time
    torch.set_grad_enabled(False)
    runtime = runtime_of(recipe.format)
    if source.kind is SourceKind.ONNX:
        return _build_from_onnx(source, recipe, path)
    return (
        _build_for_torch(source, recipe, path)
        if runtime == TORCH
        else _build_for(runtime, source, recipe, path, trials, records)
    )


def _build_for(
    runtime: str, source: Source, recipe: Recipe, path: Path, trials: int, records: Path | None
) -> BuildFacts:
    """Build with the runtime's exporter, and compare what the runtime computes with the float32 network."""
    from farm.variants import networks

    exporter = _exporter(runtime)
    prepared = networks.prepare_network(
        source, Recipe(precision=Precision.FLOAT32, format=recipe.format), _say
    )
    if records is None:
        _say("writing")
        with _refusals(runtime, source, recipe):
            interface = exporter.write(prepared.net, prepared.calibration, recipe, path)
        prepared = replace(prepared, interface=interface)
    else:
        earlier = read_records(records) if records.exists() else None
        with _refusals(runtime, source, recipe):
            measured = exporter.write_tuned(
                prepared.net, prepared.calibration, recipe, path, trials=trials, records=earlier, say=_say
            )
        records.write_bytes(measured.content())
    _say("checking")
    if recipe.target == "vulkan":
        # Nothing here can run it: it is loaded, and not compared.
        with _refusals(runtime, source, recipe):
            exporter.check_loads(path)
        return _facts(prepared, None)
    fidelity = _compared(exporter, prepared, runtime, source, recipe, path)
    # What was compared for another CPU is not this file.
    return _facts(prepared, fidelity if runs_here(recipe) else None)


def _build_from_onnx(source: Source, recipe: Recipe, path: Path) -> BuildFacts:
    """Build from an ONNX file, and compare what is computed with what that file computes."""
    import torch

    from farm.variants.recipe import SEED
    from farm.variants.sources.onnx_source import completed_onnx_inputs
    from farm.variants.sources.samples import CALIBRATION_SAMPLES, CHECK_SAMPLES, drawn_samples, output_row

    exporter = _exporter("onnxruntime")
    origin = Path(source.origin)
    with _refusals("onnxruntime", source, recipe):
        stated = exporter.stated_inputs(origin)
    specs = completed_onnx_inputs(stated, source)
    samples = drawn_samples(specs, CHECK_SAMPLES, seed=SEED + 1)
    with _refusals("onnxruntime", source, recipe):
        expected = torch.cat([output_row(outputs) for outputs in exporter.run(origin, samples, None)])
        _say("writing")
        calibration = drawn_samples(specs, CALIBRATION_SAMPLES, seed=SEED)
        exporter.write_from_file(origin, calibration, recipe, path)
        _say("checking")
        actual = torch.cat([output_row(outputs) for outputs in exporter.run(path, samples, None)])
    from farm.variants import verify

    fidelity = verify.check_outputs(expected, actual, recipe.precision)
    return BuildFacts(inputs=specs, parameters=None, flops=None, fidelity=fidelity, built_with={})


def _compared(
    exporter: Any, prepared: "PreparedNetwork", runtime: str, source: Source, recipe: Recipe, path: Path
) -> Fidelity:
    import torch

    from farm.variants import verify
    from farm.variants.sources.samples import output_row

    with _refusals(runtime, source, recipe):
        outputs = exporter.run(path, prepared.samples, prepared.interface)
        actual = torch.cat(list(map(output_row, outputs)))
    return verify.check_outputs(prepared.expected, actual, recipe.precision)


def _exporter(runtime: str) -> Any:
    _say(f"importing {runtime}")
    return import_module(f"farm.variants.exporters.{runtime}")


@contextmanager
def _refusals(runtime: str, source: Source, recipe: Recipe) -> Iterator[None]:
    """Raise what an exporter or a runtime raises as a refusal that names the network."""
    try:
        yield
    except FarmError:
        raise
    except Exception as error:  # exporters raise what they like
        raise VariantInvalid(
            f"{runtime} cannot make {source.model} in {recipe.precision}: {_reason(error)}",
            hint="another precision, format or target may work",
        ) from error


def _reason(error: Exception) -> str:
    """Return the first lines of an error, where exporters name the operator."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])}"[:400]


def _build_for_torch(source: Source, recipe: Recipe, path: Path) -> BuildFacts:
    import torch

    from farm.variants import export
    from farm.variants.networks import prepare_network

    loading_engine = torch.backends.quantized.engine
    prepared = prepare_network(source, recipe, _say)
    if recipe.target == "nnapi":
        _check_before_conversion(prepared, recipe)
    _say("writing")
    export.save(prepared.net, prepared.first, recipe, path)
    _say("checking")
    return _facts(prepared, _check_file(prepared, recipe, path, loading_engine))


def _check_before_conversion(prepared: "PreparedNetwork", recipe: Recipe) -> None:
    """Check the network before its conversion: the output of an NNAPI file cannot be computed here."""
    import torch

    from farm.variants import verify
    from farm.variants.sources.samples import output_row

    actual = torch.cat([output_row(prepared.net(*sample)) for sample in prepared.samples])
    verify.check_outputs(prepared.expected, actual, recipe.precision)


def _check_file(
    prepared: "PreparedNetwork", recipe: Recipe, path: Path, loading_engine: str
) -> Fidelity | None:
    """Return the file's fidelity on the engine of mobile devices; it must also pass on this machine's."""
    from farm.variants import verify

    if recipe.target == "nnapi":
        verify.check_starts_nnapi(path, recipe.format, prepared.first)
        return None
    fidelities = [
        verify.check_outputs(
            prepared.expected,
            verify.outputs(path, recipe.format, prepared.samples, engine=engine),
            recipe.precision,
        )
        for engine in (QCONFIG, loading_engine)
    ]
    return None if recipe.precision == Precision.FLOAT32 else fidelities[0]


def _facts(prepared: "PreparedNetwork", fidelity: Fidelity | None) -> BuildFacts:
    interface = prepared.interface
    dtypes = [spec.dtype if interface is None else interface.dtype for spec in prepared.inputs]
    return BuildFacts(
        inputs=tuple(replace(spec, dtype=dtype) for spec, dtype in zip(prepared.inputs, dtypes, strict=True)),
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


def _keep_pipes() -> None:
    """Keep the pipes of stdin and stdout from processes that are started here, and end when stdin closes.

    So the one of stdout closes when this process ends, also where those that it started go on.
    """
    # Duplicates are not inherited. That of stdout is open until the process has an exit code.
    starter, steps, nothing = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDWR)
    sys.stdout = os.fdopen(steps, "w", closefd=False)
    for inherited in (0, 1):
        os.dup2(nothing, inherited)
    os.close(nothing)
    threading.Thread(target=_end_with, args=[starter], daemon=True).start()


def _end_with(starter: int) -> None:
    """Wait until a pipe closes, and end this process and all that it started."""
    os.read(starter, 1)
    os.killpg(os.getpid(), signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """Build the variant of the arguments; return the exit code."""
    _keep_pipes()
    source, recipe, path, facts, *tuning = arguments
    trials, records = (int(tuning[0]), Path(tuning[1])) if tuning else (0, None)
    try:
        words = json.loads(recipe)
        recipe_made = Recipe(**{**words, "format": Format(words["format"])})
        made = build(source_of_json(source), recipe_made, Path(path), trials=trials, records=records)
    except FarmError as error:
        sys.stdout.write(f"refused: {json.dumps({'message': error.message, 'hint': error.hint})}\n")
        return 1
    Path(facts).write_text(json.dumps(asdict(made)))
    return 0
