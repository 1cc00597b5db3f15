"""The matrix of a `farm run`: its devices and flags, and the registration of its file or program."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farm.cli.files.local_variants import add_variant, replacement_note
from farm.cli.run.harness_choice import HarnessChoice
from farm.cli.run.model_file import file_manifest, has_own_name, same_files
from farm.cli.run.program import ARGUMENTS_FLAG, register_program
from farm.cli.run.versions import variant_to_run
from farm.cli.shell.output import print_notice
from farm.client.farm_client import FarmClient
from farm.core.base.setting_values import SettingValue
from farm.core.base.spec_errors import name_hint
from farm.core.devices.device import Admin, DeviceFacts, Presence
from farm.core.devices.selector import KnownDevice, select_devices
from farm.core.errors import InvalidInput
from farm.core.matrices.matrix import value_text
from farm.core.models.variant import DIGEST_SHOWN, Variant, precision_note
from farm.wire.documents.devices import DeviceView
from farm.wire.documents.files.programs import FlagView, HarnessView

_BOOLEANS = {"true": True, "false": False}


def flag_values(words: Sequence[str], harness: HarnessView) -> dict[str, SettingValue]:
    """Parse `--iter=5`, `--iter 5` or, for a boolean flag, `--fast`; `-` in names stands for `_`.

    Raises:
        InvalidInput: the flag is unknown, or its value is missing or of another type.
    """
    flag_by_name = {flag.name: flag for flag in harness.flags}
    values: dict[str, SettingValue] = {}
    for name, text in _pairs(words, flag_by_name, harness.name):
        flag = flag_by_name[name]
        if name in values:
            raise InvalidInput(f"--{name} is given twice", hint="flags that vary are axes of a matrix file")
        values[name] = _value(flag, text)
        if values[name] == "" != flag.default:
            raise InvalidInput(
                f"--{name} is empty, and a matrix cannot contain empty text", hint=_example_value(flag)
            )
    return values


def _pairs(
    words: Sequence[str], flag_by_name: dict[str, FlagView], harness: str
) -> Iterator[tuple[str, str | None]]:
    """Return each flag with its text; None for a flag without a value."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            hint = f"flags of {harness} follow `--`, like --name=value"
            raise InvalidInput(f"{word!r} is not a flag", hint=hint)
        name, equals, text = word.removeprefix("--").partition("=")
        name = name if name in flag_by_name else name.replace("-", "_")
        if name not in flag_by_name:
            hint = name_hint(name, flag_by_name) or f"{harness} has no flags"
            raise InvalidInput(f"{harness} has no flag --{name}", hint=hint)
        if equals:
            yield name, text
        elif isinstance(flag_by_name[name].default, bool) and (not rest or rest[0] not in _BOOLEANS):
            yield name, None
        elif rest:
            yield name, rest.pop(0)
        else:
            raise InvalidInput(f"--{name} has no value", hint=_example_value(flag_by_name[name]))


def _value(flag: FlagView, text: str | None) -> SettingValue:
    if text is None:
        return True
    try:
        value = _parse_value(flag.default, text)
    except (ValueError, KeyError) as error:
        raise InvalidInput(f"--{flag.name}: {text!r} does not fit", hint=_example_value(flag)) from error
    if flag.maximum is not None and not isinstance(value, str) and value > flag.maximum:
        raise InvalidInput(f"--{flag.name}: {text} is more than {flag.maximum}", hint=_example_value(flag))
    if flag.minimum is not None and not isinstance(value, str) and value < flag.minimum:
        raise InvalidInput(f"--{flag.name}: {text} is less than {flag.minimum}", hint=_example_value(flag))
    if flag.choices and value not in flag.choices:
        message = f"--{flag.name}: {text} is none of {', '.join(flag.choices)}"
        raise InvalidInput(message, hint=_example_value(flag))
    return value


def _parse_value(default: SettingValue, text: str) -> SettingValue:
    match default:
        case bool():
            return _BOOLEANS[text.lower()]
        case int():
            return int(text)
        case float():
            return float(text)
        case str():
            return text


def _example_value(flag: FlagView) -> str:
    description = f"{flag.help}; " if flag.help else ""
    return f"{description}its default is {value_text(flag.default) or 'empty'}"


