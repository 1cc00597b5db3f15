"""Definitions, plans and outputs of a generic harness, for tests."""

from typing import Any

from farm.core.base.ids import Digest
from farm.core.base.setting_values import SettingValue
from farm.core.devices.condition import Gates
from farm.core.programs.bundle import single_file
from farm.core.runs.measurement import Reading, RunFailure
from farm.core.runs.plan import RunPlan
from farm.harness.base.adapter import RunRequest
from farm.harness.generic.adapter import GenericHarness
from farm.wire.documents.files.harness_definition import harness_definition
from tests.support.harness.run_samples import evidence, manifest

BUNDLE = single_file("infer", Digest("c" * 64), 9_000)


def data(**changes: Any) -> dict[str, Any]:
    """A definition that times whole processes, without a model."""
    return {"name": "infer", **changes}


def harness(**changes: Any) -> GenericHarness:
    return GenericHarness(harness_definition(data(**changes)).definition())


def plan(harness: GenericHarness, *, backend: str = "cpu", **settings: SettingValue) -> RunPlan:
    defaults = {name: flag.default for name, flag in harness.flags.items()}
    return harness.plan(
        RunRequest(
            variant=manifest() if harness.needs_model else None,
            bundle=BUNDLE,
            backend=backend,
            settings={**defaults, **settings},
            timeout_s=60.0,
            gates=Gates(),
        )
    )


def read(
    harness: GenericHarness,
    stdout: str = "",
    *,
    backend: str = "cpu",
    stderr: str = "",
    code: int = 0,
    **settings: SettingValue,
) -> Reading | RunFailure:
    """What the harness makes of an output."""
    found = evidence(stdout, code=code, stderr=stderr)
    return harness.parse(plan(harness, backend=backend, **settings), found)


def reading(harness: GenericHarness, stdout: str = "", **given: Any) -> Reading:
    found = read(harness, stdout, **given)
    assert isinstance(found, Reading), found
    return found


def failure(harness: GenericHarness, stdout: str = "", **given: Any) -> RunFailure:
    found = read(harness, stdout, **given)
    assert isinstance(found, RunFailure), found
    return found
