"""Pages over a long history: the time to the first byte against that of their own queries, and open tabs.

The farm is that of `history.py`, devices x matrices of equal cells, with its jobs, attempts, events and
alarms (`page_farm.py`). Each page is asked for over HTTP by another process, in turn with nothing else; then
the statements of the request are run again by the driver alone, with all their rows and on a connection that
is as warm. The ratio says what services, templates and HTTP add, and the page that asks the database nothing,
what HTTP alone takes. Beside the times, which contain all waits for a core, stands the CPU time of both. The
last ratio is that of the CPU time to that of the queries and of the page without any, together.

Where Chromium is installed, it opens each page and tells when it painted first, and how often an idle tab
asks. Then tabs are opened whose farm changes nothing, and their CPU time is read.

    .venv/bin/python benchmarks/page.py [--quick] [--devices N] [--cells N] [--matrices N] [--farm FOLDER]

10,000 devices, 10 cells and 19 matrices are 10,450,000 measurements: 12 GB, which `--farm` keeps for another
run, or takes from an earlier one.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import httpx
import sqlalchemy as sa
from history import History
from machine import machine_facts
from page_farm import add_work
from playwright.sync_api import sync_playwright

from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.database import tables
from farm.pauses import shorten_pauses
from farm.web.app import create_app_with_pages
from tests.support.farm.http_farm import served
from tests.support.farm.service_fixture import FarmRig

AIM_RATIO, AIM_CPU, AIM_PAINT_MS, AIM_ASKS_PER_S = 2.0, 0.02, 300.0, 1 / 30
TABS = 100
_TIMES = 15
_COUNTED = {
    "devices": tables.devices,
    "matrices": tables.matrices,
    "measurements": tables.measurements,
    "jobs": tables.jobs,
}
#: Without a statement.
_EMPTY = "/login"
PAGES = (
    "/",
    "/devices",
    "/devices/phone-7",
    "/matrices",
    "/matrices/{newest}",
    "/matrices/{before}",
    "/speedups?matrix={newest}&device=phone-7",
    "/speedups?device=phone-7",
    "/speedups",
    "/history?device=phone-7",
    "/history",
    "/changes",
    "/alarms",
    "/cells/2",
    "/attempts/3",
    "/hosts",
    "/events",
    "/variants",
)


class Queries:
    """The statements of a request, which are run again for their time, with all of their rows."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._statements: list[tuple[str, Any]] = []
        sa.event.listen(engine, "before_cursor_execute", self._note)

    def reset(self) -> None:
        """Forget the statements."""
        self._statements.clear()

    def __len__(self) -> int:
        return len(self._statements)

    def seconds(self) -> tuple[float, float]:
        """Return the time that the statements take in turn, and the CPU time."""
        statements = list(self._statements)
        raw = self._engine.raw_connection()
        try:
            cursor = raw.cursor()
            began_s, cpu_began_s = time.perf_counter(), time.thread_time()
            for statement, parameters in statements:
                cursor.execute(statement, parameters)
                if cursor.description is not None:
                    cursor.fetchall()
            return time.perf_counter() - began_s, time.thread_time() - cpu_began_s
        finally:
            raw.rollback()
            raw.close()

    def _note(self, _: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        self._statements.append((statement, parameters))


class Browser:
    """A client in a process of its own, so that its work is not counted as the farm's."""

    _PROGRAM = """
import http.client, sys, time
connection = http.client.HTTPConnection(sys.argv[1])

def answer_of(path):
    connection.request("GET", path)
    return connection.getresponse()

for path in map(str.strip, sys.stdin):
    began_s = time.perf_counter()
    try:
        answer = answer_of(path)
    except http.client.RemoteDisconnected:
        # The farm closes connections that were not used for some seconds.
        connection.close()
        began_s = time.perf_counter()
        answer = answer_of(path)
    answer.read(1)
    first_s = time.perf_counter() - began_s
    print(answer.status, first_s, len(answer.read()), flush=True)
"""

    def __init__(self, address: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._PROGRAM, address],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def get(self, path: str) -> tuple[float, int]:
        """Return the seconds to the first byte of a page, and its bytes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        status, first_s, size = self._process.stdout.readline().split()
        # The sign-in of a farm without tokens leads elsewhere.
        assert status == ("303" if path == _EMPTY else "200"), (path, status)
        return float(first_s), int(size)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def page_rows(browser: Browser, queries: Queries, paths: Sequence[str], *, times: int) -> Iterator[str]:
    """Yield a row for each page, with what HTTP alone takes beside its queries in the last ratio."""
    empty_cpu_ms = 0.0
    for path in (_EMPTY, *paths):
        firsts, cpus, query_firsts, query_cpus = [], [], [], []
        for _ in range(times + 1):
            queries.reset()
            cpu_began_s = time.process_time()
            first_s, size = browser.get(path)
            cpus.append(time.process_time() - cpu_began_s)
            firsts.append(first_s)
            count = len(queries)
            query_s, query_cpu_s = queries.seconds()
            query_firsts.append(query_s)
            query_cpus.append(query_cpu_s)
        # The first one is not warm.
        first_ms, cpu_ms, query_ms, query_cpu_ms = (
            1000 * median(values[1:]) for values in (firsts, cpus, query_firsts, query_cpus)
        )
        row = (
            f"{path:<36}{first_ms:>9.1f} ms{query_ms:>9.1f} ms{cpu_ms:>9.1f} ms{query_cpu_ms:>9.1f} ms"
            f"{count:>6}{size / 1000:>6.0f} kB{os.getloadavg()[0]:>6.1f}"
        )
        if not count:
            empty_cpu_ms = cpu_ms
            yield row
            continue
        ratio = first_ms / query_ms
        verdict = "MET" if ratio <= AIM_RATIO else "MISSED"
        with_http = cpu_ms / (query_cpu_ms + empty_cpu_ms)
        yield f"{row}{ratio:>7.1f}x{cpu_ms / query_cpu_ms:>7.1f}x{with_http:>9.1f}x  {verdict}"


def first_paints(url: str, paths: Sequence[str], *, times: int, idle_s: float) -> dict[str, float]:
    """Return by page the median milliseconds from request to first paint; empty without Chromium."""
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        print("no chromium on this machine: first paints are not measured", file=sys.stderr)
        return {}
    # By a promise: the policy of the pages forbids the evaluation that waiting for a function needs.
    script = """new Promise((resolve) => {
        const look = () => {
            const [paint] = performance.getEntriesByName("first-contentful-paint");
            paint ? resolve(paint.startTime) : setTimeout(look, 10);
        };
        look();
    })"""
    paints: dict[str, float] = {}
    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        tab = browser.new_page()
        for path in paths:
            seen = []
            for _ in range(times + 1):
                tab.goto(url + path, wait_until="load")
                seen.append(float(tab.evaluate(script)))
            paints[path] = median(seen[1:])
        tab.goto(url, wait_until="load")
        # Its stream of changes opens first.
        tab.wait_for_timeout(1000)
        tab.on("request", lambda request: asked.append(request.url))
        tab.wait_for_timeout(1000 * idle_s)
        browser.close()
    print(
        f"an idle tab made {len(asked)} requests in {idle_s:.0f} s  {'MET' if len(asked) <= 2 else 'MISSED'}"
    )
    return paints


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


def build_farm(folder: Path, options: argparse.Namespace) -> None:
    """Build a farm whose sessions ended during the last days."""
    began_s = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    rig = FarmRig(folder)
    rig.clock.jump(-86_400.0 * options.matrices)
    history = History(rig, devices=options.devices, cells=options.cells)
    # Each in a transaction of its own: the log of one over all would be as large as the database.
    for matrices in range(2, options.matrices + 1):
        history.grow(matrices)
    add_work(history, matrices=options.matrices, with_jobs=options.with_jobs)
    rig.close()
    size = sum(path.stat().st_size for path in folder.glob("farm.sqlite3*"))
    print(f"built in {time.monotonic() - began_s:.0f} s: {size / 1e9:.1f} GB")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small farm: does it work?")
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--matrices", type=int, default=20)
    parser.add_argument("--with-jobs", type=int, default=20, help="so many newest matrices have their jobs")
    parser.add_argument("--farm", type=Path, help="a folder whose farm is taken, or made and kept there")
    options = parser.parse_args(arguments)
    if options.quick:
        options.devices, options.cells, options.matrices = 8, 4, 3
    print(machine_facts())
    with ExitStack() as stack:
        folder = options.farm or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchfarm-")))
        if not (folder / "farm.sqlite3").exists():
            build_farm(folder, options)
        app = create_app_with_pages(FarmConfig(data_dir=folder), SystemClock())
        # Copies have no jobs, which the check of a migrated database would find.
        with patch("farm.api.app.upgrade"):
            url, _ = stack.enter_context(served(app))
        engine = app.state.context.database.engine
        with engine.connect() as connection:
            counts = {
                name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
                for name, table in _COUNTED.items()
            }
        # As a farm's process does once it is composed.
        shorten_pauses()
        print(f"\nSQLite: {', '.join(f'{count:,} {name}' for name, count in counts.items())}\n")
        paths = [path.format(newest=counts["matrices"], before=counts["matrices"] - 1) for path in PAGES]
        browser = Browser(url.removeprefix("http://"))
        stack.callback(browser.close)
        names = "".join(f"{name:>12}" for name in ("first byte", "its SQL", "CPU", "of its SQL"))
        print(
            f"{'page':<36}{names}{'SQLs':>6}{'size':>9}{'load':>6}{'ratio':>8}{'of CPU':>8}{'with HTTP':>10}"
        )
        for row in page_rows(browser, Queries(engine), paths, times=3 if options.quick else _TIMES):
            print(row, flush=True)
        for path, paint_ms in first_paints(
            url, paths, times=3, idle_s=3.0 if options.quick else 60.0
        ).items():
            verdict = "MET" if paint_ms <= AIM_PAINT_MS else "MISSED"
            print(f"{path:<36}{paint_ms:>9.0f} ms to the first paint  {verdict}", flush=True)
        tabs, seconds = (10, 3.0) if options.quick else (TABS, 30.0)
        share = tabs_share(url, tabs=tabs, seconds=seconds)
        verdict = "MET" if share <= AIM_CPU else "MISSED"
        print(f"\n{tabs} open tabs, nothing changes: {share:.2%} of a core (aim {AIM_CPU:.0%})  {verdict}")
    print(f"aim: the first byte of each page within {AIM_RATIO:g}x of its queries")


if __name__ == "__main__":
    main()
