"""Whatever is uploaded, claimed, finished, swept and cut short: what unfinished work needs is there."""

import shutil
import tempfile
from functools import cache
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from farm.blobs.disk import DiskBlobs
from farm.core.base.ids import HostId, digest_of
from farm.core.errors import MatrixInvalid
from farm.core.operations.retention import StorageRules
from farm.core.runs.evidence import Evidence
from farm.database.transaction import bind_tx
from farm.services.files.builtin_programs import builtin_digests
from farm.services.files.retention import expire_over_limit, sweep_storage
from farm.store.files.artifacts import expired_at_by_digest, stored_artifacts
from farm.wire.agents.protocol import Assignment
from tests.support.farm.service_fixture import FarmRig, HostRig, ended, good_evidence, plan_of, torch_output
from tests.support.invariants.invariants import check_invariants
from tests.support.session.example_count import examples

MODELS = ("alpha", "beta", "gamma")
LIMITS = (0, 1_100_000, 10**9)


@cache
def template() -> Path:
    """The folder of a farm with one healthy phone: migrating a database takes longer than an example."""
    folder = Path(tempfile.mkdtemp(prefix="farm-template-"))
    farm = FarmRig(folder)
    host = farm.host()
    host.plug_in("phone-1")
    host.earn_health()
    farm.close()
    return folder


def short_evidence(assignment: Assignment) -> Evidence:
    plan = plan_of(assignment)
    if plan.harness == "device_check":
        return good_evidence(assignment)
    count = int(plan.settings["iter"])
    return ended(assignment, torch_output([1000.0 * (1 + number % 3) for number in range(count)]))


NEEDED_BY_JOBS = """
    SELECT variants.digest FROM jobs JOIN cells USING (cell_id) JOIN variants USING (variant_id)
    WHERE jobs.state <> 'finished'
    UNION
    SELECT program_files.digest FROM jobs JOIN cells USING (cell_id) JOIN program_files USING (program_id)
    WHERE jobs.state <> 'finished'
"""


class Storage(RuleBasedStateMachine):
    """A farm with one phone, in a folder of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="farm-storage-"))
        shutil.copytree(template(), self.folder, dirs_exist_ok=True)
        self.farm = FarmRig(self.folder)
        self.farm.clock.advance(1000)
        self.host = HostRig(self.farm, HostId("bench-1"))
        self.host.restart()
        self.host.plug_in("phone-1")
        self.running: list[Assignment] = []

    def teardown(self) -> None:
        self.farm.close()
        check_invariants(self.farm.path)
        shutil.rmtree(self.folder)

    @rule(model=st.sampled_from(MODELS))
    def upload(self, model: str) -> None:
        self.farm.variant(model=model)

    @rule(model=st.sampled_from(MODELS))
    def upload_cut_short_before_its_row(self, model: str) -> None:
        content = f"half of {model}".encode()
        self.farm.blobs.put([content], digest_of(content))

    @rule(
        models=st.lists(st.sampled_from(MODELS), min_size=1, max_size=2, unique=True),
        rounds=st.integers(1, 2),
    )
    def submit(self, models: list[str], rounds: int) -> None:
        axes = {"model": models, "precision": "float32", "format": "torchscript", "backend": "cpu"}
        try:
            self.farm.submit(axes=axes, baseline=None, rounds=rounds)
        except MatrixInvalid:
            return

    @precondition(lambda self: not self.running)
    @rule()
    def claim(self) -> None:
        self.running = list(self.host.exchange().assignments)

    @precondition(lambda self: self.running)
    @rule(short=st.booleans())
    def finish(self, short: bool) -> None:
        for assignment in self.running:
            # A short block is measured again, with the cells whose jobs were done.
            answer = short_evidence if short else good_evidence
            self.host.report(assignment.attempt_id, answer(assignment))
            self.host.clean(assignment)
        self.running = []

    @rule(limit_bytes=st.sampled_from(LIMITS), days=st.sampled_from([None, 1]))
    def sweep(self, limit_bytes: int, days: int | None) -> None:
        rules = StorageRules(blobs_limit_bytes=limit_bytes, evidence_keep_days=days)
        sweep_storage(self.farm.database, self.farm.blobs, rules, self.farm.clock)
        kept = {artifact.digest for artifact in self.farm.read(stored_artifacts)}
        known = kept | self.farm.read(expired_at_by_digest).keys()
        assert not self.farm.blobs.digests() & known - kept

    @rule(limit_bytes=st.sampled_from(LIMITS))
    def sweep_cut_short_between_mark_and_removal(self, limit_bytes: int) -> None:
        rules = StorageRules(blobs_limit_bytes=limit_bytes)
        self.farm.write(bind_tx(expire_over_limit, now=self.farm.clock.now()), rules)

    @rule()
    def restart_the_farm(self) -> None:
        self.farm.blobs = DiskBlobs(self.farm.blobs.folder)

    @rule(seconds=st.sampled_from([60.0, 2 * 3600.0, 86_400.0]))
    def wait(self, seconds: float) -> None:
        self.farm.clock.advance(seconds)

    @invariant()
    def what_is_needed_is_there(self) -> None:
        needed = {row["digest"] for row in self.farm.rows(NEEDED_BY_JOBS)} | builtin_digests()
        assert not needed & self.farm.read(expired_at_by_digest).keys()
        assert all(self.farm.blobs.size_bytes(digest) is not None for digest in needed)

    @invariant()
    def what_is_missing_is_marked(self) -> None:
        for artifact in self.farm.read(stored_artifacts):
            assert self.farm.blobs.size_bytes(artifact.digest) == artifact.size_bytes


Storage.TestCase.settings = settings(max_examples=examples(4, 20), stateful_step_count=25, deadline=None)
test_whatever_happens_what_unfinished_work_needs_is_there_and_what_is_missing_is_marked = Storage.TestCase
