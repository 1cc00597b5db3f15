"""A farm played by the test over real HTTP: it hands out plans as told, and writes down what it hears."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Literal, cast

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic_core import to_json

from agents.daemon import run_agent
from agents.host.config import AgentConfig
from farm.clock import SystemClock
from farm.core.base.ids import AttemptId, DeviceId, Digest, HostId, JobId, SessionId
from farm.core.devices.device import Presence
from farm.core.jobs.attempt import AttemptState
from farm.core.operations.host_clock import ClockDifference
from farm.core.results.settle.report import ReportAnswer
from farm.core.runs.evidence import Evidence
from farm.core.runs.plan import PlanFile, RunPlan
from farm.wire.agents.protocol import (
    Assignment,
    AttemptOrder,
    ClockReport,
    DeviceReport,
    Enrollment,
    EnrollmentAnswer,
    Exchange,
    ExchangeAnswer,
    FarmTime,
    Report,
    SessionAnswer,
    SessionOpening,
)
from farm.wire.base import WIRE_VERSION, Problem
from tests.support.farm.processes import eventually

TOKEN = "the-right-token"
#: Ends what hangs; how long a busy machine takes decides nothing.
PATIENCE_S = 120.0


class FakeFarm:
    """Knows attempts by number, each its own fence; behaves as the wire's docstrings say."""

    def __init__(self) -> None:
        self.assignments: dict[int, Assignment] = {}
        self.blobs: dict[str, bytes] = {}
        self.enrollments = 0
        self.openings: list[SessionOpening] = []
        self.exchanges: list[Exchange] = []
        self.reports: dict[int, list[bytes]] = {}
        self.given_back: dict[int, str] = {}
        self.fenced = False
        #: How many of the next calls of a session it refuses, as a proxy does that has lost its farm.
        self.refusals = 0
        #: The session is another host's, as far as the farm knows.
        self.foreign = False
        #: Which wire version it speaks; agents speak this release's.
        self.wire_version = WIRE_VERSION
        self.database_epoch = "first"
        self.reports_wanted: tuple[int, ...] = ()
        self.clock_ahead = timedelta(0)
        self.clock_differences: list[ClockDifference] = []
        self.heard = asyncio.Condition()
        self.app = FastAPI()
        self.app.post("/api/v1/agent/enroll")(self._enroll)
        self.app.post("/api/v1/agent/sessions")(self._open)
        self.app.post("/api/v1/agent/sessions/{session_id}/exchange")(self._exchange)
        self.app.post("/api/v1/agent/attempts/{attempt_id}/report")(self._report)
        self.app.post("/api/v1/agent/clock")(self._clock)
        self.app.get("/api/v1/blobs/{digest}")(self._blob)

    def assign(self, number: int, device_id: str, script: str, **changes: Any) -> None:
        """Have the agent run a shell script on a phone."""
        plan = {"files": (), "argv": ("sh", "-c", script.replace("$", "$$")), "timeout_s": 20.0, **changes}
        self.assignments[number] = Assignment(
            attempt_id=AttemptId(number),
            job_id=JobId(number),
            device_id=DeviceId(device_id),
            fence=number,
            plan=RunPlan(harness="test", backend="cpu", **plan),
        )

    def add_file(self, content: bytes) -> PlanFile:
        """A file that plans may refer to as `${file_data}`."""
        digest = Digest(hashlib.sha256(content).hexdigest())
        self.blobs[digest] = content
        return PlanFile(name="data", digest=digest, size_bytes=len(content))

    def devices(self) -> dict[str, DeviceReport]:
        """What the last exchange said of phones."""
        return {report.device_id: report for report in self.exchanges[-1].devices} if self.exchanges else {}

    def phase(self, number: int) -> AttemptState | None:
        """What the last exchange said of an attempt."""
        said = {report.attempt_id: report.phase for report in self.exchanges[-1].attempts}
        return said.get(AttemptId(number))

    def cleaned(self, device_id: str) -> int:
        """Up to which fence the phone is clean, as last heard."""
        report = self.devices().get(device_id)
        return report.cleaned_fence if report else -1

    def evidence(self, number: int) -> Evidence:
        """What was reported; every repetition must have the same bytes."""
        assert len(set(self.reports[number])) == 1
        return Report.model_validate_json(self.reports[number][0]).evidence

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what the agent is expected to say."""
        async with asyncio.timeout(PATIENCE_S), self.heard:
            await self.heard.wait_for(condition)

    async def reported(self, number: int) -> Evidence:
        """Wait for an attempt's evidence."""
        await self.until(lambda: number in self.reports)
        return self.evidence(number)

    async def _tell(self) -> None:
        async with self.heard:
            self.heard.notify_all()

    async def _enroll(self, said: Enrollment) -> Response:
        if self.wire_version != said.wire_version:
            return self._unserved()
        if said.join_token.get_secret_value() != TOKEN:
            return _problem(401, "auth.invalid", "the join token is unknown")
        self.enrollments += 1
        return _json(EnrollmentAnswer(host_id=HostId(said.host), credential="a-credential"))

    async def _clock(self, said: ClockReport) -> Response:
        if said.difference is not None:
            self.clock_differences.append(said.difference)
            await self._tell()
        return _json(FarmTime(now=datetime.now(UTC) + self.clock_ahead))

    def _refuses(self) -> bool:
        self.refusals -= self.refusals > 0
        return self.refusals > 0

    async def _open(self, said: SessionOpening, request: Request) -> Response:
        if request.headers.get("Authorization") != "Bearer a-credential" or self._refuses():
            return _problem(401, "auth.invalid", "no host has this credential")
        if self.wire_version != said.wire_version:
            return self._unserved()
        self.openings.append(said)
        self.fenced = self.foreign = False
        orders = tuple(
            AttemptOrder(attempt_id=entry.attempt_id, do="continue", why="it is live")
            if entry.attempt_id in self.assignments and entry.phase in ("measuring", "reporting")
            else AttemptOrder(attempt_id=entry.attempt_id, do="abandon", why="it is over")
            for entry in said.attempts
        )
        number = len(self.openings)
        await self._tell()
        return _json(
            SessionAnswer(
                session_id=SessionId(number),
                epoch=number,
                heartbeat_s=10.0,
                orders=orders,
                database_epoch=self.database_epoch,
                reports_wanted=tuple(map(AttemptId, self.reports_wanted)),
            )
        )

    def _unserved(self) -> Response:
        return _problem(422, "wire.version", f"this farm serves {self.wire_version}")

    async def _exchange(self, session_id: int, said: Exchange) -> Response:
        if self._refuses():
            return _problem(401, "auth.invalid", "no host has this credential")
        if self.foreign:
            return _problem(403, "auth.forbidden", "the session is another host's")
        if self.fenced or session_id != len(self.openings):
            return _problem(409, "session.fenced", "there is a newer session")
        self.exchanges.append(said)
        for report in said.attempts:
            if report.phase is AttemptState.RETURNED:
                self.given_back[report.attempt_id] = report.reason or ""
                self.assignments.pop(report.attempt_id, None)
        await self._tell()
        held = {report.attempt_id for report in said.attempts}
        if held == {each.attempt_id for each in self._listed(said)}:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(said.wait_s, 0.2)), self.heard:
                    await self.heard.wait()
        return _json(ExchangeAnswer(seq=said.seq, assignments=self._listed(said), start_within_s=30.0))

    def _listed(self, said: Exchange) -> tuple[Assignment, ...]:
        """What is held already, without its plan, and what can begin because its phone is online."""
        held = {report.attempt_id for report in said.attempts}
        online = {report.device_id for report in said.devices if report.presence is Presence.ONLINE}
        return tuple(
            each.model_copy(update={"plan": None}) if each.attempt_id in held else each
            for each in self.assignments.values()
            if each.attempt_id in held or each.device_id in online
        )

    async def _report(self, attempt_id: int, request: Request) -> Response:
        self.reports.setdefault(attempt_id, []).append(await request.body())
        self.assignments.pop(attempt_id, None)
        await self._tell()
        return _json(ReportAnswer(attempt_id=AttemptId(attempt_id), counted=True))

    async def _blob(self, digest: str) -> Response:
        if digest not in self.blobs:
            return _problem(404, "not_found", "no such artifact")
        return Response(self.blobs[digest], media_type="application/octet-stream")


