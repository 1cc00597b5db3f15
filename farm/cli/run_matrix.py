"""The matrix that one line of `farm run` means, and what has to be registered for it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farm.cli.added_variant import add_variant, added_manifest
from farm.cli.output import err, talk
from farm.cli.run_flags import flag_values
from farm.cli.run_program import ARGUMENTS_FLAG, registered_program
from farm.cli.variant_report import picked
from farm.core.device import Admin, Presence
from farm.core.errors import InvalidInput, NotFound
from farm.core.plan import SettingValue
from farm.core.variant import Manifest

if TYPE_CHECKING:
    from farm.client import FarmClient
    from farm.wire.harness_views import HarnessView
    from farm.wire.views import VariantView

_DEFAULT_BACKEND = "cpu"
_NNAPI = "nnapi"
_LONGEST_NAME = 200


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
        InvalidInput: a flag the harness does not have, or a file too many or too few.
    """
    harness = farm.harness(name)
    settings = flag_values(flags, harness)
    if harness.needs_model != (file is not None):
        raise _file_or_not(harness)
    if file is None:
        return _spec(farm, name, name, {}, _backends(harness, options), settings, options)
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
    return _spec(farm, variant.name, name, axes, backends, settings, options)


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
        InvalidInput: the program cannot be run, or what reads its output cannot be.
    """
    if set(options.backends) - {_DEFAULT_BACKEND}:
        hint = "leave --backend out; with a definition it may have others: docs/harnesses.md"
        raise InvalidInput(f"a program of your own has the one backend {_DEFAULT_BACKEND}", hint=hint)
    name = registered_program(farm, program, name, time=time, metrics=metrics)
    for argument in arguments:
        if Path(argument).is_file():
            talk(
                f"note: {argument} is a file on this machine, and stays here; a program that needs files is "
                "registered with its folder: `farm harness add`"
            )
    settings = {ARGUMENTS_FLAG: shlex.join(arguments)} if arguments else {}
    return _spec(farm, " ".join([name, *arguments]), name, {}, (_DEFAULT_BACKEND,), settings, options)


def _spec(
    farm: "FarmClient",
    what: str,
    harness: str,
    axes: Mapping[str, SettingValue],
    backends: Sequence[str],
    settings: Mapping[str, SettingValue],
    options: RunOptions,
) -> dict[str, object]:
    spec: dict[str, Any] = {
        "name": f"run {what}"[:_LONGEST_NAME],
        "harness": harness,
        "axes": {**axes, "backend": list(backends)},
        "settings": {name: value for name, value in settings.items() if value != ""},
        "devices": _selectors(farm, options.devices),
        "rounds": options.rounds,
        "timeout_s": options.timeout_s,
    }
    if len(backends) > 1:
        spec["baseline"] = {"backend": backends[0]}
    return spec


def _selectors(farm: "FarmClient", names: Sequence[str]) -> list[dict[str, object]]:
    """What was named; else every phone that is there and that the operator lets work."""
    if names:
        return [{"device": name} for name in names]
    active = [device for device in farm.devices() if device.admin is Admin.ACTIVE]
    there = [str(device.device_id) for device in active if device.presence is not Presence.ABSENT]
    if not there:
        hint = "plug one in and `farm device admit` it, or start the farm with `farm up --virtual 2`"
        raise InvalidInput("no phone is there that may work", hint=hint)
    if gone := [str(device.device_id) for device in active if device.presence is Presence.ABSENT]:
        talk(f"note: left out, because they are not there: {', '.join(gone)}")
    return [{"device_id": there}]


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
        try:
            return picked(farm.variants(), file)
        except NotFound as error:
            hint = f"no such file is here, and the farm has no such variant; {error.hint}"
            raise NotFound(f"there is no {file!r}", hint=hint) from error
    manifest = added_manifest(path, model=options.model, precision=options.precision or "unstated")
    if harness.definition is not None:
        manifest = replace(manifest, backends=_can_run_on(manifest, harness.backends))
    known = farm.variants()
    same = [view for view in known if view.manifest.digest == manifest.digest]
    fitting = [view for view in same if _fits(view, options)]
    if not fitting:
        return add_variant(farm, path, manifest, err())
    meant = [view for view in fitting if picked(known, view.name).manifest.digest == manifest.digest]
    if not meant:
        raise InvalidInput(
            f"{file} is registered as {fitting[-1].name}, and that name means another file by now",
            hint="--model gives it a name of its own",
        )
    return meant[-1]


def _can_run_on(manifest: Manifest, backends: Sequence[str]) -> tuple[str, ...]:
    """What the format's runtimes have, and what a generic harness offers: its author knows its files.

    Only a conversion makes a file one for NNAPI.
    """
    offered = [backend for backend in backends if backend != _NNAPI]
    return tuple(dict.fromkeys([*manifest.backends, *offered]))


def _fits(view: "VariantView", options: RunOptions) -> bool:
    manifest = view.manifest
    return options.model in (None, manifest.model) and options.precision in (None, manifest.recipe.precision)


def _file_or_not(harness: "HarnessView") -> InvalidInput:
    if harness.needs_model:
        hint = f"farm run FILE --harness {harness.name}"
        return InvalidInput(f"{harness.name} runs a model, and no FILE is named", hint=hint)
    hint = f"farm run --harness {harness.name}"
    return InvalidInput(f"{harness.name} runs no model: it takes no FILE", hint=hint)
