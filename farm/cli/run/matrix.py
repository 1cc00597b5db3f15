"""The matrix that one line of `farm run` means, and what has to be registered for it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farm.cli.files.variant_add import add_variant, manifest_of_file
from farm.cli.files.variant_report import select_variant
from farm.cli.run.devices import run_selectors
from farm.cli.run.flags import flag_values
from farm.cli.run.program import ARGUMENTS_FLAG, register_program
from farm.cli.shell.output import err, print_notice
from farm.core.base.setting_values import SettingValue
from farm.core.errors import InvalidInput, NotFound
from farm.core.models.variant import Manifest

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient
    from farm.wire.documents.files.programs import HarnessView
    from farm.wire.documents.matrices.matrices import VariantView

_DEFAULT_BACKEND = "cpu"
_NNAPI = "nnapi"
_LONGEST_NAME = 200
#: Options of a run that few programs have, so that behind `--` they are more often a slip than meant.
_OWN_OPTIONS = ("--backend", "--device", "--harness", "--no-watch", "--quick", "--rounds")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the options of a run say."""

    devices: tuple[str, ...] = ()
    #: None named: cpu, or the only one that the harness has.
    backends: tuple[str, ...] = ()
    rounds: int = 5
    timeout_s: float = 120.0
    model: str | None = None
    precision: str | None = None


def harness_spec(
    farm: "FarmClient", file: str | None, name: str, flags: Sequence[str], options: RunOptions
) -> dict[str, object]:
    """A matrix of one file, or of none where the harness runs no model.

    Raises:
        NotFound: there is no such harness, variant or file.
        SelectorEmpty: the farm has no phone of such a name.
        InvalidInput: a flag the harness does not have, or a file too many or too few.
    """
    harness = farm.harness(name)
    settings = flag_values(flags, harness)
    if harness.needs_model != (file is not None):
        raise _model_error(harness)
    devices = run_selectors(farm, options.devices)
    if file is None:
        return _spec(name, name, {}, _backends(harness, options), settings, devices, options)
    variant = _variant(farm, file, harness, options)
    recipe = variant.manifest.recipe
    axes = {
        "model": variant.manifest.model,
        "precision": str(recipe.precision),
        "format": str(recipe.format),
        # A matrix takes these two where nothing is said, and cells are named by what is.
        **({} if recipe.memory_format == "contiguous" else {"memory_format": recipe.memory_format}),
        **({} if recipe.target == "cpu" else {"target": recipe.target}),
    }
    backends = _backends(harness, options, variant)
    return _spec(variant.name, name, axes, backends, settings, devices, options)


def program_spec(
    farm: "FarmClient",
    program: Path,
    arguments: Sequence[str],
    name: str | None,
    options: RunOptions,
    *,
    time: str | None,
    metrics: Sequence[str],
) -> dict[str, object]:
    """A matrix of a program of the user's own, which is registered by then.

    Raises:
        SelectorEmpty: the farm has no phone of such a name.
        InvalidInput: the program cannot be run, or what reads its output cannot be.
    """
    if set(options.backends) - {_DEFAULT_BACKEND}:
        hint = "leave --backend out; with a definition it may have others: docs/harnesses.md"
        raise InvalidInput(f"a program of your own has the one backend {_DEFAULT_BACKEND}", hint=hint)
    devices = run_selectors(farm, options.devices)
    name = register_program(farm, program, name, time=time, metrics=metrics)
    _note_arguments(arguments, name)
    settings = {ARGUMENTS_FLAG: shlex.join(arguments)} if arguments else {}
    what = " ".join([name, *arguments])
    return _spec(what, name, {}, (_DEFAULT_BACKEND,), settings, devices, options)


def _note_arguments(arguments: Sequence[str], name: str) -> None:
    for argument in arguments:
        if Path(argument).is_file():
            print_notice(
                f"note: {argument} is a file on this machine, and stays here; a program that needs files is "
                "registered with its folder: `farm harness add`"
            )
        if argument.partition("=")[0] in _OWN_OPTIONS:
            print_notice(f"note: {argument} goes to {name}; what `farm run` is to read stands before `--`")


def _spec(
    what: str,
    harness: str,
    axes: Mapping[str, SettingValue],
    backends: Sequence[str],
    settings: Mapping[str, SettingValue],
    devices: Sequence[Mapping[str, object]],
    options: RunOptions,
) -> dict[str, object]:
    spec: dict[str, Any] = {
        "name": f"run {what}"[:_LONGEST_NAME],
        "harness": harness,
        "axes": {**axes, "backend": list(backends)},
        "settings": {name: value for name, value in settings.items() if value != ""},
        "devices": devices,
        "rounds": options.rounds,
        "timeout_s": options.timeout_s,
    }
    if len(backends) > 1:
        spec["baseline"] = {"backend": backends[0]}
    return spec


def _backends(
    harness: "HarnessView", options: RunOptions, variant: "VariantView | None" = None
) -> Sequence[str]:
    """Those that were asked for; else cpu where that goes, or what does."""
    if options.backends:
        return options.backends
    can = [backend for backend in harness.backends if variant is None or backend in variant.manifest.backends]
    if _DEFAULT_BACKEND in can or not can:
        return (_DEFAULT_BACKEND,)
    return (can[0],)


def _variant(farm: "FarmClient", file: str, harness: "HarnessView", options: RunOptions) -> "VariantView":
    """The variant of that file, registered if it is new, or of that name.

    Raises:
        NotFound: there is neither.
        InvalidInput: the file is known by a name that means another file by now.
    """
    path = Path(file)
    if not path.is_file():
        if options.model is not None or options.precision is not None:
            hint = "leave them out: a variant of the farm has its own"
            raise InvalidInput(
                f"--model and --precision describe a file, and {file!r} is none here", hint=hint
            )
        try:
            return select_variant(farm.variants(), file)
        except NotFound as error:
            hint = f"no such file is here, and the farm has no such variant; {error.hint}"
            raise NotFound(f"there is no {file!r}", hint=hint) from error
    manifest = manifest_of_file(path, model=options.model, precision=options.precision or "unstated")
    if harness.definition is not None:
        manifest = replace(manifest, backends=_supported_backends(manifest, harness.backends))
    known = farm.variants()
    same = [view for view in known if view.manifest.digest == manifest.digest]
    fitting = [view for view in same if _fits(view, options)]
    if not fitting:
        return add_variant(farm, path, manifest, err())
    meant = [view for view in fitting if select_variant(known, view.name).manifest.digest == manifest.digest]
    if not meant:
        raise InvalidInput(
            f"{file} is registered as {fitting[-1].name}, and that name means another file by now",
            hint="--model gives it a name of its own",
        )
    return meant[-1]


def _supported_backends(manifest: Manifest, backends: Sequence[str]) -> tuple[str, ...]:
    """What the format's runtimes have, and what a generic harness offers: its author knows its files.

    Only a conversion makes a file one for NNAPI.
    """
    offered = [backend for backend in backends if backend != _NNAPI]
    return tuple(dict.fromkeys([*manifest.backends, *offered]))


def _fits(view: "VariantView", options: RunOptions) -> bool:
    manifest = view.manifest
    return options.model in (None, manifest.model) and options.precision in (None, manifest.recipe.precision)


def _model_error(harness: "HarnessView") -> InvalidInput:
    if harness.needs_model:
        hint = f"farm run FILE --harness {harness.name}"
        return InvalidInput(f"{harness.name} runs a model, and no FILE is named", hint=hint)
    hint = f"farm run --harness {harness.name}"
    return InvalidInput(f"{harness.name} runs no model: it takes no FILE", hint=hint)
