"""What a storm came to, in figures."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from tests.chaos.checks.checker import longest_together_s, proofs_of
from tests.chaos.checks.oracle import starts
from tests.chaos.faults.schedule import Kind, Schedule
from tests.chaos.testbed.testbed import Arena

_JOBS = sa.text("SELECT outcome, count(*) FROM jobs WHERE kind = 'benchmark' GROUP BY outcome")
_ATTEMPTS = sa.text("SELECT state, count(*) FROM attempts GROUP BY state")
_RETRIED = sa.text(
    "SELECT count(*) FROM (SELECT job_id FROM attempts GROUP BY job_id HAVING count(*) > 1) AS retried"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Counts by name."""

    faults: Counter[str]
    #: What requests ran into, of the network's faults.
    met: Counter[str]
    orders: Counter[str]
    jobs: Counter[str]
    attempts: Counter[str]
    retried: int
    #: Benchmarks that began on phones.
    runs: int
    #: For how long at most two runs of one phone were alive together.
    together_s: float
    storm_s: float
    rest_s: float

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"{self.faults.total()} faults in {self.storm_s:.0f} s, all at rest {self.rest_s:.0f} s later"
        for name in ("faults", "met", "orders", "jobs", "attempts"):
            counted: Counter[str] = getattr(self, name)
            yield f"{name}: " + ", ".join(f"{count} {each}" for each, count in sorted(counted.items()))
        yield f"{self.retried} jobs were tried more than once; {self.runs} benchmarks began on phones"
        yield f"two runs of one phone were alive together for {self.together_s:.2f} s at most"


def summary_of(
    arena: Arena, schedule: Schedule, orders: Counter[str], *, storm_s: float, rest_s: float
) -> Summary:
    """The figures of a storm that is over."""
    database = arena.farms[0].database
    return Summary(
        faults=Counter(
            fault.detail if fault.kind is Kind.NETWORK else fault.name for fault in schedule.faults
        ),
        met=Counter({str(each): count for each, count in arena.proxy.met.items()}),
        orders=orders,
        jobs=database.read(_counted, _JOBS),
        attempts=database.read(_counted, _ATTEMPTS),
        retried=database.read(lambda connection: int(connection.scalar(_RETRIED) or 0)),
        runs=sum(len(starts(phone.state)) for phone in arena.phones),
        together_s=longest_together_s(proofs_of(arena)),
        storm_s=storm_s,
        rest_s=rest_s,
    )


def _counted(connection: Connection, query: sa.TextClause) -> Counter[str]:
    return Counter({str(name): int(count) for name, count in connection.execute(query)})
