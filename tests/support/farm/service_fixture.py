"""A farm without HTTP for tests: a real database, real services, hosts and phones played by the test."""

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from pydantic import SecretStr
from sqlalchemy.engine import Connection

from farm.blobs.disk import DiskBlobs
from farm.core.base.ids import AttemptId, HostId, MatrixId, SessionId, digest_of
from farm.core.devices.device import DeviceFacts, Presence
from farm.core.errors import Blame, FarmError
from farm.core.jobs.attempt import AttemptState
from farm.core.models.variant import Format, Manifest, Recipe, TensorSpec, Variant
from farm.core.operations.role import Caller, Role
from farm.core.results.settle.report import IncomingReport, ReportAnswer
from farm.core.runs.evidence import Evidence, ExitRecord, RunError
from farm.core.runs.plan import RunPlan
from farm.database.engine import Database, sqlite_url
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import create_join_token, enroll
from farm.services.agents.exchange.answer import CallAnswer
from farm.services.agents.exchange.exchange import exchange
from farm.services.agents.sessions import open_session
from farm.services.files.builtin_programs import register_builtin_programs
from farm.services.files.folder_owner import claim_folder
from farm.services.files.registration import check_variant_file, register_variant
from farm.services.jobs.claim import RunPlans
from farm.services.jobs.plans import RunPlanner
from farm.services.matrices.views import matrix_view
from farm.services.periodic.reaper import reap
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.speedups.listing import list_speedups
from farm.store.files.artifacts import put_artifact
from farm.wire.agents.protocol import (
    Assignment,
    AttemptReport,
    DeviceReport,
    Enrollment,
    Exchange,
    ExchangeAnswer,
    Report,
    SessionAnswer,
    SessionOpening,
)
from farm.wire.documents.matrices.matrices import MatrixView
from farm.wire.documents.matrices.matrix import matrix_spec
from farm.wire.documents.results.speedups import SpeedupView
from tests.support.database.migrated_database import put_migrated
from tests.support.fake_clock import FakeClock
from tests.support.farm.direct_calls import receive, settle, submit_matrix
from tests.support.invariants.invariants import check_engine

T = TypeVar("T")
#: May do everything.
ANN = Caller(name="ann", role=Role.ADMIN, is_authenticated=False)


@contextmanager
def checked_rig(folder: Path, url: str | None = None) -> Iterator["FarmRig"]:
    """A farm that must have kept its promises in the end; on SQLite unless `url` says otherwise."""
    rig = FarmRig(folder, url)
    try:
        yield rig
        check_engine(rig.database.engine)
    finally:
        rig.close()


class FarmRig:
    """A farm's database and services under a clock that the test moves."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.clock = FakeClock()
        self.path = folder / "farm.sqlite3"
        if url is None:
            put_migrated(self.path)
        self.database = Database(url or sqlite_url(self.path))
        self.blobs = DiskBlobs(folder / "blobs")
        self.database.read(claim_folder, self.blobs.folder)
        self.planner = RunPlanner()
        self.up_since = self.clock.now()
        register_builtin_programs(self.database, self.blobs, now=self.clock.now())

    def host(self, name: str = "bench-1", *, auto_admit: bool = True) -> "HostRig":
        """An enrolled host with an open session."""
        token = self.write(bind_tx(create_join_token, now=self.clock.now()), auto_admit=auto_admit)
        self.write(bind_tx(enroll, now=self.clock.now()), Enrollment(host=name, join_token=SecretStr(token)))
        host = HostRig(self, HostId(name))
        host.restart()
        return host

    def healthy_host(self, *device_ids: str) -> "HostRig":
        """A host with these phones, which passed their checks."""
        host = self.host()
        for device_id in device_ids:
            host.plug_in(device_id)
        host.earn_health()
        return host

    def variant(
        self,
        precision: str = "float32",
        format: str = "torchscript",
        model: str = "mobilenet_v2",
        target: str = "cpu",
        edition: str = "",
    ) -> Variant:
        """A registered variant whose file has the right records and runs nowhere."""
        content = model_file(format, marker=f"{model}/{precision}/{target}{edition}")
        digest = digest_of(content)
        self.blobs.put([content], digest)
        self.write(bind_tx(put_artifact, now=self.clock.now()), digest, len(content))
        manifest = Manifest(
            model=model,
            recipe=Recipe(precision=precision, format=Format(format), target=target),
            digest=digest,
            size_bytes=len(content),
            backends=(target,),
            inputs=(TensorSpec(shape=(1, 3, 224, 224), dtype="float32"),),
            recipe_digest=digest_of(f"{model}/{precision}/{format}/{target}".encode()),
        )
        read = check_variant_file(manifest, self.blobs)
        return self.write(bind_tx(register_variant, now=self.clock.now()), read, ANN)

    def submit(self, **changes: Any) -> MatrixId:
        """A matrix of two precisions on every virtual device."""
        spec = {
            "name": "test",
            "harness": "speed_benchmark_torch",
            "axes": {
                "model": "mobilenet_v2",
                "precision": ["float32", "int8-core"],
                "format": "torchscript",
                "backend": "cpu",
            },
            "settings": {"iter": 5},
            "devices": {"virtual": True},
            "rounds": 5,
            "baseline": {"precision": "float32"},
            "seed": 7,
            **changes,
        }
        return self.write(bind_tx(submit_matrix, now=self.clock.now(), actor="user"), matrix_spec(spec))

    def matrix(self, matrix_id: MatrixId) -> MatrixView:
        return self.read(bind_tx(matrix_view, now=self.clock.now()), matrix_id)

    def speedups(self, matrix_id: MatrixId | None = None) -> list[SpeedupView]:
        if matrix_id is None:
            return self.read(list_latest_speedups)
        return self.read(list_speedups, matrix_id)

    def reap(self) -> None:
        self.write(bind_tx(reap, now=self.clock.now()), up_since=self.up_since)

    def write(self, service: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        return self.database.write(service, *args, **kwargs)

    def read(self, service: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        return self.database.read(service, *args, **kwargs)

    def rows(self, sql: str, **values: Any) -> list[dict[str, Any]]:
        """What a query of the test's own finds."""

        def query(connection: Connection) -> list[dict[str, Any]]:
            return [dict(row) for row in connection.execute(sa.text(sql), values).mappings()]

        return self.read(query)

    def close(self) -> None:
        self.database.close()


