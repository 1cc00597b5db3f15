"""Hot statements on PostgreSQL: what its planner chooses on a farm with much in it."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId
from farm.core.jobs.attempt import Attempt
from farm.database.engine import Database
from farm.database.transaction import Tx
from farm.services.agents.exchange.exchange import exchange
from farm.store.devices import devices
from farm.store.devices import workload as device_workload
from farm.store.jobs import attempts, queues
from farm.store.operations import event_log
from farm.wire.agents.protocol import Assignment, Exchange
from tests.support.database.postgres import PostgresServer
from tests.support.database.sent_statements import sent_to
from tests.support.farm.direct_calls import settle
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, report_body

PHONES = 5
OTHER_HOSTS, OTHER_PHONES = 80, 400
#: Tables that grow for as long as a farm lives, or with its queues.
BIG = {"jobs", "attempts", "events", "evidence", "measurements"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """A farm with a host of a few phones, and much else."""

    farm: FarmRig
    host: HostRig

    @property
    def database(self) -> Database:
        return self.farm.database

    @property
    def phones(self) -> list[DeviceId]:
        return [DeviceId(name) for name in self.host.phones]


def copies(connection: Connection, table: str, count: int, where: str, **changed: str) -> None:
    """Add rows like one that is there, but for some columns; `n` counts them."""
    columns = sa.inspect(connection).get_columns(table)
    kept = [c["name"] for c in columns if c["name"] not in changed and not c.get("autoincrement")]
    names, values = ", ".join([*kept, *changed]), ", ".join([*kept, *changed.values()])
    connection.execute(
        sa.text(
            f"INSERT INTO {table} ({names}) SELECT {values} FROM {table}, generate_series(1, {count}) AS n"
            f" WHERE {where}"
        )
    )


def fill(connection: Connection, queued_per_phone: int) -> None:
    """Other phones with histories, and queues for all."""
    one = "device_id = 'phone-0'"
    copies(connection, "hosts", OTHER_HOSTS, "true", host_id="'host-' || n", credential_hash="'hash-' || n")
    of = f"'host-' || (1 + n % {OTHER_HOSTS})"
    other = {"device_id": "'other-' || n", "host_id": of, "unit": "NULL", "label": "NULL"}
    copies(connection, "devices", OTHER_PHONES, one, **other)
    job = f"job_id = (SELECT max(job_id) FROM jobs WHERE {one} AND state = 'queued')"
    phones = "(SELECT array_agg(device_id ORDER BY device_id) FROM devices)"
    all_phones = OTHER_PHONES + PHONES
    copies(
        connection,
        "jobs",
        queued_per_phone * all_phones,
        job,
        device_id=f"{phones}[1 + n % {all_phones}]",
        round="1000 + n",
    )
    attempt = f"attempt_id = (SELECT max(attempt_id) FROM attempts WHERE {one})"
    copies(
        connection,
        "attempts",
        20_000,
        attempt,
        device_id=f"'other-' || (1 + n % {OTHER_PHONES})",
        fence="1000 + n",
        cpu_domain="NULL",
    )
    report = "evidence_id = (SELECT max(evidence_id) FROM evidence)"
    copies(connection, "evidence", 5_000, report, report_digest="n")
    event = "event_id = (SELECT min(event_id) FROM events)"
    copies(
        connection, "events", 20_000, event, subject="'device'", subject_id=f"'other-' || n % {OTHER_PHONES}"
    )


@contextmanager
def full_farm(postgres: PostgresServer, folder: Path, queued_per_phone: int) -> Iterator[Full]:
    with postgres.database("migrated") as name:
        farm = FarmRig(folder, postgres.url(name))
        try:
            yield Full(farm=farm, host=busy_host(farm, queued_per_phone))
        finally:
            farm.close()


def busy_host(farm: FarmRig, queued_per_phone: int) -> HostRig:
    farm.variant("float32")
    farm.variant("int8-core")
    host = farm.host()
    for number in range(PHONES):
        host.plug_in(f"phone-{number}")
    host.earn_health()
    farm.submit()
    farm.write(fill, queued_per_phone)
    farm.write(lambda connection: connection.exec_driver_sql("ANALYZE"))
    return host


@pytest.fixture(scope="module")
def short(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Full]:
    """With 2,000 queued jobs."""
    with full_farm(postgres, tmp_path_factory.mktemp("incomplete"), 5) as full:
        yield full


@pytest.fixture(scope="module")
def long(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Full]:
    """With 200,000 queued jobs."""
    with full_farm(postgres, tmp_path_factory.mktemp("long"), 500) as full:
        yield full


VERBS = ("SELECT", "UPDATE", "INSERT", "DELETE")


class RolledBack(Exception):
    """What was looked at is undone."""


def plans(
    full: Full, query: Callable[[Connection], object], how: str = "", verbs: Collection[str] = VERBS
) -> list[dict[str, Any]]:
    """What the planner chooses for each statement that `query` sends; nothing of it stays."""
    found: list[dict[str, Any]] = []

    def explain(connection: Connection) -> None:
        with sent_to(connection) as sent:
            query(connection)
        for sql, values in sent:
            if sql.split()[0] in verbs and not isinstance(values, list):
                explained = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON{how}) {sql}", values)
                found.append(explained.scalar_one()[0]["Plan"])
        raise RolledBack

    with pytest.raises(RolledBack):
        full.database.write(explain)
    assert found
    return found


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def scanned(found: list[dict[str, Any]]) -> set[str]:
    """Tables that are read from one end to the other."""
    return {
        node["Relation Name"] for plan in found for node in nodes(plan) if node["Node Type"] == "Seq Scan"
    }


def indexes(found: list[dict[str, Any]]) -> set[str]:
    return {node["Index Name"] for plan in found for node in nodes(plan) if "Index Name" in node}


def claims(full: Full) -> Callable[[Connection], object]:
    """An exchange that gives every phone of the host its next job."""

    def claim(connection: Connection) -> None:
        said = Exchange(seq=full.host.seq + 1, devices=tuple(full.host.phones.values()))
        host, session = full.host.host_id, full.host.session_id
        plans = full.farm.planner.plan_next_jobs(connection, host)
        answer = exchange(Tx(connection, full.farm.clock.now()), host, session, said, plans=plans).answer
        assert len(answer.assignments) == PHONES

    return claim


def test_an_exchange_that_claims_reads_no_big_table_to_its_end(long: Full) -> None:
    found = plans(long, claims(long))
    assert not scanned(found) & BIG
    assert {"ix_jobs_queue", "ix_devices_host_id", "ix_attempts_session_live"} <= indexes(found)


def test_a_settled_report_reads_no_big_table_to_its_end(long: Full) -> None:
    def run_and_settle(connection: Connection) -> None:
        claims(long)(connection)
        (live, *_) = attempts.live_attempts(connection, long.host.session_id)
        attempt = attempts.find_attempt(connection, live.attempt_id)
        assert isinstance(attempt, Attempt)
        body = report_body(good_evidence(assignment_of(attempt)))
        settle(Tx(connection, long.farm.clock.now()), long.host.host_id, attempt.attempt_id, body)

    found = plans(long, run_and_settle)
    assert not scanned(found) & BIG


def assignment_of(attempt: Attempt) -> Assignment:
    return Assignment(
        attempt_id=attempt.attempt_id,
        job_id=attempt.job_id,
        device_id=attempt.device_id,
        fence=attempt.fence,
        plan=attempt.plan,
    )


HOT: dict[str, tuple[Callable[[Full, Connection], object], str]] = {
    "what phones run next": (lambda full, c: queues.queue_heads(c, full.phones), "ix_jobs_queue"),
    "what a host needs next": (lambda full, c: queues.next_job_files(c, full.host.host_id), "ix_jobs_queue"),
    "what is planned for a host": (
        lambda full, c: queues.next_jobs_by_plan(c, full.host.host_id),
        "ix_jobs_queue",
    ),
    "what a session owns": (
        lambda full, c: attempts.live_attempts(c, full.host.session_id),
        "ix_attempts_session_live",
    ),
    "CPUs on which something runs": (lambda _, c: device_workload.busy_cpus(c), "_live"),
    "what happened to a phone": (
        lambda full, c: event_log.last_events(c, "device", full.phones[0], kinds=("device_reserved",)),
        "ix_events_",
    ),
    "the phones of a host": (
        lambda full, c: devices.list_devices(c, host_id=full.host.host_id),
        "ix_devices_host_id",
    ),
}


@pytest.mark.parametrize("name", HOT)
def test_a_hot_query_uses_its_index(long: Full, name: str) -> None:
    query, index = HOT[name]
    found = plans(long, lambda connection: query(long, connection))
    assert any(index in used for used in indexes(found)), found
    assert not scanned(found) & BIG


def test_grants_that_no_one_started_are_looked_for_among_live_attempts(long: Full) -> None:
    hour, now = timedelta(hours=1), long.farm.clock.now()
    found = plans(long, lambda connection: attempts.unstarted_attempts(connection, after=hour, now=now))
    assert not scanned(found) & BIG
    assert any("_live" in index for index in indexes(found))


def test_a_claim_looks_at_as_much_of_200_thousand_jobs_as_of_2_thousand(short: Full, long: Full) -> None:
    def buffers(full: Full) -> int:
        found = plans(full, claims(full), ", ANALYZE, BUFFERS", verbs=("SELECT",))
        return sum(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] for plan in found)

    few, many = buffers(short), buffers(long)
    assert many <= 1.25 * few, (few, many)
