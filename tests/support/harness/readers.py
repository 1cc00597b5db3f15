"""Everything that reads a text of a device, a program or a person, found by signature."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import FunctionType, ModuleType

import agents
import farm.core
import farm.harness
import farm.phone
import farm.wire
from agents.device.conditions import condition, condition_commands
from agents.device.facts import find_unsupported_reason
from farm.blobs.inspection import check_model_file, inspect_program_file
from farm.core.base.ids import DeviceId, HostId, digest_of
from farm.core.devices.device import DeviceFacts
from farm.core.devices.selector import SELECTOR_KEYS, KnownDevice, select_devices
from farm.core.errors import FarmError, InvalidInput
from farm.core.programs.definition import Definition, OutputStream
from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.plan import PlanFile, RunPlan
from farm.harness.base import device_check
from farm.harness.base.adapter import Harness
from farm.harness.base.log_lines import LogLine, log_lines
from farm.harness.generic.adapter import GenericHarness
from farm.harness.llm.litert_lm.benchmark_info import MalformedInfo
from farm.harness.registry import get_harness, harness_names
from farm.harness.torch.output import ObserverUnit
from farm.phone.adb.shell_output import output_by_section, section_head
from farm.phone.assemble import device_facts
from farm.phone.hardware.nnapi import nnapi_drivers
from farm.phone.identity.properties import properties
from farm.phone.settings import control_states, with_read_back
from farm.wire.documents.files.harness_definition import harness_definition
from farm.wire.yaml_positions import YamlNotPlain

Reader = Callable[[str], object]

DEFINITION = harness_definition(
    {
        "name": "x",
        "backends": {"cpu": {}, "gpu": {"proof": "Using (.*)", "fallback": "falling"}},
        "unsupported": ["no such device"],
        "samples": {"pattern": r"=\s*(\S*)", "unit": "ms"},
    }
).definition()
_FILE = PlanFile(name="check", digest=digest_of(b"check"), size_bytes=1)
_PLAN = replace(device_check.plan(_FILE, _FILE), backend="gpu")
_NOW = datetime(2026, 1, 2, tzinfo=UTC)
_SECTIONS = [
    *("getprop", "cpuinfo", "cpufreq", "possible", "gles", "vkjson", "features", "services", "lshal"),
    *("vintf", "nproc", "meminfo", "storage", "thermal_hal", "missing", "setsid", "work_root"),
]


class _Everywhere(dict[str, str]):
    """The same text under every key."""

    def __init__(self, text: str) -> None:
        super().__init__(dict.fromkeys(_SECTIONS, text))

    def __missing__(self, key: str) -> str:
        return self["missing"]

    def get(self, key: str, default: object = None) -> str:
        return self["missing"]


def _evidence(text: str) -> Evidence:
    return Evidence(fence=1, exit=ExitRecord(code=1, duration_s=1.0), stdout=text, stderr=text)


#: Arguments that hold the text.
_OF_TEXT: Mapping[object, Callable[[str], object]] = {
    str: str,
    bytes: str.encode,
    memoryview: lambda text: memoryview(text.encode()),
    str | None: str,
    Mapping[str, str]: _Everywhere,
    Evidence: _evidence,
    Sequence[LogLine]: log_lines,
}
#: Arguments beside it.
_FURTHER: Mapping[object, object] = {
    int | None: None,
    OutputStream: OutputStream.BOTH,
    ObserverUnit: ObserverUnit.MILLISECOND,
    Definition: DEFINITION,
    RunPlan: _PLAN,
    Harness: get_harness("benchmark_model"),
    re.Pattern[str]: re.compile("ready|loaded"),
    re.Pattern[str] | None: None,
}
#: They take a name or a table of the farm's own, a number, or what another reader read.
NO_READERS = {
    *("get_harness", "get_options", "has_adapter", "entries", "section_head", "section_command"),
    *("tool_plan", "setting", "count_setting", "argument_words", "input_settings", "earlier_actual_backend"),
    *("placement_pass", "placement_passes", "first_match", "sustained_settings", "placement_of_pass"),
    *("torch_actual_backend", "time_reading", "row_reading", "lower_is_better", "matching_lines"),
    *("regime_of", "rate_metric", "times_before_decoding", "with_generation", "with_regime"),
    *("with_read_back", "disagreement", "without_failed", "text_fact", "fact_source", "with_profile"),
    "prompt_tokens",
    # They take a pattern that `pattern_problem` found none in.
    *("cost_problem", "first_line", "captures"),
}
#: What their adapter makes a failure of.
_REFUSALS: Mapping[str, tuple[type[Exception], ...]] = {"metrics_infos": (MalformedInfo,)}
#: Names of arguments that people and files fill, in packages that also take names of their own.
_FILLED = {"text", "data", "body", "content", "head", "header", "pattern", "url", "public_key", "cpuinfo"}


def _public_functions(*packages: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    for package in packages:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.endswith(".__main__"):
                continue
            for name, function in vars(importlib.import_module(module.name)).items():
                if inspect.isfunction(function) and function.__module__ == module.name and name[0] != "_":
                    yield f"{module.name}.{name}", function


def _required(function: FunctionType) -> list[inspect.Parameter]:
    return [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]


def _of_devices_and_programs() -> Iterator[tuple[str, FunctionType]]:
    for name, function in _public_functions(farm.phone, farm.harness):
        if any(each.annotation in _OF_TEXT for each in _required(function)):
            yield name, function


def unknown_readers() -> list[str]:
    """Return functions of the parsers that take a text and cannot be called with one here."""
    known = _OF_TEXT.keys() | _FURTHER.keys()
    return [
        name
        for name, function in _of_devices_and_programs()
        if function.__name__ not in NO_READERS
        and not all(each.annotation in known for each in _required(function))
    ]


def _call(function: FunctionType, text: str) -> object:
    arguments: dict[str, object] = {}
    positional: list[object] = []
    for each in _required(function):
        value = _OF_TEXT[each.annotation](text) if each.annotation in _OF_TEXT else _FURTHER[each.annotation]
        if each.kind is each.KEYWORD_ONLY:
            arguments[each.name] = value
        else:
            positional.append(value)
    return function(*positional, **arguments)


def _call_or_be_refused(function: FunctionType, refusals: tuple[type[Exception], ...], text: str) -> None:
    with suppress(*refusals):
        _call(function, text)


def _parse(harness: Harness, backend: str, text: str) -> None:
    plan = RunPlan(harness=harness.name, backend=backend, files=(), argv=("tool",), timeout_s=60.0)
    half = len(text) // 2
    ended_well = ExitRecord(code=0, duration_s=1.0)
    passes = tuple(
        PassEvidence(name=each, exit=ended_well, stdout=text, log=text)
        for each in ("op_profile", "placement", "result_files")
    )
    for code, stdout, stderr in ((0, text, ""), (0, text[:half], text[half:]), (1, "", text)):
        ended = ExitRecord(code=code, duration_s=1.0)
        evidence = Evidence(fence=1, exit=ended, stdout=stdout, stderr=stderr, passes=passes)
        assert isinstance(harness.parse(plan, evidence), Reading | RunFailure)


def _read_check(text: str) -> None:
    evidence = Evidence(fence=1, exit=ExitRecord(code=23, duration_s=1.0), stdout=text)
    device_check.failure(device_check.plan(_FILE, _FILE), evidence)
    device_check.reference_time(evidence)


def _read_sections(text: str) -> None:
    """Read the text as an answer in sections, and as the content of each section, while others are lost."""
    sections = output_by_section(f"{section_head('getprop')}{text}{section_head('setsid')}{text}")
    for answers in (sections, {}, dict.fromkeys(_SECTIONS, text)):
        find_unsupported_reason(answers)
        device_facts(answers, "serial")
    condition(dict.fromkeys(condition_commands("/tmp"), text), _NOW)


def _nnapi_drivers(text: str) -> object:
    return nnapi_drivers(service_list=text, lshal=text, vintf=text, properties=properties(text))


def _select(text: str) -> None:
    """Take the text for the value of a selector, and for what a device says of itself."""
    facts = DeviceFacts(serialno=text, device_model=text, soc=text, work_root="/tmp")
    device = KnownDevice(device_id=DeviceId("1"), host=HostId("1"), facts=facts, label=text, unit=1)
    for key in SELECTOR_KEYS:
        with suppress(FarmError):
            select_devices([{key: (text,)}], [device])


def _check_model_file(text: str) -> None:
    with NamedTemporaryFile() as file:
        Path(file.name).write_bytes(text.encode("latin-1", "replace"))
        with suppress(FarmError):
            check_model_file(Path(file.name))
        with suppress(FarmError):
            inspect_program_file(Path(file.name), ["--flag"])


def readers() -> dict[str, Reader]:
    """Return by name what reads an output of a device or program; none of it may raise on any text."""
    found: dict[str, Reader] = {}
    for name, function in _of_devices_and_programs():
        if function.__name__ in NO_READERS:
            continue
        # Files that people import are refused with a reason; nothing else may be raised there.
        is_import = name.startswith("farm.harness.external.")
        refusals = (InvalidInput,) if is_import else _REFUSALS.get(function.__name__, ())
        found[name] = partial(_call_or_be_refused, function, refusals)
    harnesses = [*map(get_harness, harness_names()), GenericHarness(DEFINITION)]
    for harness in harnesses:
        for backend in harness.backends:
            found[f"{type(harness).__module__}.{harness.name} {backend}"] = partial(_parse, harness, backend)
    found["farm.harness.base.device_check"] = _read_check
    found["agents.device.facts"] = _read_sections
    found["farm.phone.hardware.nnapi.nnapi_drivers"] = _nnapi_drivers
    found["farm.phone.settings.with_read_back"] = lambda text: with_read_back(control_states(text), text)
    return found


def entry_points() -> dict[str, Reader]:
    """Return by name what reads any text from outside, also of people, who get a reason for a refusal."""
    found = readers()
    for name, function in _public_functions(farm.core, farm.wire, agents):
        required = _required(function)
        if (
            function.__name__ not in NO_READERS
            and required
            and required[0].name in _FILLED
            and all(each.annotation in (str, bytes, memoryview) for each in required)
        ):
            found[name] = partial(_call_or_be_refused, function, (FarmError, ValueError, YamlNotPlain))
    found["farm.core.devices.selector"] = _select
    found["farm.blobs.inspection"] = _check_model_file
    return found
