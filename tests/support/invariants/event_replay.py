"""Replay of the event log (I17): the states that the events lead to, compared with the tables."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from farm.core.devices.admin import AdminEvent
from farm.core.devices.device import Admin, Health, Presence
from farm.core.devices.host_state import (
    HostEvent,
    HostState,
    SessionEvent,
    SessionState,
    advance_host,
    advance_session,
)
from farm.core.jobs import attempt as attempts
from farm.core.jobs import job as jobs
from farm.core.operations.event import EventSubject, event_kind_names
from tests.support.invariants.table_rows import FarmRows, Row

LIVE = frozenset(state.value for state in attempts.LIVE_STATES)
#: What begins something, by what it begins.
_BEGINNINGS = {
    "job_queued",
    "attempt_claimed",
    "session_opened",
    "host_enrolled",
    "incident_opened",
    "alarm_raised",
    "join_token_created",
    "access_token_created",
}
_FROM_OPEN = {
    "incident_ended": "ended",
    "alarm_cleared": "cleared",
    "join_token_used": "used",
    "join_token_revoked": "revoked",
    "access_token_revoked": "revoked",
}
#: Things whose one state is what their last event led to.
_STATEFUL = (
    EventSubject.JOB,
    EventSubject.ATTEMPT,
    EventSubject.SESSION,
    EventSubject.HOST,
    EventSubject.INCIDENT,
    EventSubject.ALARM,
    EventSubject.JOIN,
    EventSubject.ACCESS,
)


@dataclass
class History:
    """The replayed event log; creating a matrix is one event, so its jobs begin as queued."""

    rows: FarmRows
    state: dict[tuple[str, str], str | None] = field(default_factory=dict)
    #: The kind of the last event of each subject.
    last_kind: dict[tuple[str, str], str] = field(default_factory=dict)
    presence: dict[str, str] = field(default_factory=dict)
    health: dict[str, str] = field(default_factory=dict)
    admin: dict[str, str] = field(default_factory=dict)
    #: Why a device cannot be claimed: a reservation, a device action by its number.
    claim_blockers: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    last_fence: dict[str, int] = field(default_factory=dict)
    #: How device actions ended.
    finished_device_actions: dict[str, str] = field(default_factory=dict)
    #: False once routine events went by age: then what is first told of something begins its history.
    is_whole: bool = True

    def __post_init__(self) -> None:
        self.is_whole = not any(_of(self.rows.events, "history_expired"))

    def replay(self) -> Iterator[str]:
        """Replay all events; yield a message for each that cannot have happened so."""
        for job_id, job in self.rows.jobs.items():
            if job["kind"] == jobs.JobKind.BENCHMARK:
                self.state["job", job_id] = jobs.JobState.QUEUED
        for event in self.rows.events:
            if event["kind"] not in event_kind_names() or event["subject"] not in set(EventSubject):
                yield f"I17 event {event['event_id']}: unknown kind {event['kind']} of a {event['subject']}"
            elif event["subject"] in _STATEFUL and event["to_state"] is not None:
                yield from self._moved(event)
            elif event["subject"] == EventSubject.DEVICE:
                yield from self._device(event)
            elif event["to_state"] is not None:
                self.state[event["subject"], event["subject_id"]] = event["to_state"]
            self.last_kind[event["subject"], event["subject_id"]] = event["kind"]

    def _moved(self, event: Row) -> Iterator[str]:
        key = event["subject"], event["subject_id"]
        is_first = key not in self.last_kind and not self.is_whole
        if self.state.get(key) != event["from_state"] and not is_first:
            yield f"I17 event {event['event_id']}: {key} was {self.state.get(key)}, not {event['from_state']}"
        if not _is_allowed(event):
            yield f"I6 event {event['event_id']}: {event['kind']} cannot happen in {event['from_state']}"
        self.state[key] = event["to_state"]
        if event["kind"] == "attempt_claimed":
            yield from self._claimed(self.rows.attempts[event["subject_id"]])

    def _claimed(self, attempt: Row) -> Iterator[str]:
        name, device_id = f"attempt {attempt['attempt_id']}", attempt["device_id"]
        if attempt["fence"] <= self.last_fence.get(device_id, 0):
            yield f"I3 {name}: fence {attempt['fence']} after {self.last_fence[device_id]}"
        self.last_fence[device_id] = attempt["fence"]
        live = [row for key, row in self.rows.attempts.items() if self.state.get(("attempt", key)) in LIVE]
        for rule, column in (("I1", "device_id"), ("I2", "job_id"), ("I18", "cpu_domain")):
            if attempt[column] is not None and sum(row[column] == attempt[column] for row in live) > 1:
                yield f"{rule} {name}: another live attempt has {column} {attempt[column]}"
        host_state = self.state.get(("host", attempt["host_id"]))
        if host_state != HostState.ACTIVE:
            yield f"I14 {name}: claimed on a host that is {host_state}"
        if self.presence.get(device_id) != Presence.ONLINE and self.is_whole:
            yield f"I14 {name}: claimed for a device that is {self.presence.get(device_id)}"
        if self.admin.get(device_id) != Admin.ACTIVE or self.claim_blockers[device_id]:
            why = ", ".join(sorted(self.claim_blockers[device_id]))
            yield f"I14 {name}: claimed for a device that is {self.admin.get(device_id)}, blocked by {why}"
        is_check = self.rows.jobs[str(attempt["job_id"])]["kind"] == jobs.JobKind.CHECK
        if not is_check and self.health.get(device_id) != Health.GOOD:
            yield f"I14 {name}: a user's job on a device whose health is {self.health.get(device_id)}"

    def _device(self, event: Row) -> Iterator[str]:
        device_id = event["subject_id"]
        match event["kind"]:
            case "device_found":
                self.presence[device_id], self.health[device_id] = Presence.ABSENT, Health.UNKNOWN
                self.admin[device_id] = event["to_state"]
            case "device_presence_changed":
                yield from self._changed(self.presence, event)
            case "device_health_changed":
                yield from self._changed(self.health, event)
            case kind if kind in set(AdminEvent):
                yield from self._changed(self.admin, event)
            case "device_fence_raised":
                yield from self._fence_raised(event)
            case "device_reserved":
                self.claim_blockers[device_id].add("reservation")
            case "device_released":
                self.claim_blockers[device_id].discard("reservation")
            case "device_action_requested":
                self.claim_blockers[device_id].add(_action_of(event))
            case "device_action_done" | "device_action_failed":
                self.claim_blockers[device_id].remove(_action_of(event))
                self.finished_device_actions[_action_of(event).removeprefix("device action ")] = event["kind"]

    def _fence_raised(self, event: Row) -> Iterator[str]:
        before, after = int(event["from_state"]), int(event["to_state"])
        known = self.last_fence.get(event["subject_id"], 0)
        if not (known == before if self.is_whole else known <= before) or before >= after:
            yield f"I3 event {event['event_id']}: {event['subject_id']} raised from {before} to {after}"
        self.last_fence[event["subject_id"]] = after

    def _changed(self, states: dict[str, str], event: Row) -> Iterator[str]:
        device_id = event["subject_id"]
        if states.get(device_id) != event["from_state"] and self.is_whole:
            yield f"I17 event {event['event_id']}: {device_id} was {states.get(device_id)}"
        states[device_id] = event["to_state"]


def _action_of(event: Row) -> str:
    """Return `device action 7` of `device action 7, clean: ...`."""
    return str(event["cause"]).partition(",")[0]


def _is_allowed(event: Row) -> bool:
    kind, before, after = event["kind"], event["from_state"], event["to_state"]
    if kind in _BEGINNINGS:
        return before is None
    if kind in _FROM_OPEN:
        return (before, after) == ("open", _FROM_OPEN[kind])
    match event["subject"]:
        case "job":
            return jobs.advance(jobs.JobState(before), jobs.JobEvent(kind)) == after
        case "attempt":
            return attempts.advance(attempts.AttemptState(before), attempts.AttemptEvent(kind)) == after
        case "host":
            return advance_host(HostState(before), HostEvent(kind)) == after
        case _:
            return advance_session(SessionState(before), SessionEvent(kind)) == after


def differences(history: History) -> Iterator[str]:
    """Yield a message for each state in the tables that their events do not lead to."""
    rows = history.rows
    own_state = {"job": rows.jobs, "attempt": rows.attempts, "session": rows.sessions, "host": rows.hosts}
    for subject, of_kind in own_state.items():
        yield from _differing(history, subject, {key: row["state"] for key, row in of_kind.items()})
    yield from _differing(history, "incident", _ended(rows.incidents, "ended_at", "open", "ended"))
    yield from _differing(history, "alarm", _ended(rows.alarms, "cleared_at", "open", "cleared"))
    yield from _differing(
        history, "access_token", _ended(rows.access_tokens, "revoked_at", "open", "revoked")
    )
    yield from _differing(
        history, "leader_lease", {key: row["holder"] for key, row in rows.leader_leases.items()}
    )
    yield from _join_tokens(history)
    yield from _devices(history)
    yield from _device_actions(history)
    yield from _cancelled(history)
    yield from _artifacts(history)
    yield from _matrices(history)


def _ended(rows: Mapping[str, Row], column: str, before: str, after: str) -> dict[str, str]:
    return {key: before if row[column] is None else after for key, row in rows.items()}


def _differing(history: History, subject: str, state_by_key: Mapping[str, str]) -> Iterator[str]:
    for key, state in state_by_key.items():
        if not history.is_whole and (subject, key) not in history.last_kind:
            continue
        if (replayed := history.state.get((subject, key))) != state:
            yield f"I17 {subject} {key} is {state}, its events lead to {replayed}"


def _join_tokens(history: History) -> Iterator[str]:
    # One that was revoked looks like one whose time is over.
    for token_id, row in history.rows.join_tokens.items():
        replayed = history.state.get(("join_token", token_id))
        if replayed is None or (replayed == "used") != (row["used_at"] is not None):
            yield f"I17 join token {token_id} was used at {row['used_at']}, its events lead to {replayed}"


def _devices(history: History) -> Iterator[str]:
    for device_id, row in history.rows.devices.items():
        replayed = history.presence.get(device_id), history.health.get(device_id)
        if replayed != (row["presence"], row["health"]):
            yield f"I17 {device_id} is {row['presence']}, {row['health']}; its events lead to {replayed}"
        if history.admin.get(device_id) != row["admin"]:
            yield f"I17 {device_id} is {row['admin']}; its events lead to {history.admin.get(device_id)}"
        if ("reservation" in history.claim_blockers[device_id]) != (row["reserved_by"] is not None):
            yield f"I17 {device_id} is reserved by {row['reserved_by']}; its events lead to another state"
        if (replayed := history.last_fence.get(device_id, 0)) != row["fence"] and history.is_whole:
            yield f"I3 {device_id} has fence {row['fence']}; its events lead to {replayed}"


def _device_actions(history: History) -> Iterator[str]:
    for device_action_id, row in history.rows.device_actions.items():
        is_open = f"device action {device_action_id}" in history.claim_blockers[row["device_id"]]
        replayed = (
            "device_action_requested" if is_open else history.finished_device_actions.get(device_action_id)
        )
        ending = "device_action_failed" if row["error"] is not None else "device_action_done"
        if replayed != ("device_action_requested" if row["finished_at"] is None else ending):
            end = row["error"] or row["done"]
            yield f"I17 action {device_action_id} ended with {end}; its events lead to {replayed}"


def _cancelled(history: History) -> Iterator[str]:
    for subject, of_kind in (("job", history.rows.jobs), ("attempt", history.rows.attempts)):
        for key, row in of_kind.items():
            if not history.is_whole and (subject, key) not in history.last_kind:
                continue
            replayed = history.last_kind.get((subject, key)) == f"{subject}_cancelled"
            if replayed != (row["outcome"] == "cancelled"):
                yield f"I17 {subject} {key} ended {row['outcome']}; its events lead to another state"


def _artifacts(history: History) -> Iterator[str]:
    for digest, row in history.rows.artifacts.items():
        replayed = history.state.get(("artifact", digest), "kept")
        if (replayed == "expired") != (row["expired_at"] is not None):
            yield f"I17 artifact {digest} expired at {row['expired_at']}; its events lead to {replayed}"


def _matrices(history: History) -> Iterator[str]:
    replayed = [event["subject_id"] for event in _of(history.rows.events, "matrix_submitted")]
    if sorted(replayed) != sorted(history.rows.matrices):
        yield f"I17 there are the matrices {sorted(history.rows.matrices)}; events tell of {sorted(replayed)}"
    begun = {event["subject_id"] for event in _of(history.rows.events, "database_epoch_begun")}
    if not begun <= set(history.rows.epochs):
        yield f"I17 events tell of the epochs {sorted(begun)}; there are {sorted(history.rows.epochs)}"


def _of(events: Iterable[Row], kind: str) -> Iterator[Row]:
    return (event for event in events if event["kind"] == kind)
