"""Two well-known job queues on PostgreSQL, with jobs that do nothing: the cost of a job that is only a row.

    python benchmarks/peers.py {procrastinate|pgqueuer|pgqueuer-serial} CONNINFO JOBS

This prints the seconds that the peer's own worker takes to fetch, run and finish so many jobs.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import cycle, islice

#: Queues of one fetch, which stand for phones; with `pgqueuer-serial` each runs one job at a time.
QUEUES = 10
_BATCH = 1000


async def procrastinate(conninfo: str, jobs: int) -> float:
    """Time procrastinate's worker with ten jobs at once."""
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=conninfo))

    @app.task(name="nothing")
    async def nothing() -> None:
        pass

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for count in _batches(jobs):
            await nothing.batch_defer_async(*[{}] * count)
        began_s = time.perf_counter()
        await app.run_worker_async(
            concurrency=QUEUES, wait=False, listen_notify=False, install_signal_handlers=False
        )
        return time.perf_counter() - began_s


async def pgqueuer(conninfo: str, jobs: int, *, serial: bool) -> float:
    """Time pgqueuer's worker, ten jobs a fetch, with or without a limit of one running job for each queue."""
    import psycopg
    from pgqueuer import PgQueuer, Queries
    from pgqueuer.db import PsycopgDriver

    connection = await psycopg.AsyncConnection.connect(conninfo, autocommit=True)
    async with connection:
        driver = PsycopgDriver(connection)
        await Queries(driver).install()
        queue = PgQueuer(driver)

        done = 0

        async def nothing(_: object) -> None:
            nonlocal done
            done += 1
            if done == jobs:
                queue.shutdown.set()

        names = [f"phone-{number}" for number in range(QUEUES)]
        for name in names:
            queue.entrypoint(name, concurrency_limit=1 if serial else 0)(nothing)
        for count in _batches(jobs):
            queues = list(islice(cycle(names), count))
            await Queries(driver).enqueue(queues, [None] * count, [0] * count)
        began_s = time.perf_counter()
        # With a limit, it looks for waiting jobs only after this time.
        await queue.run(dequeue_timeout=timedelta(milliseconds=1), batch_size=QUEUES)
        return time.perf_counter() - began_s


def _batches(jobs: int) -> Iterator[int]:
    """Yield the sizes of batches for so many jobs."""
    for begin in range(0, jobs, _BATCH):
        yield min(_BATCH, jobs - begin)


async def main(peer: str, conninfo: str, jobs: int) -> float:
    """Time one peer."""
    if peer == "procrastinate":
        return await procrastinate(conninfo, jobs)
    return await pgqueuer(conninfo, jobs, serial=peer == "pgqueuer-serial")


if __name__ == "__main__":
    print(asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
