"""One test run of a harness, to check its output and the parser."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from farm.cli.matrices.report import current_work
from farm.cli.run.matrix import RunOptions, harness_spec
from farm.cli.shell.exit_codes import exit_code
from farm.cli.shell.next_steps import watch_again_text
from farm.cli.shell.output import print_notice
from farm.cli.shell.wait import wait_for
from farm.core.base.ids import DeviceId, MatrixId
from farm.core.base.spec_errors import name_hint
from farm.core.errors import Blame, InvalidInput
from farm.core.jobs.job import JobState
from farm.core.runs.measurement import Outcome

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient
    from farm.wire.documents.files.programs import HarnessView
    from farm.wire.documents.matrices.matrices import AttemptView, JobView

#: Above the priority of matrices, below health checks.
_PRIORITY = 100
_NAME = "harness test"


def run_trial(
    farm: "FarmClient",
    name: str,
    device: str,
    *,
    model: str | None,
    backend: str | None,
    flags: Sequence[str],
    timeout_s: float,
) -> "AttemptView":
    """Run a harness once on a device and wait for it; a repeat for noise is cancelled.

    Raises:
        NotFound: there is no such harness, device or variant.
        InvalidInput: the harness has no such flag, or there is no file that it can run.
        typer.Exit: the user pressed Ctrl-C; the run continues.
    """
    harness = farm.harness(name)
    if backend is not None and backend not in harness.backends:
        hint = name_hint(backend, harness.backends)
        raise InvalidInput(f"{name} has no backend `{backend}`", hint=hint)
    device_id = farm.device(device).device_id
    options = RunOptions(
        devices=(device_id,), backends=(backend,) if backend else (), rounds=1, timeout_s=timeout_s
    )
    file = _model(farm, harness, model, backend)
    spec = harness_spec(farm, file, name, flags, options)
    view = farm.submit_matrix(
        {**spec, "name": _NAME, "priority": _PRIORITY, "devices": {"device_id": device_id}}
    )
    job = _finished_job(farm, view.matrix_id, device_id)
    if not job.attempts:
        raise InvalidInput(f"the run was {job.outcome} before it started", hint="run the test again")
    return farm.attempt(job.attempts[-1])


def exit_code_of(view: "AttemptView") -> int:
    """Return 0 for a measurement, else the exit code for the blame."""
    if view.outcome is Outcome.SUCCEEDED:
        return 0
    return exit_code(Blame(view.blame)) if view.blame else exit_code(Blame.FARM)


def _model(
    farm: "FarmClient", harness: "HarnessView", requested: str | None, backend: str | None
) -> str | None:
    """Return the requested file, else the newest variant that can run if the harness needs one."""
    if requested is not None or not harness.needs_model:
        return requested
    backends = {backend} if backend else set(harness.backends)
    candidates = [
        view
        for view in farm.variants()
        if backends & set(view.manifest.backends)
        and (not harness.formats or view.manifest.recipe.format in harness.formats)
    ]
    if not candidates:
        hint = "`farm variant build mobilenet_v2` builds one, `farm variant add FILE` registers yours"
        raise InvalidInput(f"{harness.name} runs a model, and the farm has no suitable one", hint=hint)
    newest = max(candidates, key=lambda view: view.variant_id)
    print_notice(f"Using {newest.name}; --model selects another.")
    return newest.name


def _finished_job(farm: "FarmClient", matrix_id: MatrixId, device_id: DeviceId) -> "JobView":
    """Wait for the first job and return it; repeats of its block are cancelled."""

    def text(_: "JobView") -> str:
        progress = farm.matrix(matrix_id).progress
        return f"{device_id}: {current_work(progress[0])}" if progress else f"{device_id}: queued"

    try:
        job = wait_for(lambda: farm.jobs(matrix_id)[0], lambda job: job.state is JobState.FINISHED, text)
    except KeyboardInterrupt:
        print_notice(watch_again_text(matrix_id))
        raise typer.Exit(130) from None
    if len(farm.jobs(matrix_id)) > 1:
        farm.cancel_matrix(matrix_id)
    return job
