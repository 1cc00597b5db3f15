"""An adapter that reads outputs otherwise has another parser version; BENCHFARM_DRAW=1 adds one that is new.

What was noted of a version is never drawn over: numbers that were read by it exist.
"""

import hashlib
import json
import os
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.measurement import Reading
from farm.core.runs.plan import RunPlan
from farm.harness.registry import get_harness, harness_names

OUTPUTS = sorted(
    (Path(__file__).parents[2] / "support" / "harness" / "outputs").rglob("*.txt"), key=lambda path: path.name
)
#: Outputs that came when answers to the others had been recorded; only their own tool is asked about them.
OUTPUTS_OF_ONE = {
    "llama-bench": sorted(OUTPUTS[0].parents[1].rglob("llama_bench*.jsonl")),
    "litert_lm_advanced_main": sorted(OUTPUTS[0].parents[1].rglob("litert_lm*.log")),
    "tvm_benchmark": sorted(OUTPUTS[0].parents[1].rglob("tvm_benchmark*.log")),
    "llama_main": sorted(OUTPUTS[0].parents[1].rglob("llama_main*.log")),
    "model_benchmark": sorted(OUTPUTS[0].parents[1].rglob("model_benchmark*.log")),
    "llm_bench": sorted(OUTPUTS[0].parents[1].rglob("llm_bench*.log")),
}
NOTED = Path(__file__).parent / "parser_answers.json"


def answer(name: str, backend: str, stdout: str, stderr: str, code: int) -> object:
    """What is read, or why nothing is; without words for people, which may change."""
    plan = RunPlan(harness=name, backend=backend, files=(), argv=("tool",), timeout_s=60.0)
    ended = ExitRecord(code=code, duration_s=1.0)
    found = get_harness(name).parse(plan, Evidence(fence=1, exit=ended, stdout=stdout, stderr=stderr))
    if not isinstance(found, Reading):
        return [found.code, found.outcome, found.blame]
    # A field that older versions of readings did not have is no other answer where it says nothing.
    silent = {"median_ns": None, "generation": None, "wrong_output": ""}
    return {
        name: value for name, value in asdict(found).items() if name not in silent or value != silent[name]
    }


def outputs_of(name: str) -> list[Path]:
    """The outputs that an adapter is asked about."""
    return [*OUTPUTS, *OUTPUTS_OF_ONE.get(name, ())]


def rounded(value: Any) -> Any:
    """Another machine's last digits are no other answer."""
    match value:
        case float():
            return f"{value:.9g}"
        case dict():
            return {name: rounded(each) for name, each in value.items()}
        case list() | tuple():
            return [rounded(each) for each in value]
        case _:
            return value


def answers(name: str) -> str:
    """A digest of all that an adapter reads of all outputs."""
    found = [
        rounded(answer(name, backend, *(("", text) if is_stderr else (text, "")), code))
        for text, backend, code, is_stderr in product(
            (each.read_text(encoding="utf-8") for each in outputs_of(name)),
            get_harness(name).backends,
            (0, 1),
            (False, True),
        )
    ]
    return hashlib.sha256(json.dumps(found, sort_keys=True, default=str).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", harness_names())
def test_other_answers_are_those_of_another_version(name: str) -> None:
    noted: dict[str, dict[str, str]] = json.loads(NOTED.read_text(encoding="utf-8"))
    versions = noted.setdefault(name, {})
    version = str(get_harness(name).parser_version)
    if version not in versions and os.environ.get("BENCHFARM_DRAW"):
        versions[version] = answers(name)
        NOTED.write_text(json.dumps(noted, indent=2) + "\n", encoding="utf-8")
    assert versions.get(version) == answers(name), f"raise the parser_version of {name}, and draw it"


@pytest.mark.parametrize("name", harness_names())
def test_metrics_are_declared(name: str) -> None:
    adapter = get_harness(name)
    texts = [each.read_text(encoding="utf-8") for each in outputs_of(name)]
    answered = [answer(name, backend, text, "", 0) for text, backend in product(texts, adapter.backends)]
    readings = [reading for reading in answered if isinstance(reading, dict)]
    printed = {metric["name"] for reading in readings for metric in reading["metrics"]}
    exact, prefixes = set(adapter.metrics), tuple(m[:-1] for m in adapter.metrics if m.endswith("*"))
    assert {m for m in printed if m not in exact and not (prefixes and m.startswith(prefixes))} == set()


def test_the_newest_version_that_was_noted_is_the_one_that_reads() -> None:
    noted = json.loads(NOTED.read_text(encoding="utf-8"))
    newest = {name: max(map(int, versions)) for name, versions in noted.items()}
    assert newest == {name: get_harness(name).parser_version for name in harness_names()}
