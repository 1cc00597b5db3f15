"""`make chaos`: one long storm on each database, and what it came to. README.md in this folder tells how.

Ends with 0 where every promise was kept, else with 1; it ends only processes that it started.
"""

import argparse
import secrets
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chaos.checks.summary import Summary
from tests.chaos.faults.schedule import Fault, schedule
from tests.chaos.run import Storm
from tests.chaos.testbed.testbed import set_arena
from tests.support.database.postgres import NoPostgres, running_postgres

MOST_FAULTS = 10_000
#: Of a broken promise's lines.
_SHOWN = 20
_DATABASES = ("sqlite", "postgresql")


def main() -> int:
    # Whoever ends it lets it end what it started.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    arguments = _arguments()
    seed = arguments.seed if arguments.seed is not None else secrets.randbelow(10**6)
    databases = _DATABASES if arguments.database == "both" else (arguments.database,)
    _say(f"seed {seed}, {arguments.faults} faults on {', '.join(databases)}")
    kept = [_is_kept(database, seed, arguments.faults) for database in databases]
    return 0 if all(kept) else 1


def _is_kept(database: str, seed: int, faults: int) -> bool:
    """Play one storm; its logs are left where a promise was broken."""
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{database}-"))
    _say(f"{database}: in {folder}")
    _say(f"  again: make chaos SEED={seed} FAULTS={faults} DATABASE={database}")
    try:
        with (
            _url(database) as url,
            set_arena(folder, farms=1 if url is None else 2, database_url=url) as arena,
        ):
            drawn = schedule(seed, faults, arena.cast)
            summary = Storm(arena, drawn, tell=_Teller(len(drawn.faults))).play()
    except NoPostgres as reason:
        _say(f"{database}: not played, {reason}")
        shutil.rmtree(folder)
        return False
    except AssertionError as error:
        _say_broken(database, folder, error)
        return False
    _say_kept(database, summary)
    shutil.rmtree(folder)
    return True


class _Teller:
    """A line for each tenth of the faults."""

    def __init__(self, faults: int) -> None:
        self._faults, self._begun = faults, 0

    def __call__(self, fault: Fault) -> None:
        self._begun += 1
        if self._begun % max(1, self._faults // 10) == 0:
            _say(f"  {self._begun} of {self._faults} faults, the last was {fault.name}")


@contextmanager
def _url(database: str) -> Iterator[str | None]:
    if database == "sqlite":
        yield None
        return
    with running_postgres() as server, server.database() as name:
        yield server.url(name)


def _say_kept(database: str, summary: Summary) -> None:
    _say(f"{database}: every promise was kept")
    for line in summary.lines():
        _say(f"  {line}")


def _say_broken(database: str, folder: Path, error: AssertionError) -> None:
    lines = str(error).splitlines() or ["(no words)"]
    _say(f"{database}: BROKEN")
    for line in lines[:_SHOWN]:
        _say(f"  {line}")
    if len(lines) > _SHOWN:
        _say(f"  and {len(lines) - _SHOWN} more lines")
    _say("  " + traceback.format_tb(error.__traceback__)[-1].strip())
    _say(f"  logs, databases and phones are in {folder}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="draws the schedule; any when it is left out")
    parser.add_argument("--faults", type=_count, default=1000, help="how many; 1000 take about 20 minutes")
    parser.add_argument("--database", choices=(*_DATABASES, "both"), default="both")
    return parser.parse_args()


def _count(text: str) -> int:
    number = int(text)
    if not 0 < number <= MOST_FAULTS:
        raise argparse.ArgumentTypeError(f"it must be from 1 to {MOST_FAULTS}")
    return number


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
