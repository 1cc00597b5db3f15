"""What must never happen (FAULTS), looked for in a farm's database: its events against its tables."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Connection, Engine

from farm.core import attempt as attempts
from farm.core import job as jobs
from farm.core.admin import AdminEvent
from farm.core.device import Admin, Health, Presence
from farm.core.errors import Blame
from farm.core.retry import BUDGET_BY_BLAME, MAX_ATTEMPTS, MAX_BLOCKS, MAX_GIVE_BACKS
from farm.store.database import create_engine, sqlite_url

_LIVE = frozenset(state.value for state in attempts.LIVE)
_Row = dict[str, Any]


def check_invariants(database: Path) -> None:
    """Raises AssertionError with all violations found in a farm's database, which may be in use."""
    engine = create_engine(sqlite_url(database))
    try:
        check_engine(engine)
    finally:
        engine.dispose()


def check_engine(engine: Engine) -> None:
    """As `check_invariants`, of any database, on one snapshot of it."""
    with engine.connect() as connection:
        found = list(violations(connection))
    assert not found, "\n".join(found)


def violations(connection: Connection) -> Iterator[str]:
    """Every broken promise, in words; each line begins with the invariant's number."""
    farm = _Farm(connection)
    history = _History(farm)
    yield from history.replay()
    yield from _tables_equal_replay(farm, history)
    yield from _leases(farm)
    yield from _fences(farm)
    yield from _measurements(farm)
    yield from _reports(farm)
    yield from _budgets(farm)


