"""What pages read beside measurements: hosts, names, jobs, attempts, events and alarms of a large farm.

`copied_history.py` copies measurements and points, and no more: a question over the history reads no jobs. A
page does, so they are copied, too, by the same rules.
"""

from datetime import UTC, datetime, timedelta

from copied_history import History, copy_rows, numbers
from sqlalchemy.engine import Connection

from farm.core.base.microseconds import to_microseconds
from farm.database import tables

#: Devices of a host; of so many devices one is not online; alarms that are open.
_OF_HOST, _ONE_AWAY, _ALARMS = 50, 40, 200
#: The jobs of the newest matrix have events, over the last hours.
_HOURS = 20
#: The newest matrix runs: of so many devices one measures its last round again.
_ONE_RUNS = 10


def add_work(history: History, *, matrices: int, with_jobs: int) -> None:
    """Add what the measurements of a history belong to, after its last matrix was copied.

    Args:
        history: as `grow` left it.
        matrices: of the history.
        with_jobs: so many of them, the newest, and the first one have their jobs and attempts, which are most
            of the work. Measurements of others have no run, which no farm can have: their cells have no page.
    """

    def add(connection: Connection) -> None:
        _copy_hosts(connection, hosts=-(-history.devices // _OF_HOST))
        _copy_jobs(connection, history, first=max(matrices - with_jobs, 0), matrices=matrices)
        _add_events(connection, matrices=matrices)
        add_queued(connection, matrix=matrices)
        _add_alarms(connection)

    history.write(add)


def _copy_hosts(connection: Connection, *, hosts: int) -> None:
    further = numbers("h", 1, hosts)
    name = "'bench-' || (h.n + 1)"
    if hosts > 1:
        unique = {"host_id": name, "credential_hash": "t.credential_hash || h.n"}
        copy_rows(connection, tables.hosts, further, "t.host_id = 'bench-1'", unique)
        own = {"session_id": "t.session_id + 1000 * h.n", "host_id": name}
        copy_rows(connection, tables.sessions, further, "t.host_id = 'bench-1'", own)
    number = "CAST(substr(device_id, 7) AS INTEGER)"
    connection.exec_driver_sql(
        f"UPDATE devices SET label = 'shelf ' || {number}, host_id = 'bench-' || (1 + {number} / {_OF_HOST}),"
        f" presence = CASE WHEN {number} % {_ONE_AWAY} = {_ONE_AWAY - 1} THEN 'offline' ELSE presence END"
    )


def _copy_jobs(connection: Connection, history: History, *, first: int, matrices: int) -> None:
    day = 86_400_000_000
    some = f"(SELECT 0 AS n UNION SELECT n FROM {numbers('newest', first, matrices)}) m"
    source = f"{some}, {numbers('d', 0, history.devices)}"
    session = f"(m.n * {history.devices} + d.n)"
    place = f"{session} * {history.size}"
    is_copy = "t.device_id = 'phone-0' AND (m.n > 0 OR d.n > 0)"
    device = "'phone-' || d.n"
    ended = f"t.finished_at + m.n * {day}"
    copy_rows(
        connection,
        tables.jobs,
        source,
        f"t.matrix_id = 1 AND {is_copy}",
        {
            "job_id": f"t.job_id + {place}",
            "device_id": device,
            "matrix_id": "1 + m.n",
            "cell_id": f"t.cell_id + {session} * {history.cells}",
            "attempt_id": f"t.attempt_id + {place}",
            "created_at": f"t.created_at + m.n * {day}",
            "finished_at": ended,
        },
    )
    copy_rows(
        connection,
        tables.attempts,
        source,
        f"t.job_id IN (SELECT job_id FROM jobs WHERE matrix_id = 1 AND device_id = 'phone-0') AND {is_copy}",
        {
            "attempt_id": f"t.attempt_id + {place}",
            "job_id": f"t.job_id + {place}",
            "device_id": device,
            "host_id": f"'bench-' || (1 + d.n / {_OF_HOST})",
            "session_id": f"t.session_id + 1000 * (d.n / {_OF_HOST})",
            "fence": f"t.fence + m.n * {history.size}",
            # As a rule of retention leaves it: of ten million plans nothing but their size would be seen.
            "plan": "NULL",
            "claimed_at": f"t.claimed_at + m.n * {day}",
            "measuring_at": f"t.measuring_at + m.n * {day}",
            "finished_at": ended,
        },
    )
    grown = f"fence + {(matrices - 1) * history.size}"
    connection.exec_driver_sql(f"UPDATE devices SET fence = {grown}, cleaned_fence = {grown}")


def add_queued(connection: Connection, *, matrix: int) -> None:
    """Queue the blocks of the last round of a matrix again, on some devices: it runs, and most has ended."""
    round = f"(SELECT MAX(round) FROM jobs WHERE matrix_id = {matrix})"
    changes = {"job_id": "NULL", "repeat": "t.repeat + 1", "state": "'queued'"}
    ended = ("outcome", "code", "message", "attempt_id", "finished_at")
    copy_rows(
        connection,
        tables.jobs,
        numbers("r", 0, 1),
        f"t.matrix_id = {matrix} AND t.round = {round} AND t.state = 'finished'"
        f" AND CAST(substr(t.device_id, 7) AS INTEGER) % {_ONE_RUNS} = 0",
        {**changes, **dict.fromkeys(ended, "NULL")},
    )


def _add_events(connection: Connection, *, matrices: int) -> None:
    began = to_microseconds(datetime.now(UTC) - timedelta(hours=_HOURS))
    span = _HOURS * 3_600_000_000
    connection.exec_driver_sql(
        "INSERT INTO events (at, actor, kind, subject, subject_id, from_state, to_state)"
        f" SELECT {began} + {span} * (ROW_NUMBER() OVER (ORDER BY job_id) - 1) / COUNT(*) OVER (),"
        " 'agent:bench-1', 'job_finished', 'job', CAST(job_id AS TEXT), 'active', 'finished'"
        f" FROM jobs WHERE matrix_id = {matrices} ORDER BY job_id"
    )


def _add_alarms(connection: Connection) -> None:
    at = to_microseconds(datetime.now(UTC) - timedelta(hours=1))
    connection.exec_driver_sql(
        "INSERT INTO alarms (kind, subject, subject_id, message, hint, raised_at, notify_attempts)"
        f" SELECT 'device_silent', 'device', device_id, 'it is not online', 'look at its cable', {at}, 0"
        f" FROM devices WHERE presence = 'offline' ORDER BY device_id LIMIT {_ALARMS}"
    )
