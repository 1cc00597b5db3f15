"""The time to cancel a large matrix, on both databases, and the delay of another host's claims meanwhile.

In one run, on one database: a matrix is cancelled through the API while another host claims and settles jobs;
an equal one is finished by two bare SQL statements in one transaction, an update of its jobs and an insert of
one event for each. The figure is the ratio of the two times. The bare statements keep all other writers
waiting until they are done; so the longest claim of the other host is set against their time, too, and
against the median of its claims before.

    .venv/bin/python benchmarks/cancel.py [--quick] [--device] [--jobs N] [--database NAME]
"""

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path
from statistics import median

import sqlalchemy as sa
from busy_host import working
from fake_host import FakeHost
from machine import cpu_s, machine_facts
from program import register_model, submit
from rig import FarmRig, farm_rig, interrupted_by_sigterm, talk
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.database.postgres import NoPostgres, running_postgres

#: Phones of the matrices that are cancelled, and of the host that works meanwhile.
_PHONES, _BUSY_PHONES = 10, 5
#: The pause between two exchanges of the other host.
_EVERY_S = 0.05
#: Rounds that are queued by one transaction. On PostgreSQL each page of an index that splits needs a lock, of
#: which there are too few for a million rows.
_STEP_ROUNDS = 2000
_FILL = """
INSERT INTO jobs (kind, device_id, matrix_id, cell_id, round, repeat, priority, state, created_at)
WITH RECURSIVE rounds(n) AS (
  SELECT CAST(:first AS INTEGER) UNION ALL SELECT n + 1 FROM rounds WHERE n < :last
)
SELECT kind, device_id, matrix_id, cell_id, n, 0, priority, 'queued', created_at
FROM jobs CROSS JOIN rounds WHERE matrix_id = :matrix_id AND round = 1
ORDER BY n, job_id
"""
_BARE = (
    """
    UPDATE jobs SET state = 'finished', outcome = 'cancelled', finished_at = 1
    WHERE matrix_id = :matrix_id AND state = 'queued'{also}
    """,
    """
    INSERT INTO events (at, actor, kind, subject, subject_id, from_state, to_state, cause)
    SELECT 1, 'user', 'job_cancelled', 'job', CAST(job_id AS TEXT), 'queued', 'finished', 'cancelled'
    FROM jobs WHERE matrix_id = :matrix_id AND state = 'finished'{also} ORDER BY job_id
    """,
)


def measure(rig: FarmRig, name: str, *, jobs: int, before_s: float, one_device: bool) -> None:
    """Cancel a matrix of so many jobs, and print its figures."""
    register_model(rig)
    busy = FakeHost(rig.url, "busy", rig.join_token(), _BUSY_PHONES)
    busy.run_until_idle()
    for _ in range(20):
        submit(rig, rounds=100)
    deep = FakeHost(rig.url, "deep", rig.join_token(), _PHONES)
    deep.run_until_idle()
    deep.close()
    device = DeviceId("deep-0") if one_device else None
    cancelled, bare = (_large_matrix(rig, jobs) for _ in range(2))
    with working(busy, every_s=_EVERY_S) as worker:
        time.sleep(before_s)
        before = worker.take_claims_s()
        began_s, cpu_before_s = time.perf_counter(), cpu_s(rig.farm_pid)
        view = rig.farm.cancel_matrix(cancelled, device=device)
        ours_s = time.perf_counter() - began_s
        ours_cpu_s = cpu_s(rig.farm_pid) - cpu_before_s
        during = worker.claims_s
    began_s = time.perf_counter()
    count = rig.database.write(_finish, bare, device)
    bare_s = time.perf_counter() - began_s
    if view.queued != count:
        raise RuntimeError(f"{view.queued} jobs were cancelled, and {count} updated")
    busy.close()
    longest_s = max(during, default=float("nan"))
    print(
        f"  {name:<11} {count:,} jobs: {ours_s / bare_s:.2f} times the bare statements "
        f"({ours_s:.1f} / {bare_s:.1f} s), {1e6 * ours_cpu_s / count:.0f} us of the farm's CPU a job\n"
        f"  {'':<11} the longest of {len(during)} claims meanwhile: {longest_s / median(before):.1f} times "
        f"the median before, {longest_s / bare_s:.3f} times the bare statements",
        flush=True,
    )


def _large_matrix(rig: FarmRig, jobs: int) -> MatrixId:
    """Queue a matrix of so many jobs on the phones of the idle host."""
    matrix_id = submit(rig, rounds=1, host="deep")
    rounds = jobs // _PHONES
    for first in range(2, rounds + 1, _STEP_ROUNDS):
        rig.database.write(_fill, matrix_id, first, min(first + _STEP_ROUNDS - 1, rounds))
    rig.database.write(lambda connection: connection.exec_driver_sql("ANALYZE"))
    return matrix_id


def _fill(connection: Connection, matrix_id: MatrixId, first: int, last: int) -> None:
    connection.execute(sa.text(_FILL), {"matrix_id": matrix_id, "first": first, "last": last})


def _finish(connection: Connection, matrix_id: MatrixId, device: DeviceId | None) -> int:
    """Finish the jobs by bare statements; return their number."""
    also = "" if device is None else " AND device_id = :device"
    values = {"matrix_id": matrix_id} | ({} if device is None else {"device": device})
    counts = [connection.execute(sa.text(text.format(also=also)), values).rowcount for text in _BARE]
    return counts[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few jobs: does it work?")
    parser.add_argument(
        "--jobs",
        type=int,
        default=200_000,
        help="jobs of each of the two matrices (default: 200000)",
    )
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="on this one only")
    parser.add_argument("--device", action="store_true", help="cancel the part of one phone of ten only")
    options = parser.parse_args()
    jobs, before_s = (2000, 0.5) if options.quick else (options.jobs, 10.0)
    print(machine_facts(), flush=True)
    with interrupted_by_sigterm(), ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchfarm-")))
        urls = {"SQLite": nullcontext(None)}
        try:
            server = stack.enter_context(running_postgres())
            urls["PostgreSQL"] = server.database()
        except NoPostgres as reason:
            talk(f"SQLite only: {reason}")
        print("\na large matrix, cancelled while another host works")
        for name, database in urls.items():
            if options.database not in (None, name.lower()):
                continue
            with database as of, farm_rig(folder / name, None if of is None else server.url(of)) as rig:
                measure(rig, name, jobs=jobs, before_s=before_s, one_device=options.device)


if __name__ == "__main__":
    main()
