"""Pages over a long history: the time to the first byte against that of their own queries, and open tabs.

The farm is that of `history.py`: devices x matrices of equal cells. Each page is asked for over HTTP, in turn
with nothing else; the database reports how long the queries of each request took. The ratio says what
services, templates and HTTP add. Then tabs are opened whose farm changes nothing, and their CPU time is read.

    .venv/bin/python benchmarks/pages.py [--quick] [--devices N] [--cells N] [--matrices N]
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from unittest.mock import patch

import httpx
import sqlalchemy as sa
from history import History
from machine import machine_facts

from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.web.app import create_app_with_pages
from tests.support.farm.http_farm import served
from tests.support.farm.service_fixture import FarmRig

AIM_RATIO, AIM_CPU = 2.0, 0.02
TABS = 100
_TIMES = 15
PAGES = (
    "/",
    "/devices",
    "/devices/phone-7",
    "/matrices",
    "/matrices/2",
    "/speedups?matrix=2&device=phone-7",
    "/speedups?device=phone-7",
    "/history?device=phone-7",
    "/changes",
    "/cells/2",
    "/attempts/3",
    "/hosts",
    "/events",
)


class QueryTimes:
    """The time that the database took for the queries since the last reset, and their number."""

    def __init__(self, engine: sa.Engine) -> None:
        self.seconds, self.count = 0.0, 0
        sa.event.listen(engine, "before_cursor_execute", self._before)
        sa.event.listen(engine, "after_cursor_execute", self._after)

    def reset(self) -> None:
        """Forget what was added."""
        self.seconds, self.count = 0.0, 0

    def _before(self, connection: sa.Connection, *_: object) -> None:
        connection.info["query_began_s"] = time.perf_counter()

    def _after(self, connection: sa.Connection, *_: object) -> None:
        self.seconds += time.perf_counter() - connection.info["query_began_s"]
        self.count += 1


def page_rows(http: httpx.Client, queries: QueryTimes, *, times: int) -> Iterator[str]:
    """Yield a row for each page."""
    for path in PAGES:
        totals, shares, counts, size = [], [], [], 0
        for _ in range(times + 1):
            queries.reset()
            began_s = time.perf_counter()
            with http.stream("GET", path) as answer:
                chunks = answer.iter_raw()
                first = next(chunks)
                totals.append(time.perf_counter() - began_s)
                size = len(first) + sum(map(len, chunks))
            assert answer.status_code == 200, (path, answer.status_code)
            shares.append(queries.seconds)
            counts.append(queries.count)
        total_ms, query_ms = 1000 * median(totals[1:]), 1000 * median(shares[1:])
        ratio = total_ms / query_ms
        verdict = "MET" if ratio <= AIM_RATIO else "MISSED"
        yield (
            f"{path:<36}{total_ms:>9.1f} ms{query_ms:>9.1f} ms{counts[-1]:>8}{size / 1000:>9.0f} kB"
            f"{ratio:>7.1f}x  {verdict}"
        )


@contextmanager
def open_tabs(url: str, count: int) -> Iterator[None]:
    """Keep streams of changes open, as tabs do."""
    closing = threading.Event()

    def follow() -> None:
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
            keys = "devices alarms jobs matrices"
            with http.stream("GET", "/live", params={"keys": keys}) as answer:
                for _ in answer.iter_lines():
                    ready.release()
                    closing.wait()
                    return

    ready = threading.Semaphore(0)
    threads = [threading.Thread(target=follow, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for _ in threads:
        ready.acquire()
    yield
    closing.set()
    for thread in threads:
        thread.join()


def tabs_share(url: str, *, tabs: int, seconds: float) -> float:
    """Return the share of a core that open tabs cost this process; they are threads that wait in it, too."""
    before_s = _idle_cpu_s(seconds)
    with open_tabs(url, tabs):
        time.sleep(2)
        with_tabs_s = _idle_cpu_s(seconds)
    return max(with_tabs_s - before_s, 0.0) / seconds


def _idle_cpu_s(seconds: float) -> float:
    began_s = time.process_time()
    time.sleep(seconds)
    return time.process_time() - began_s


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small farm: does it work?")
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--matrices", type=int, default=20)
    options = parser.parse_args(arguments)
    if options.quick:
        options.devices, options.cells, options.matrices = 8, 4, 3
    print(machine_facts())
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchfarm-")))
        rig = FarmRig(folder)
        history = History(rig, devices=options.devices, cells=options.cells)
        history.grow(options.matrices)
        rig.close()
        size = history.size * options.devices * options.matrices
        print(f"\n{options.devices} devices, {options.matrices} matrices, {size} measurements, SQLite\n")
        app = create_app_with_pages(FarmConfig(data_dir=folder), SystemClock())
        # Copies have no jobs, which the check of a migrated database would find.
        with patch("farm.api.app.upgrade"):
            url, _ = stack.enter_context(served(app))
        http = stack.enter_context(httpx.Client(base_url=url, trust_env=False, timeout=120))
        http.get("/").raise_for_status()
        queries = QueryTimes(app.state.context.database.engine)
        print(f"{'page':<36}{'first byte':>12}{'its SQL':>12}{'queries':>8}{'size':>12}{'ratio':>8}")
        for row in page_rows(http, queries, times=3 if options.quick else _TIMES):
            print(row, flush=True)
        tabs, seconds = (10, 3.0) if options.quick else (TABS, 30.0)
        share = tabs_share(url, tabs=tabs, seconds=seconds)
        verdict = "MET" if share <= AIM_CPU else "MISSED"
        print(f"\n{tabs} open tabs, nothing changes: {share:.2%} of a core (aim {AIM_CPU:.0%})  {verdict}")
    print(f"aim: the first byte of each page within {AIM_RATIO:g}x of its queries")


if __name__ == "__main__":
    main()
