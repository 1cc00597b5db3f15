"""Whatever happens in whatever order: no invariant breaks, and a matrix left alone finishes."""

import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from farm.core.devices.device import Presence
from farm.core.errors import Blame, ReportConflict, SessionFenced
from farm.core.jobs.attempt import LIVE_STATES, AttemptState
from farm.core.results.settle.report import ReportAnswer
from farm.core.runs.evidence import Evidence
from farm.database.transaction import bind_tx
from farm.wire.agents.protocol import (
    Assignment,
    AttemptReport,
    CleanupOrder,
    DeviceReport,
    Exchange,
    SessionAnswer,
)
from tests.support.farm.direct_calls import cancel_matrix
from tests.support.farm.service_fixture import (
    FarmRig,
    HostRig,
    device_trouble,
    ended,
    good_evidence,
    phase,
    plan_of,
    report_body,
    torch_output,
)
from tests.support.invariants.invariants import check_invariants
from tests.support.session.example_count import examples

#: Many orders of many calls, by one test.
pytestmark = pytest.mark.timeout(600)

_LIVE_ATTEMPTS = f"SELECT * FROM attempts WHERE state IN {tuple(map(str, LIVE_STATES))}"
_SHORT = [1000.0] * 4
_KINDS = ("good", "short", "crash", "device", "host", "nothing")
_PHONES = {"phone-1": 0, "phone-2": 0, "phone-3": 1}


def evidence_of(kind: str, assignment: Assignment) -> Evidence:
    """How a run may have ended."""
    match kind:
        case "good":
            return good_evidence(assignment)
        case "short":
            return ended(assignment, torch_output(_SHORT))
        case "crash":
            return ended(assignment, "", code=134, stderr="terminate called")
        case "nothing":
            return ended(assignment, "")
        case _:
            return device_trouble(assignment, Blame(kind))


@dataclass
class Held:
    """An attempt in an agent's hand."""

    assignment: Assignment
    state: AttemptState = AttemptState.CLAIMED
    body: bytes | None = None

    def report(self) -> AttemptReport:
        reason = "put off" if self.state is AttemptState.RETURNED else None
        return phase(self.assignment, self.state, reason)


@dataclass
class Agent:
    """A host as its agent keeps it: what it has in hand, and the fences it has seen."""

    host: HostRig
    held: dict[int, Held] = field(default_factory=dict)
    fences: dict[str, int] = field(default_factory=dict)
    #: A phone that is away is cleaned up when it comes back.
    cleaned: dict[str, int] = field(default_factory=dict)

    def exchange(self, *, answer_lost: bool = False) -> None:
        answer = self.host.exchange([held.report() for held in self.held.values()])
        if answer_lost:
            return
        owned = {assignment.attempt_id for assignment in answer.assignments}
        for attempt_id in set(self.held) - owned:
            self.let_go(attempt_id)
        for assignment in answer.assignments:
            self.take(assignment)
        for order in answer.clean_ups:
            self.clean_up(order)

    def clean_up(self, order: CleanupOrder) -> None:
        """Clean a phone as the farm orders: it may count an attempt whose assignment never arrived."""
        device_id = order.device_id
        busy = device_id in {held.assignment.device_id for held in self.held.values()}
        if not busy and device_id in self.host.phones:
            self.cleaned[device_id] = order.fence
            self.host.clean_up(device_id, order.fence)

    def take(self, assignment: Assignment) -> None:
        device_id = assignment.device_id
        busy = device_id in {held.assignment.device_id for held in self.held.values()}
        if assignment.plan is None or busy or assignment.fence <= self.fences.get(device_id, 0):
            return
        self.fences[device_id] = assignment.fence
        self.held[assignment.attempt_id] = Held(assignment)

    def let_go(self, attempt_id: int) -> None:
        assignment = self.held.pop(attempt_id).assignment
        self.cleaned[assignment.device_id] = assignment.fence
        if assignment.device_id in self.host.phones:
            self.host.clean(assignment)

    def apply_orders(self, answer: SessionAnswer) -> None:
        for order in answer.orders:
            if order.do == "abandon":
                self.let_go(order.attempt_id)


@cache
def _template() -> Path:
    """A farm with two hosts and three healthy phones, two of which share a CPU."""
    folder = Path(tempfile.mkdtemp(prefix="farm-template-"))
    farm = FarmRig(folder)
    farm.variant("float32")
    farm.variant("int8-core")
    hosts = [farm.host("bench-1"), farm.host("bench-2")]
    _plug_in_all(hosts)
    for host in hosts:
        host.earn_health()
    farm.close()
    return folder


def _plug_in_all(hosts: list[HostRig]) -> None:
    for device_id, index in _PHONES.items():
        hosts[index].plug_in(device_id, cpu_domain=f"cpu-{index}")