def run_selectors(farm: FarmClient, names: Sequence[str]) -> list[dict[str, object]]:
    """Return selectors of the named devices, else of all active devices that are present.

    Raises:
        SelectorEmpty: the farm has no device with such a name.
        InvalidInput: none was named, and none is active and present.
    """
    if names:
        views = [view for view in farm.devices() if view.device_model and view.admin is not Admin.RETIRED]
        devices = list(map(_known_device, views))
        select_devices([{"device": (name,)} for name in names], devices)
        return [{"device": name} for name in names]
    active = [device for device in farm.devices() if device.admin is Admin.ACTIVE]
    present = [str(device.device_id) for device in active if device.presence is not Presence.ABSENT]
    if not present:
        hint = "plug one in and `farm device admit` it, or start the farm with `farm up --virtual 2`"
        raise InvalidInput("no active device is present", hint=hint)
    if absent := [str(device.device_id) for device in active if device.presence is Presence.ABSENT]:
        print_notice(f"note: left out because absent: {', '.join(absent)}")
    return [{"device_id": present}]


def _known_device(view: DeviceView) -> KnownDevice:
    """Return the facts of a device that a name can match."""
    facts = DeviceFacts(serialno=view.serial, device_model=view.device_model or "", work_root="")
    return KnownDevice(device_id=view.device_id, host=view.host, facts=facts, label=view.label)


