"""Play seeds of the simulation: `python -m tests.simulation 17`; `0-500` or `17,23,40-45` for many.

One seed is printed with its trace; of many, those that broke a promise. PostgreSQL: `--database postgresql`.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from farm.database.engine import create_engine
from farm.database.migrate import upgrade
from tests.simulation.run import TROUBLED_S, Played, play
from tests.simulation.seeds import seeds_in
from tests.support.database.postgres import running_postgres
from tests.support.farm.service_fixture import FarmRig

Opened = Callable[[Path], FarmRig]


def main() -> None:
    arguments = _parser().parse_args()
    seeds: Collection[int] = arguments.seeds
    is_shown, failed = len(seeds) == 1, []
    for database in ("sqlite", "postgresql") if arguments.database == "both" else (arguments.database,):
        with _rigs(database) as opened:
            kept = {seed: _kept(opened, seed, arguments.troubled_s, is_shown) for seed in seeds}
        failed += [f"{seed} on {database}" for seed, is_kept in kept.items() if not is_kept]
    say(f"{len(seeds)} seeds; broke a promise: {', '.join(failed) or 'none'}")
    sys.exit(1 if failed else 0)


def _kept(opened: Opened, seed: int, troubled_s: float, is_shown: bool) -> bool:
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        rig = opened(Path(folder))
        try:
            told = play(rig, Path(folder), seed, troubled_s=troubled_s)
        except AssertionError as error:
            say("\n".join([f"seed {seed}: {error}", *error.__notes__]))
            return False
        finally:
            rig.close()
    _say(told, seed, time.monotonic() - began_s, is_shown)
    return True


def _say(told: Played, seed: int, took_s: float, is_shown: bool) -> None:
    if is_shown:
        say("\n".join(told.trace))
    say(f"seed {seed}: kept, {len(told.events)} events, {took_s:.1f} s")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def _rigs(database: str) -> Iterator[Opened]:
    with ExitStack() as stack:
        if database == "sqlite":
            yield FarmRig
            return
        server = stack.enter_context(running_postgres())
        server.execute("CREATE DATABASE migrated")
        engine = create_engine(server.url("migrated"))
        upgrade(engine)
        engine.dispose()
        yield lambda folder: FarmRig(folder, server.url(stack.enter_context(server.database("migrated"))))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=seeds_in, help="a number, FIRST-LAST, or several with commas")
    parser.add_argument("--database", choices=["sqlite", "postgresql", "both"], default="sqlite")
    parser.add_argument("--troubled-s", type=float, default=TROUBLED_S, help="how long things go wrong")
    return parser


if __name__ == "__main__":
    main()