class FarmInAnyOrder(RuleBasedStateMachine):
    """Two agents, three phones and a farm, with everything that can go wrong between them."""

    @initialize()
    def set_up(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="farm-"))
        shutil.copytree(_template(), self.folder, dirs_exist_ok=True)
        self.farm = FarmRig(self.folder)
        self.farm.clock.advance(1000)
        hosts = [HostRig(self.farm, host_id) for host_id in ("bench-1", "bench-2")]
        _plug_in_all(hosts)
        with closing(sqlite3.connect(self.farm.path)) as raw:
            cleaned = dict(raw.execute("SELECT device_id, cleaned_fence FROM devices"))
        for host in hosts:
            host.phones = {
                name: report.model_copy(update={"cleaned_fence": cleaned[name]})
                for name, report in host.phones.items()
            }
            host.restart()
        self.agents = [Agent(host, fences=dict(cleaned)) for host in hosts]
        self.unplugged: dict[str, tuple[int, DeviceReport]] = {}
        self.sent: dict[bytes, tuple[int, int, ReportAnswer | None]] = {}
        self.matrix_id = self.farm.submit(rounds=1)

    @rule(index=st.integers(0, 1), answer_lost=st.sampled_from([False, False, True]))
    def exchange(self, index: int, answer_lost: bool) -> None:
        agent = self.agents[index]
        try:
            agent.exchange(answer_lost=answer_lost)
        except SessionFenced:
            self.reopen(agent)

    @precondition(lambda self: self.matrix_id < 4)
    @rule(device=st.sampled_from([None, *sorted(_PHONES)]))
    def cancel(self, device: str | None) -> None:
        """Cancel a matrix, or its part on one phone, and ask for another."""
        now = self.farm.clock.now()
        self.farm.write(bind_tx(cancel_matrix, now=now, actor="user"), self.matrix_id, device=device)
        self.matrix_id = self.farm.submit(rounds=1)

    @rule(index=st.integers(0, 1), with_journal=st.booleans())
    def restart(self, index: int, with_journal: bool) -> None:
        agent = self.agents[index]
        if not with_journal:
            # What an agent finds on its phones when its own notes are gone, it removes.
            for attempt_id in list(agent.held):
                agent.let_go(attempt_id)
        self.reopen(agent)

    @rule(pick=st.integers(0), to=st.sampled_from([AttemptState.PREPARING, AttemptState.MEASURING]))
    def go_on(self, pick: int, to: AttemptState) -> None:
        if held := self.pick(pick, AttemptState.CLAIMED, AttemptState.PREPARING):
            held[1].state = to

    @rule(pick=st.integers(0))
    def return_attempt(self, pick: int) -> None:
        if held := self.pick(pick, AttemptState.CLAIMED, AttemptState.PREPARING):
            held[1].state = AttemptState.RETURNED

    @rule(pick=st.integers(0), kind=st.sampled_from(_KINDS))
    def end(self, pick: int, kind: str) -> None:
        """A run ends; its report waits in the spool."""
        if held := self.pick(pick, AttemptState.MEASURING):
            held[1].state = AttemptState.REPORTING
            held[1].body = report_body(evidence_of(kind, held[1].assignment))

    @rule(pick=st.integers(0), answer_lost=st.booleans())
    def report(self, pick: int, answer_lost: bool) -> None:
        if held := self.pick(pick, AttemptState.REPORTING):
            agent, waiting = held
            assert waiting.body is not None
            self.send(agent, waiting.assignment.attempt_id, waiting.body)
            if not answer_lost:
                agent.let_go(waiting.assignment.attempt_id)

    @rule(pick=st.integers(0), kind=st.sampled_from(_KINDS))
    def report_without_a_word_before(self, pick: int, kind: str) -> None:
        """The beats were lost: the report is the first the farm hears of the run."""
        if held := self.pick(pick, AttemptState.CLAIMED, AttemptState.PREPARING, AttemptState.MEASURING):
            agent, running = held
            body = report_body(evidence_of(kind, running.assignment))
            self.send(agent, running.assignment.attempt_id, body)
            agent.let_go(running.assignment.attempt_id)

    @precondition(lambda self: self.sent)
    @rule(pick=st.integers(0))
    def repeat_a_report(self, pick: int) -> None:
        body = sorted(self.sent)[pick % len(self.sent)]
        index, attempt_id, first = self.sent[body]
        answer = self.agents[index].host.report_bytes(attempt_id, body)
        assert first is None or answer == first

    @precondition(lambda self: self.sent)
    @rule(pick=st.integers(0))
    def report_something_else(self, pick: int) -> None:
        index, attempt_id, answer = self.sent[sorted(self.sent)[pick % len(self.sent)]]
        fence = self.farm.rows("SELECT fence FROM attempts WHERE attempt_id = :id", id=attempt_id)[0]["fence"]
        body = report_body(Evidence(fence=fence, stdout="something else", pushed_bytes=pick % 1000))
        try:
            other = self.agents[index].host.report_bytes(attempt_id, body)
        except ReportConflict:
            assert answer is not None
            assert answer.counted
        else:
            assert not other.counted

    @rule(seconds=st.sampled_from([1.0, 61.0, 130.0, 400.0]))
    def wait(self, seconds: float) -> None:
        self.farm.clock.advance(seconds)
        self.farm.reap()

    @rule()
    def restart_farm(self) -> None:
        self.farm.up_since = self.farm.clock.now()
        self.farm.reap()

    @rule(device_id=st.sampled_from(sorted(_PHONES)))
    def plug(self, device_id: str) -> None:
        """Unplug a phone, or put it back."""
        where = next((n for n, agent in enumerate(self.agents) if device_id in agent.host.phones), None)
        if where is not None:
            self.unplugged[device_id] = where, self.agents[where].host.phones.pop(device_id)
        else:
            self.put(device_id, self.unplugged[device_id][0])

    @rule(index=st.integers(0, 1))
    def stale_exchange(self, index: int) -> None:
        """A duplicate of an old exchange, with phases and fences that never were."""
        host = self.agents[index].host
        claims = [phase(held.assignment, AttemptState.RETURNED) for held in self.agents[index].held.values()]
        said = Exchange(seq=max(host.seq - 1, 1), attempts=tuple(claims))
        if host.seq > 1:
            before = self.farm.rows("SELECT count(*) n FROM events")
            with suppress(SessionFenced):
                host.call(said)
            assert self.farm.rows("SELECT count(*) n FROM events") == before

    @invariant()
    def nothing_is_broken(self) -> None:
        if hasattr(self, "farm"):
            check_invariants(self.farm.path)

    def teardown(self) -> None:
        if not hasattr(self, "farm"):
            return
        try:
            self.finish_honestly()
            check_invariants(self.farm.path)
        finally:
            self.farm.close()
            shutil.rmtree(self.folder)

    def finish_honestly(self) -> None:
        """I13: with all phones back and nothing going wrong, every job ends in bounded time."""
        for device_id, (index, _) in list(self.unplugged.items()):
            if not any(device_id in agent.host.phones for agent in self.agents):
                self.put(device_id, index)
        for turn in range(400):
            open_jobs = self.farm.rows("SELECT job_id FROM jobs WHERE state <> 'finished'")
            if not open_jobs and not self.farm.rows(_LIVE_ATTEMPTS):
                break
            self.farm.clock.advance(5)
            self.farm.reap()
            for index, agent in enumerate(self.agents):
                self.exchange(index, False)
                self.finish_in_hand(agent)
            if turn % 40 == 39:
                self.replug()
        else:
            raise AssertionError(
                f"still open: {open_jobs}, devices {self.farm.rows('SELECT * FROM devices')}"
            )

    def finish_in_hand(self, agent: Agent) -> None:
        for attempt_id, held in list(agent.held.items()):
            if held.state is not AttemptState.RETURNED:
                body = held.body or report_body(good_evidence(held.assignment))
                self.send(agent, attempt_id, body)
                agent.let_go(attempt_id)

    def replug(self) -> None:
        """What brings a phone that failed its check back for another."""
        for agent in self.agents:
            for device_id, report in list(agent.host.phones.items()):
                agent.host.phones[device_id] = report.model_copy(update={"presence": Presence.OFFLINE})
            agent.exchange()
            for device_id, report in list(agent.host.phones.items()):
                agent.host.phones[device_id] = report.model_copy(update={"presence": Presence.ONLINE})

    def put(self, device_id: str, index: int) -> None:
        _, report = self.unplugged.pop(device_id)
        agent = self.agents[index]
        fence = max(report.cleaned_fence, agent.cleaned.get(device_id, 0))
        agent.host.phones[device_id] = report.model_copy(update={"cleaned_fence": fence})

    def reopen(self, agent: Agent) -> None:
        agent.apply_orders(agent.host.restart([held.report() for held in agent.held.values()]))

    def send(self, agent: Agent, attempt_id: int, body: bytes) -> None:
        assert plan_of(agent.held[attempt_id].assignment)
        index = self.agents.index(agent)
        try:
            answer = agent.host.report_bytes(attempt_id, body)
        except ReportConflict:
            return
        self.sent.setdefault(body, (index, attempt_id, answer))

    def pick(self, number: int, *states: AttemptState) -> tuple[Agent, Held] | None:
        fitting = [
            (agent, held) for agent in self.agents for held in agent.held.values() if held.state in states
        ]
        return fitting[number % len(fitting)] if fitting else None


TestFarmInAnyOrder = FarmInAnyOrder.TestCase
TestFarmInAnyOrder.settings = settings(
    max_examples=examples(12, 40),
    stateful_step_count=examples(30, 40),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
