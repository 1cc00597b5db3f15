"""Programs that misbehave, and a phone with another shell than ours: named, bounded, and no harm done."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from agents.virtual.pool import VirtualDeviceHandle
from agents.virtual.processes import JOURNAL_FILE, open_runs
from farm.cli.jobs.attempt import attempt_report
from farm.core.errors import Blame
from farm.wire.documents.matrices.jobs import AttemptView, JobView
from tests.support.agents.run_spans import overlapping_runs
from tests.support.fakes import failing_program, matrix_spec, stand_in_model, steady_program
from tests.support.farm.processes import (
    AgentProcess,
    FarmProcess,
    eventually,
    running_agent,
    running_farm,
    running_phones,
    runs_of,
)
from tests.support.invariants.invariants import check_invariants

pytestmark = pytest.mark.long


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """A farm and one agent with two phones, of which one runs commands in mksh as Android does."""

    farm: FarmProcess
    phone: VirtualDeviceHandle
    mksh_phone: VirtualDeviceHandle | None

    def ended_job(
        self, phone: VirtualDeviceHandle, *, timeout_s: float = 60.0
    ) -> tuple[JobView, AttemptView]:
        """The one job of a matrix of one run with the program registered last, and its one attempt."""
        spec = matrix_spec(
            devices={"device_id": phone.serial},
            exclude=[{"precision": "int8-core"}],
            rounds=1,
            baseline=None,
            timeout_s=timeout_s,
        )
        matrix_id = self.farm.submit(spec)
        self.farm.await_matrix(matrix_id, within_s=120)
        with self.farm.client() as client:
            (job,) = client.jobs(matrix_id)
            (attempt_id,) = job.attempts
            return job, client.attempt(attempt_id)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    mksh = shutil.which("mksh")
    with running_farm(FarmProcess(folder / "farm")) as farm, ExitStack() as stack:
        phones = stack.enter_context(running_phones(1, folder / "phones"))
        if mksh:
            phones += stack.enter_context(running_phones(1, folder / "mksh-phones", shell=mksh))
        stack.enter_context(running_agent(AgentProcess(farm, folder / "agent", phones, host="bench-1")))
        for precision in ("float32", "int8-core"):
            farm.register_model(*stand_in_model(precision))
        farm.await_phones(phones)
        yield Lab(farm=farm, phone=phones[0], mksh_phone=phones[1] if mksh else None)
        check_invariants(farm.database_path)


@pytest.mark.parametrize(
    ("script", "code", "said", "hint"),
    [
        ("echo loading >&2; kill -s SEGV $$", "run.crashed", ["SIGSEGV", "loading"], "by hand"),
        ("exit 0", "run.output_unreadable", ["exit code 0", "Main runs."], "registered"),
        (r"printf '\000\377\033[31m{}\n'; exit 0", "run.output_unreadable", ["exit code 0"], "registered"),
        ("trap '' TERM; sleep 1000 & wait", "run.timed_out", ["killed after", "Main runs."], "timeout_s"),
    ],
    ids=["crashes", "prints nothing of use", "prints garbage", "never ends"],
)
def test_a_program_that_misbehaves_is_named_with_what_it_did_and_a_hint(
    lab: Lab, script: str, code: str, said: list[str], hint: str
) -> None:
    lab.farm.register_program(failing_program(script))
    # In this time a busy machine starts the program, which prints a line first.
    job, attempt = lab.ended_job(lab.phone, timeout_s=5.0)
    assert (job.outcome, job.code) == ("failed", code)
    assert (attempt.outcome, attempt.blame, attempt.code) == ("failed", Blame.VARIANT, code)
    assert job.message is not None
    for words in said:
        assert job.message.count(words) == 1
    assert hint in job.message
    assert attempt.evidence is not None
    assert lab.farm.cli("attempt", "show", str(attempt.attempt_id)) == attempt.model_dump(mode="json")
    assert "Main runs." in attempt_report(attempt).plain


def test_after_all_that_the_phone_is_healthy_empty_and_of_use(lab: Lab) -> None:
    path = lab.phone.state / JOURNAL_FILE
    eventually(lambda: not open_runs(path), "nothing of a run lives on")
    with lab.farm.client() as client:
        (device,) = [each for each in client.devices() if each.device_id == lab.phone.serial]
    assert (device.presence, device.health) == ("online", "good")
    lab.farm.register_program(steady_program(0.1))
    job, attempt = lab.ended_job(lab.phone)
    assert (job.outcome, attempt.quality) == ("succeeded", "valid")
    assert overlapping_runs(runs_of([lab.phone])) == []


def test_a_phone_whose_commands_run_in_mksh_measures_like_any_other(lab: Lab) -> None:
    if lab.mksh_phone is None:
        pytest.skip("mksh is not installed")
    lab.farm.register_program(steady_program(0.3))
    job, attempt = lab.ended_job(lab.mksh_phone)
    assert (job.outcome, attempt.quality) == ("succeeded", "valid")
    (span,) = [span for span in runs_of([lab.mksh_phone]) if span.fence == attempt.fence]
    assert span.last_seen_ns > span.first_seen_ns