_DEFAULT_BACKEND = "cpu"
LONGEST_NAME = 200
#: Options of `farm run` that are probably misplaced after `--`, as few programs have them.
_OWN_OPTIONS = ("--backend", "--device", "--harness", "--no-watch", "--quick", "--rounds")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a run."""

    devices: tuple[str, ...] = ()
    #: Empty: cpu, or the only backend of the harness.
    backends: tuple[str, ...] = ()
    rounds: int = 5
    timeout_s: float = 120.0
    model: str | None = None
    precision: str | None = None
    #: Declared ones of the file: `1x3x224x224:float32`.
    inputs: tuple[str, ...] = ()
    #: Patterns for the output of a program of the user; without `time` the whole process is timed.
    time: str | None = None
    metrics: tuple[str, ...] = ()


def harness_spec(
    farm: FarmClient, file: str | None, name: str | None, flags: Sequence[str], options: RunOptions
) -> dict[str, object]:
    """Return a matrix of one file, or of no file if the harness runs no model.

    Without a name, the harness is the only one that runs the format of the file.

    Raises:
        NotFound: there is no such harness, variant or file.
        SelectorEmpty: the farm has no device with such a name.
        InvalidInput: the harness has no such flag, or a file is missing or not allowed.
    """
    harness = farm.harness(name) if name is not None else HarnessChoice(farm, ()).harness_of(file or "")
    name = harness.name
    settings = flag_values(flags, harness)
    if harness.needs_model != (file is not None):
        raise _model_error(harness)
    devices = run_selectors(farm, options.devices)
    if file is None:
        return _spec(name, name, {}, run_backends(harness, options), settings, devices, options)
    variant = _variant(farm, file, harness, options)
    # Defaults of a matrix are left out, which keeps them out of the names of cells.
    axes = {name: value for name, value in variant_axes(variant).items() if value != DEFAULT_AXES.get(name)}
    backends = run_backends(harness, options, variant)
    return _spec(variant.name, name, axes, backends, settings, devices, options)


#: What a matrix takes for these axes where it does not name them.
DEFAULT_AXES = {"memory_format": "contiguous", "target": "cpu"}


def variant_axes(variant: Variant) -> dict[str, str]:
    """Return the axes of a matrix that name a variant."""
    recipe = variant.manifest.recipe
    return {
        "model": variant.manifest.model,
        "precision": str(recipe.precision),
        "format": str(recipe.format),
        "memory_format": recipe.memory_format,
        "target": recipe.target,
    }


def program_spec(
    farm: FarmClient, program: Path, arguments: Sequence[str], name: str | None, options: RunOptions
) -> dict[str, object]:
    """Register a program of the user, and return its matrix.

    Raises:
        SelectorEmpty: the farm has no device with such a name.
        InvalidInput: the program cannot be run, or the patterns for its output are not valid.
    """
    if set(options.backends) - {_DEFAULT_BACKEND}:
        hint = "leave --backend out; a definition can add backends: docs/harnesses.md"
        raise InvalidInput(f"a program of your own has only the backend {_DEFAULT_BACKEND}", hint=hint)
    devices = run_selectors(farm, options.devices)
    name = register_program(farm, program, name, time=options.time, metrics=options.metrics)
    for argument in arguments:
        if Path(argument).is_file():
            print_notice(
                f"note: {argument} is a local file and is not pushed; register a program that needs files "
                "with its folder: `farm harness add`"
            )
        if argument.partition("=")[0] in _OWN_OPTIONS:
            print_notice(f"note: {argument} is passed to {name}; options of `farm run` go before `--`")
    settings = {ARGUMENTS_FLAG: shlex.join(arguments)} if arguments else {}
    title = " ".join([name, *arguments])
    return _spec(title, name, {}, (_DEFAULT_BACKEND,), settings, devices, options)


def _spec(
    title: str,
    harness: str,
    axes: Mapping[str, SettingValue],
    backends: Sequence[str],
    settings: Mapping[str, SettingValue],
    devices: Sequence[Mapping[str, object]],
    options: RunOptions,
) -> dict[str, object]:
    spec: dict[str, Any] = {
        "name": f"run {title}"[:LONGEST_NAME],
        "harness": harness,
        "axes": {**axes, "backend": list(backends)},
        "settings": {name: value for name, value in settings.items() if value != ""},
        "devices": devices,
        "rounds": options.rounds,
        "timeout_s": options.timeout_s,
    }
    if options.inputs:
        spec["inputs"] = list(options.inputs)
    if len(backends) > 1:
        spec["baseline"] = {"backend": backends[0]}
    return spec


def listed_backends(text: str | None) -> tuple[str, ...]:
    """Return the backends of an option: `cpu,nnapi`."""
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def run_backends(harness: HarnessView, options: RunOptions, variant: Variant | None = None) -> Sequence[str]:
    """Return the requested backends, else cpu if it is supported, else the first supported one."""
    if options.backends:
        return options.backends
    supported = [
        backend for backend in harness.backends if variant is None or backend in variant.manifest.backends
    ]
    if _DEFAULT_BACKEND in supported or not supported:
        return (_DEFAULT_BACKEND,)
    return (supported[0],)


def _variant(farm: FarmClient, file: str, harness: HarnessView, options: RunOptions) -> Variant:
    """Return the variant of a file, registering it if it is new, or the variant with that name.

    Raises:
        NotFound: there is neither such a file nor such a variant.
        InvalidInput: the name of the file now refers to another file.
    """
    path = Path(file)
    if not path.is_file():
        if options.model is not None or options.precision is not None:
            hint = "leave them out: a registered variant has its own"
            raise InvalidInput(
                f"--model and --precision describe a file, and there is no file {file!r}", hint=hint
            )
        return variant_to_run(farm, file)
    manifest = file_manifest(
        path, harness, model=options.model, precision=options.precision, inputs=options.inputs
    )
    variants = farm.variants()
    fitting = same_files(variants, manifest, model=options.model, precision=options.precision)
    if not fitting:
        view = add_variant(farm, path, manifest)
        for note in filter(None, (precision_note(manifest.recipe), replacement_note(view))):
            print_notice(f"note: {note}")
        return view
    current = [view for view in fitting if has_own_name(variants, view)]
    if not current:
        raise InvalidInput(
            f"{file} is registered as {fitting[-1].name}, and that name now refers to another file",
            hint=f"{fitting[-1].manifest.digest[:DIGEST_SHOWN]} in its place runs the file itself;"
            f" `farm variant add {file}` gives it the name again, --model another one",
        )
    return current[-1]


def _model_error(harness: HarnessView) -> InvalidInput:
    if harness.needs_model:
        hint = f"farm run FILE --harness {harness.name}"
        return InvalidInput(f"{harness.name} runs a model, and no FILE is named", hint=hint)
    hint = f"farm run --harness {harness.name}"
    return InvalidInput(f"{harness.name} runs no model: it takes no FILE", hint=hint)