class HostRig:
    """A host whose agent is played by the test."""

    def __init__(self, farm: FarmRig, host_id: HostId) -> None:
        self.farm = farm
        self.host_id = host_id
        self.session_id = SessionId(0)
        self.seq = 0
        self.database_epoch = ""
        self.phones: dict[str, DeviceReport] = {}

    def at(self, farm: FarmRig) -> "HostRig":
        """The same host, as it is now, at a copy of its farm."""
        host = copy(self)
        host.farm, host.phones = farm, dict(self.phones)
        return host

    def restart(self, journal: Sequence[AttemptReport] = ()) -> SessionAnswer:
        """Open a new session, as an agent does when it starts."""
        opening = SessionOpening(boot_id="boot-1", agent_version="test", attempts=tuple(journal))
        answer = self.farm.write(bind_tx(open_session, now=self.farm.clock.now()), self.host_id, opening)
        self.session_id, self.seq = answer.session_id, 0
        self.database_epoch = answer.database_epoch
        return answer

    def plug_in(self, device_id: str, **facts: Any) -> None:
        """Attach a phone; the farm sees it at the next exchange."""
        self.phones[device_id] = phone(device_id, **facts)

    def exchange(self, attempts: Iterable[AttemptReport] = (), *, seq: int | None = None) -> ExchangeAnswer:
        """One exchange, with all phones as they are."""
        self.seq += 1
        said = Exchange(
            seq=self.seq if seq is None else seq,
            database_epoch=self.database_epoch,
            devices=tuple(self.phones.values()),
            attempts=tuple(attempts),
        )
        return self.call(said).answer

    def call(self, said: Exchange, *, session_id: SessionId | None = None) -> CallAnswer:
        """One loop call, with plans read before each of its transactions."""
        session_id = self.session_id if session_id is None else session_id
        answer = self._answer(session_id, said)
        while answer.needs_plans and not answer.has_news:
            answer = self._answer(session_id, said, already_applied=True)
        return answer

    def plans(self) -> RunPlans:
        """Read the plans of what the host's devices run next."""
        return self.farm.read(self.farm.planner.plan_next_jobs, self.host_id)

    def _answer(self, session_id: SessionId, said: Exchange, *, already_applied: bool = False) -> CallAnswer:
        plans = self.plans()
        service = bind_tx(exchange, now=self.farm.clock.now())
        return self.farm.write(
            service, self.host_id, session_id, said, plans=plans, already_applied=already_applied
        )

    def report(self, attempt_id: AttemptId, evidence: Evidence) -> ReportAnswer:
        """Report an attempt."""
        return self.report_bytes(attempt_id, report_body(evidence))

    def report_bytes(self, attempt_id: AttemptId, body: bytes) -> ReportAnswer:
        return self.farm.write(bind_tx(settle, now=self.farm.clock.now()), self.host_id, attempt_id, body)

    def report_together(self, reports: Sequence[tuple[AttemptId, bytes]]) -> list[ReportAnswer | FarmError]:
        """Report attempts whose reports the farm is given at once."""
        now = self.farm.clock.now()
        incoming = [
            IncomingReport(host_id=self.host_id, attempt_id=attempt_id, body=body, at=now)
            for attempt_id, body in reports
        ]
        return self.farm.write(receive, incoming)

    def clean(self, assignment: Assignment) -> None:
        """Clean the phone up after an attempt; the farm learns of it at the next exchange."""
        self.clean_up(assignment.device_id, assignment.fence)

    def clean_up(self, device_id: str, fence: int) -> None:
        """Clean a phone of what ran up to a token."""
        before = self.phones[device_id]
        self.phones[device_id] = before.model_copy(update={"cleaned_fence": fence})

    def run(self, answer: Callable[[Assignment], Evidence] | None = None, *, limit: int = 1000) -> int:
        """Exchange, run and report until there is nothing to do; how many attempts that took."""
        done = 0
        while assignments := self.exchange().assignments:
            for assignment in assignments:
                self.farm.clock.advance(1)
                self.report(assignment.attempt_id, (answer or good_evidence)(assignment))
                self.clean(assignment)
                done += 1
                if done > limit:
                    raise AssertionError(f"more than {limit} attempts")
        return done

    def earn_health(self) -> None:
        """Run the checks of all phones that are plugged in."""
        self.run()


