"""What must never happen (FAULTS), looked for in a farm's database: its events against its tables."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from sqlalchemy.engine import Connection, Engine

from farm.core.checks.failures import WINDOW, may_be_host_caused
from farm.core.errors import Blame
from farm.core.jobs import job as jobs
from farm.core.jobs.retry import MAX_ATTEMPTS, MAX_BLOCKS, MAX_RETURNS, RETRY_BUDGETS, budget_of
from farm.database.engine import create_engine, sqlite_url
from tests.support.invariants.event_replay import LIVE, History, differences
from tests.support.invariants.table_rows import FarmRows, Row


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
    farm = FarmRows(connection)
    history = History(farm)
    yield from history.replay()
    yield from differences(history)
    yield from _leases(farm)
    yield from _incidents(farm)
    yield from _fences(farm)
    yield from _measurements(farm)
    yield from _reports(farm)
    yield from _budgets(farm)


def _leases(farm: FarmRows) -> Iterator[str]:
    live = [row for row in farm.attempts.values() if row["state"] in LIVE]
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


def _incidents(farm: FarmRows) -> Iterator[str]:
    """Once an incident is known, what it ends is not blamed on the phones that it hit."""
    for incident in farm.incidents.values():
        known_us = incident["began_at"] + WINDOW // timedelta(microseconds=1)
        hit = incident["devices"]
        hit = json.loads(hit) if isinstance(hit, str) else hit
        for row in farm.attempts.values():
            was_there = row["device_id"] in hit and row["claimed_at"] < incident["began_at"]
            if was_there and _looks_lost(row) and row["finished_at"] > known_us:
                yield f"I15 attempt {row['attempt_id']} is blamed on its phone, not on {incident['cause']}"


def _looks_lost(attempt: Row) -> bool:
    blame = None if attempt["blame"] is None else Blame(attempt["blame"])
    return attempt["outcome"] == "inconclusive" and may_be_host_caused(blame, attempt["code"])


def _fences(farm: FarmRows) -> Iterator[str]:
    highest: Counter[str] = Counter()
    for row in farm.attempts.values():
        highest[row["device_id"]] = max(highest[row["device_id"]], row["fence"])
    for device_id, device in farm.devices.items():
        if device["fence"] < highest[device_id]:
            yield f"I3 {device_id} has fence {device['fence']}, an attempt had {highest[device_id]}"
        if device["cleaned_fence"] > device["fence"]:
            yield f"I7 {device_id} is cleaned up to {device['cleaned_fence']}, never given"


def _measurements(farm: FarmRows) -> Iterator[str]:
    accepted: defaultdict[int, list[Row]] = defaultdict(list)
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


def _reports(farm: FarmRows) -> Iterator[str]:
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


def _budgets(farm: FarmRows) -> Iterator[str]:
    tries: defaultdict[int, list[Row]] = defaultdict(list)
    for attempt in farm.attempts.values():
        tries[attempt["job_id"]].append(attempt)
    for job_id, own in tries.items():
        ended = [row for row in own if row["outcome"] is not None]
        given_back = [row for row in own if row["state"] == "returned"]
        if len(ended) > MAX_ATTEMPTS or len(given_back) > MAX_RETURNS:
            yield f"I16 job {job_id}: {len(ended)} attempts and {len(given_back)} give-backs"
        spent = Counter(budget_of(Blame(row["blame"]), row["code"]) for row in ended if row["blame"])
        for budget, lost in spent.items():
            if lost > RETRY_BUDGETS[budget] + 1:
                yield f"I16 job {job_id}: {lost} attempts lost by {budget}"
    for job in farm.jobs.values():
        if job["repeat"] >= MAX_BLOCKS:
            yield f"I16 job {job['job_id']} is repeat {job['repeat']} of its block"
