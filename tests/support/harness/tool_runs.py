"""Programs of adapters, really run on this machine as a phone's shell would run them."""

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from farm.core.base.ids import digest_of
from farm.core.base.setting_values import SettingValue
from farm.core.devices.condition import Gates
from farm.core.models.variant import Format, Manifest, Precision, Recipe
from farm.core.programs.bundle import single_file
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.core.runs.plan import RunPlan, fill_argv
from farm.harness.base.adapter import Harness, RunRequest
from farm.harness.base.options import flag_defaults


def plan_of(
    harness: Harness, content: bytes, format: Format, backend: str, settings: Mapping[str, SettingValue]
) -> RunPlan:
    """The plan of one run of a model file that any backend is allowed for."""
    digest = digest_of(content)
    manifest = Manifest(
        model="net",
        recipe=Recipe(precision=Precision.FLOAT32, format=format),
        digest=digest,
        size_bytes=len(content),
        backends=tuple(harness.backends),
        inputs=(),
        recipe_digest=digest,
    )
    return harness.plan(
        RunRequest(
            variant=manifest,
            bundle=single_file(harness.name, digest, 1),
            backend=backend,
            settings={**flag_defaults(harness), **settings},
            timeout_s=60.0,
            gates=Gates(),
        )
    )


def evidence_of(
    plan: RunPlan,
    program: Path,
    model: Path,
    *,
    folder: Path,
    environment: Mapping[str, str],
    further: tuple[str, ...] = (),
) -> Evidence:
    """What the program leaves behind, with nothing of this process's environment but the system's PATH."""
    paths = {"program": str(program), "model": str(model)}
    argv = (*fill_argv(plan, work=str(folder), path_by_name=paths), *further)
    started = time.monotonic()
    ran = subprocess.run(
        argv, env={"PATH": os.defpath, **environment}, cwd=folder, capture_output=True, check=False
    )
    code = ran.returncode if ran.returncode >= 0 else 128 - ran.returncode
    return Evidence(
        fence=1,
        argv=argv,
        exit=ExitRecord(code=code, duration_s=time.monotonic() - started),
        stdout=ran.stdout.decode(),
        stderr=ran.stderr.decode(),
    )
