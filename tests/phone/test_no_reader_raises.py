"""Whatever happens to a text on its way, nothing that reads one raises; readers are found by signature."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

import farm.harness
import farm.phone
from agents.device.cleanup import cached_files
from agents.device.conditions import condition, condition_commands, state_by_digest
from agents.device.facts import find_unsupported_reason
from farm.core.base.ids import digest_of
from farm.core.errors import InvalidInput
from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.plan import PlanFile, RunPlan
from farm.harness.base import device_check
from farm.harness.generic.adapter import GenericHarness
from farm.harness.registry import get_harness, harness_names
from farm.harness.torch.output import ObserverUnit, observer_values_ns
from farm.phone.adb.shell_output import output_by_section, section_head
from farm.phone.assemble import device_facts
from farm.phone.settings import control_states, with_read_back
from farm.wire.documents.files.harness_definition import harness_definition
from tests.phone.adb.phone_samples import SAMPLES
from tests.support.session.example_count import examples

_OUTPUTS = Path(__file__).parents[1] / "support" / "harness" / "outputs"
_CAPTURES = Path(__file__).parents[3] / "shared" / "captures"
_MAX_CHARS = 6000
#: They take a name or a table of the farm's own, no text of a device or a program.
_OTHERS = {"get_harness", "get_options", "entries", "section_head"}
_GENERIC = GenericHarness(
    harness_definition(
        {
            "name": "x",
            "backends": {"cpu": {}, "gpu": {"proof": "Using (.*)", "fallback": "falling"}},
            "unsupported": ["no such device"],
            "samples": {"pattern": r"=\s*(\S*)", "unit": "ms"},
        }
    ).definition()
)
_FILE = PlanFile(name="check", digest=digest_of(b"check"), size_bytes=1)
_NOW = datetime(2026, 1, 2, tzinfo=UTC)
_SECTIONS = [
    *(
        "getprop",
        "cpuinfo",
        "cpufreq",
        "possible",
        "gles",
        "vkjson",
        "features",
        "services",
        "lshal",
        "vintf",
    ),
    *("nproc", "meminfo", "storage", "thermal_hal", "missing", "setsid", "work_root"),
]


def _functions() -> Iterator[Callable[[str], object]]:
    """Yield each public function of the parsers whose required arguments are all texts."""
    for package in (farm.phone, farm.harness):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, function in vars(importlib.import_module(module.name)).items():
                if inspect.isfunction(function) and function.__module__ == module.name:
                    parameters = inspect.signature(function).parameters.values()
                    required = [each for each in parameters if each.default is each.empty]
                    if name.startswith("_") or name in _OTHERS or not required:
                        continue
                    if all(each.annotation is str for each in required):
                        yield partial(_call, function, len(required))


def _call(function: Callable[..., object], arguments: int, text: str) -> None:
    # Files that people import are refused with a reason; nothing else may be raised there.
    is_import = function.__module__.startswith("farm.harness.external.")
    with suppress(InvalidInput) if is_import else nullcontext():
        function(*[text] * arguments)


def _parse(name: str, backend: str, text: str) -> None:
    harness = _GENERIC if name == "x" else get_harness(name)
    plan = RunPlan(harness=name, backend=backend, files=(), argv=("tool",), timeout_s=60.0)
    half = len(text) // 2
    passes = tuple(PassEvidence(name=each, stdout=text, log=text) for each in ("op_profile", "placement"))
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


READERS: list[Callable[[str], object]] = [
    *_functions(),
    *(partial(_parse, name, backend) for name in harness_names() for backend in get_harness(name).backends),
    *(partial(_parse, "x", backend) for backend in ("cpu", "gpu")),
    *(cached_files, state_by_digest, _read_check, _read_sections),
    lambda text: with_read_back(control_states(text), text),
    lambda text: observer_values_ns(text, ObserverUnit.MILLISECOND),
]
#: A driver that is declared with such a version, and registered with another one.
_UNUSUAL_VERSION = (
    "<hal><name>android.hardware.neuralnetworks</name><version>²</version><fqname>IDevice/a</fqname></hal>\n"
    "android.hardware.neuralnetworks@1.3::IDevice/a 1/2 77 88\n"
)
_TEXTS = [
    *(sample.text for sample in SAMPLES.values()),
    *(path.read_text() for path in sorted(_OUTPUTS.rglob("*.txt"), key=lambda path: path.name)),
    *(path.read_text(errors="replace")[:_MAX_CHARS] for path in sorted(_CAPTURES.rglob("*.txt"))),
]
#: What Python's `int`, `float`, `isdigit`, `splitlines` and `strip` treat otherwise than `[0-9]` and `\n`.
_SCRAPS = st.sampled_from(
    [*map(chr, (*range(32), 127, 133, 160, 8232, 65279)), "²", "٣", "1_0", "9" * 5000, "-", "1e999", "nan"]
)


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    """A text of a device or program: cut, doubled, with other line ends, or with scraps in it."""
    text = draw(st.sampled_from(_TEXTS))
    start = draw(st.integers(0, len(text)))
    text = draw(st.sampled_from([text, text[start:], text[:start], text + text, text[start:] + text[:start]]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r", "\0", "\x1c", "\n\n"])))
    for scrap in draw(st.lists(_SCRAPS, max_size=4)):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + scrap + text[at + draw(st.integers(0, 3)) :]
    return text


@settings(max_examples=examples(8, 100))
@given(text=spoilt())
@example(text="")
@example(text="\x1c5")
@example(text="5 .5")
@example(text=_UNUSUAL_VERSION)
def test_no_reader_raises_on_any_text(text: str) -> None:
    for read in READERS:
        read(text)


def test_the_readers_are_found() -> None:
    assert len(READERS) > 70