def usual_host(farm: FarmRig) -> HostRig:
    """A host with two healthy phones; the farm gets both variants of the usual matrix."""
    farm.variant("float32")
    farm.variant("int8-core")
    return farm.healthy_host("phone-1", "phone-2")


def phone(device_id: str, *, presence: Presence = Presence.ONLINE, **facts: Any) -> DeviceReport:
    """A virtual phone as an agent reports it."""
    known = {
        "serialno": device_id,
        "device_model": "virtual phone",
        "soc": "host CPU",
        "android": "virtual",
        "api_level": 34,
        "abis": ("x86_64",),
        "work_root": "/tmp/work",
        "virtual": True,
        **facts,
    }
    return DeviceReport(device_id=device_id, serial=device_id, presence=presence, facts=DeviceFacts(**known))


def phase(assignment: Assignment, state: AttemptState, reason: str | None = None) -> AttemptReport:
    """What an agent says of an attempt it has in hand."""
    return AttemptReport(attempt_id=assignment.attempt_id, fence=assignment.fence, phase=state, reason=reason)


def report_body(evidence: Evidence) -> bytes:
    """A report's bytes as an agent spools them."""
    return Report(evidence=evidence).model_dump_json().encode()


def plan_of(assignment: Assignment) -> RunPlan:
    """The plan of a fresh assignment."""
    if assignment.plan is None:
        raise AssertionError("the attempt was started already")
    return assignment.plan


def good_evidence(assignment: Assignment, *, sample_us: float = 1000.0) -> Evidence:
    """Evidence of a run that went well: a check that passes, or a benchmark of equal samples."""
    plan = plan_of(assignment)
    if plan.harness == "device_check":
        size = int(plan.settings["payload_bytes"])
        stdout = f"shell_exit 7\npayload_sha256 {plan.settings['payload_sha256']}\ncopied_bytes {2 * size}\n"
        return ended(assignment, stdout, code=23)
    return ended(assignment, torch_output([sample_us] * int(plan.settings["iter"])))


def ended(assignment: Assignment, stdout: str, *, code: int = 0, stderr: str = "") -> Evidence:
    """Evidence of a run that ended by itself."""
    return Evidence(
        fence=assignment.fence,
        argv=("./program",),
        exit=ExitRecord(code=code, duration_s=1.0),
        stdout=stdout,
        stderr=stderr,
    )


def device_trouble(assignment: Assignment, blame: Blame = Blame.DEVICE) -> Evidence:
    """Evidence of a phone that went away before the run ended."""
    error = RunError(
        code="device.offline", blame=blame, transient=True, message="the phone is gone", hint="look at it"
    )
    return Evidence(fence=assignment.fence, error=error)


def torch_output(samples_us: Sequence[float]) -> str:
    """What speed_benchmark_torch prints, version C."""
    lines = [
        "PyTorchObserver "
        + json.dumps({"type": "NET", "unit": "us", "metric": "latency", "value": f"{us:g}"})
        for us in samples_us
    ]
    mean = sum(samples_us) / len(samples_us)
    last = f"Main run finished. Microseconds per iter: {mean:g}. Iters per second: {1e6 / mean:g}"
    return "\n".join(["Starting benchmark.", "Running warmup runs.", "Main runs.", *lines, last]) + "\n"


def model_file(format: str, *, marker: str, bundled: bool = True) -> bytes:
    """A zip with the records of a TorchScript archive, whose code has a bundled input."""
    names = ["data.pkl", "constants.pkl", "code/__torch__.py", "version"]
    names += ["bytecode.pkl"] if format == "lite" else []
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            method = " get_all_bundled_inputs" if bundled and "code/" in name else ""
            archive.writestr(zipfile.ZipInfo(f"model/{name}"), f"{marker} {name}{method}")
    return out.getvalue()