async def comes_true(condition: Callable[[], bool], what: str) -> None:
    """Wait for what nobody tells: files and processes."""
    await asyncio.to_thread(eventually, condition, what)


@asynccontextmanager
async def serving(app: FastAPI, port: int, *, lifespan: Literal["on", "off"] = "off") -> AsyncIterator[None]:
    """Serve on loopback; on leaving, connections are cut as a killed farm cuts them."""
    server = _Server(uvicorn.Config(app, port=port, log_config=None, access_log=False, lifespan=lifespan))
    task = asyncio.create_task(server.serve())
    while not server.started:
        assert not task.done(), task
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.force_exit = server.should_exit = True
        await task
        for connection in list(server.server_state.connections):
            # Nobody else would, and whoever comes next would be told of sockets that nobody closed.
            cast(Any, connection).transport.abort()
        await asyncio.sleep(0)
        # Its workers would go on until the garbage collector finds them, in some other test.
        await server.lifespan.shutdown()


@asynccontextmanager
async def living(config: AgentConfig) -> AsyncIterator[asyncio.Task[None]]:
    """One life of the agent; on leaving it ends at once, and what it leaves on disk is all that is left."""
    agent = asyncio.create_task(run_agent(config, SystemClock(), random=Random(1)))
    try:
        yield agent
    finally:
        agent.cancel()
        await asyncio.gather(agent, return_exceptions=True)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _json(answer: Any) -> Response:
    return Response(to_json(answer), media_type="application/json")


def _problem(status: int, code: str, detail: str) -> Response:
    document = Problem(
        title="t", status=status, detail=detail, code=code, blame="user", transient=False, hint="h"
    )
    return JSONResponse(document.model_dump(mode="json"), status_code=status)