class _Farm:
    """All rows that matter, by table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.events = self._rows("events", "event_id")
        self.attempts = self._by("attempts", "attempt_id")
        self.jobs = self._by("jobs", "job_id")
        self.sessions = self._by("sessions", "session_id")
        self.devices = self._by("devices", "device_id")
        self.measurements = self._rows("measurements", "measurement_id")
        self.evidence = self._rows("evidence", "evidence_id")
        self.programs = {row["digest"] for row in self._rows("programs", "program_id")}
        self.artifacts = {row["digest"] for row in self._rows("artifacts", "digest")}

    def _rows(self, table: str, key: str) -> list[_Row]:
        found = self._connection.exec_driver_sql(f"SELECT * FROM {table} ORDER BY {key}")
        return [dict(row) for row in found.mappings()]

    def _by(self, table: str, key: str) -> dict[str, _Row]:
        return {str(row[key]): row for row in self._rows(table, key)}


@dataclass
class _History:
    """States as the events alone tell them; creating a matrix is one event, so its jobs begin as queued."""

    farm: _Farm
    state: dict[tuple[str, str], str | None] = field(default_factory=dict)
    presence: dict[str, str] = field(default_factory=dict)
    health: dict[str, str] = field(default_factory=dict)
    admin: dict[str, str] = field(default_factory=dict)
    #: Why a device is nobody's to claim: a hold, an errand by its number.
    taken: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    last_fence: dict[str, int] = field(default_factory=dict)

    def replay(self) -> Iterator[str]:
        for job_id, job in self.farm.jobs.items():
            if job["kind"] == jobs.JobKind.BENCHMARK:
                self.state["job", job_id] = jobs.JobState.QUEUED
        for event in self.farm.events:
            match event["subject"]:
                case "job" | "attempt" | "session":
                    yield from self._moved(event)
                case "device":
                    yield from self._device(event)

    def _moved(self, event: _Row) -> Iterator[str]:
        key = event["subject"], event["subject_id"]
        if self.state.get(key) != event["from_state"]:
            yield f"I17 event {event['event_id']}: {key} was {self.state.get(key)}, not {event['from_state']}"
        if not _is_allowed(event):
            yield f"I6 event {event['event_id']}: {event['kind']} cannot happen in {event['from_state']}"
        self.state[key] = event["to_state"]
        if event["kind"] == "attempt_claimed":
            yield from self._claimed(self.farm.attempts[event["subject_id"]])

    def _claimed(self, attempt: _Row) -> Iterator[str]:
        name, device_id = f"attempt {attempt['attempt_id']}", attempt["device_id"]
        if attempt["fence"] <= self.last_fence.get(device_id, 0):
            yield f"I3 {name}: fence {attempt['fence']} after {self.last_fence[device_id]}"
        self.last_fence[device_id] = attempt["fence"]
        live = [row for key, row in self.farm.attempts.items() if self.state.get(("attempt", key)) in _LIVE]
        for rule, column in (("I1", "device_id"), ("I2", "job_id"), ("I18", "cpu_domain")):
            if attempt[column] is not None and sum(row[column] == attempt[column] for row in live) > 1:
                yield f"{rule} {name}: another live attempt has {column} {attempt[column]}"
        if self.presence.get(device_id) != Presence.ONLINE:
            yield f"I14 {name}: claimed for a device that is {self.presence.get(device_id)}"
        if self.admin.get(device_id) != Admin.ACTIVE or self.taken[device_id]:
            why = ", ".join(sorted(self.taken[device_id]))
            yield f"I14 {name}: claimed for a device that is {self.admin.get(device_id)}, taken by {why}"
        is_check = self.farm.jobs[str(attempt["job_id"])]["kind"] == jobs.JobKind.CHECK
        if not is_check and self.health.get(device_id) != Health.GOOD:
            yield f"I14 {name}: a user's job on a device whose health is {self.health.get(device_id)}"

    def _device(self, event: _Row) -> Iterator[str]:
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
            case "device_held":
                self.taken[device_id].add("hold")
            case "device_released":
                self.taken[device_id].discard("hold")
            case "errand_asked":
                self.taken[device_id].add(_errand_of(event))
            case "errand_done" | "errand_failed":
                self.taken[device_id].remove(_errand_of(event))

    def _changed(self, states: dict[str, str], event: _Row) -> Iterator[str]:
        device_id = event["subject_id"]
        if states.get(device_id) != event["from_state"]:
            yield f"I17 event {event['event_id']}: {device_id} was {states.get(device_id)}"
        states[device_id] = event["to_state"]


def _errand_of(event: _Row) -> str:
    """`errand 7` of `errand 7, clean: ...`."""
    return str(event["cause"]).partition(",")[0]


def _is_allowed(event: _Row) -> bool:
    kind, before, after = event["kind"], event["from_state"], event["to_state"]
    if kind in ("attempt_claimed", "job_queued", "session_opened"):
        return before is None
    match event["subject"]:
        case "job":
            return jobs.advance(jobs.JobState(before), jobs.JobEvent(kind)) == after
        case "attempt":
            return attempts.advance(attempts.AttemptState(before), attempts.AttemptEvent(kind)) == after
        case _:
            return before in ("live", "silent") and before != after


def _tables_equal_replay(farm: _Farm, history: _History) -> Iterator[str]:
    for subject, rows in (("job", farm.jobs), ("attempt", farm.attempts), ("session", farm.sessions)):
        for key, row in rows.items():
            if (told := history.state.get((subject, key))) != row["state"]:
                yield f"I17 {subject} {key} is {row['state']}, its events say {told}"
    for device_id, row in farm.devices.items():
        told_of = history.presence.get(device_id), history.health.get(device_id)
        if told_of != (row["presence"], row["health"]):
            yield f"I17 {device_id} is {row['presence']}, {row['health']}; its events say {told_of}"
        if history.admin.get(device_id) != row["admin"]:
            yield f"I17 {device_id} is {row['admin']}; its events say {history.admin.get(device_id)}"
        if ("hold" in history.taken[device_id]) != (row["held_by"] is not None):
            yield f"I17 {device_id} is held by {row['held_by']}; its events say otherwise"


def _leases(farm: _Farm) -> Iterator[str]:
    live = [row for row in farm.attempts.values() if row["state"] in _LIVE]
    holder = {row["job_id"]: row["attempt_id"] for row in live}
    for row in live:
        session = farm.sessions[str(row["session_id"])]
        if session["state"] not in ("live", "silent"):
            yield f"I9 live attempt {row['attempt_id']} belongs to a session that is {session['state']}"
        if session["host_id"] != row["host_id"]:
            yield f"I19 attempt {row['attempt_id']} belongs to another host's session"
    for job in farm.jobs.values():
        name = f"job {job['job_id']}"
        is_held = job["job_id"] in holder
        # The lease of a phone outlives a cancelled job until the agent has let go of it.
        if (job["state"] == "active") != is_held and not (job["outcome"] == "cancelled" and is_held):
            yield f"I2 {name} is {job['state']}, its live attempt is {holder.get(job['job_id'])}"
        elif job["state"] == "active" and job["attempt_id"] != holder[job["job_id"]]:
            yield f"I2 {name}: current attempt {job['attempt_id']}, live {holder[job['job_id']]}"
        if (job["state"] == "finished") != (job["outcome"] is not None):
            yield f"I6 {name} is {job['state']} with outcome {job['outcome']}"


def _fences(farm: _Farm) -> Iterator[str]:
    highest: Counter[str] = Counter()
    for row in farm.attempts.values():
        highest[row["device_id"]] = max(highest[row["device_id"]], row["fence"])
    for device_id, device in farm.devices.items():
        if device["fence"] < highest[device_id]:
            yield f"I3 {device_id} has fence {device['fence']}, an attempt had {highest[device_id]}"
        if device["cleaned_fence"] > device["fence"]:
            yield f"I7 {device_id} is cleaned up to {device['cleaned_fence']}, never given"


def _measurements(farm: _Farm) -> Iterator[str]:
    accepted: defaultdict[int, list[_Row]] = defaultdict(list)
    for row in farm.measurements:
        if row["accepted"]:
            accepted[row["job_id"]].append(row)
        if row["variant_digest"] not in (None, *farm.artifacts):
            yield f"I5 measurement {row['measurement_id']}: variant {row['variant_digest']} is no artifact"
        if row["program_digest"] not in farm.programs:
            yield f"I5 measurement {row['measurement_id']}: its program {row['program_digest']} is unknown"
    for job in farm.jobs.values():
        name, found = f"job {job['job_id']}", accepted[job["job_id"]]
        if len(found) > 1:
            yield f"I4 {name} has {len(found)} accepted measurements"
        if found and found[0]["attempt_id"] != job["attempt_id"]:
            yield f"I4 {name}: measured by {found[0]['attempt_id']}, current is {job['attempt_id']}"
        is_benchmark = job["kind"] == jobs.JobKind.BENCHMARK
        if is_benchmark and (job["outcome"] == "succeeded") != bool(found):
            yield f"I5 {name} is {job['outcome']} with {len(found)} accepted measurements"


def _reports(farm: _Farm) -> Iterator[str]:
    counted: defaultdict[int, set[str]] = defaultdict(set)
    for row in farm.evidence:
        if row["counted"]:
            counted[row["attempt_id"]].add(row["report_digest"])
    for attempt in farm.attempts.values():
        expected = {attempt["report_digest"]} - {None}
        if counted[attempt["attempt_id"]] != expected:
            yield f"I4 attempt {attempt['attempt_id']} settled by {expected}, counted {counted}"
        is_settled = attempt["state"] == "finished" and attempt["outcome"] != "cancelled"
        if is_settled != bool(expected):
            yield f"I6 attempt {attempt['attempt_id']} is {attempt['state']}, settled by {expected or None}"


def _budgets(farm: _Farm) -> Iterator[str]:
    tries: defaultdict[int, list[_Row]] = defaultdict(list)
    for attempt in farm.attempts.values():
        tries[attempt["job_id"]].append(attempt)
    for job_id, own in tries.items():
        ended = [row for row in own if row["outcome"] is not None]
        given_back = [row for row in own if row["state"] == "given_back"]
        if len(ended) > MAX_ATTEMPTS or len(given_back) > MAX_GIVE_BACKS:
            yield f"I16 job {job_id}: {len(ended)} attempts and {len(given_back)} give-backs"
        for blame, lost in Counter(row["blame"] for row in ended if row["blame"]).items():
            if lost > BUDGET_BY_BLAME[Blame(blame)] + 1:
                yield f"I16 job {job_id}: {lost} attempts lost by {blame}"
    for job in farm.jobs.values():
        if job["repeat"] >= MAX_BLOCKS:
            yield f"I16 job {job['job_id']} is repeat {job['repeat']} of its block"
