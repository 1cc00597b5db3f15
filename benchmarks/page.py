"""Pages over a long history: the time to the first byte against that of their own queries, and open tabs.

The farm is that of `copied_history.py`, devices x matrices of equal cells, with its jobs, attempts, events
and alarms (`page_farm.py`). Each page is asked for over HTTP by another process, in turn with nothing else;
then the statements of the request are run again with all their rows, on a connection that is as warm: by the
driver alone ("its SQL"), and by SQLAlchemy as the page runs them ("as run").

The ratio is that of the first byte to the statements by the driver, and has the aim. "Least" is the same
ratio of a page that would do nothing but answer and run its statements: those as run, and the time of a page
that asks the database nothing. Where it is above the aim, fewer statements are what could meet it, not
quicker services or templates. Beside the times, which contain all waits for a core, stands the CPU time with
the same two ratios; the last one sets it against that least.

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from unittest.mock import patch

import httpx
import sqlalchemy as sa
from copied_history import History
from machine import machine_facts
from page_farm import add_work
from page_queries import Queries
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
_BUSY = "503"
#: Of a page that the farm is too busy for.
_TRIES = 20
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

    def get(self, path: str, *, before: Callable[[], None] = lambda: None) -> tuple[float, int]:
        """Return the seconds to the first byte of a page, and its bytes; call `before` before each try."""
        for _ in range(_TRIES):
            before()
            status, first_s, size = self._ask(path)
            # The first look counts the jobs of a matrix: on a busy machine it takes longer than a page may.
            if status != _BUSY:
                break
        # The sign-in of a farm without tokens leads elsewhere.
        assert status == ("303" if path == _EMPTY else "200"), (path, status)
        return float(first_s), int(size)

    def _ask(self, path: str) -> list[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().split()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@dataclass(frozen=True, slots=True)
class Costs:
    """What one page takes, in milliseconds: medians."""

    #: Of the page: to the first byte, and CPU time.
    page: tuple[float, float]
    #: Of its statements by the driver alone, and their CPU time.
    by_driver: tuple[float, float]
    #: Of its statements by SQLAlchemy, as the page runs them, and their CPU time.
    as_run: tuple[float, float]
    statements: int
    size: int


def costs_of(browser: Browser, queries: Queries, path: str, *, times: int) -> Costs:
    """Ask for a page so many times, and after each run its statements again, in two ways."""
    page, by_driver, as_run = [], [], []
    # The first look compiles its template and its statements, and may count the jobs of a matrix.
    browser.get(path)
    cpu_began_s = 0.0

    def begin() -> None:
        nonlocal cpu_began_s
        queries.reset()
        cpu_began_s = time.process_time()

    for _ in range(times):
        first_s, size = browser.get(path, before=begin)
        page.append((first_s, time.process_time() - cpu_began_s))
        count = len(queries)
        by_driver.append(queries.seconds())
        as_run.append(queries.seconds_as_run())
    page_ms, driver_ms, as_run_ms = (
        (1000 * median(wall_s for wall_s, _ in values), 1000 * median(cpu_s for _, cpu_s in values))
        for values in (page, by_driver, as_run)
    )
    return Costs(page_ms, driver_ms, as_run_ms, count, size)


_COLUMNS = (
    *("first byte", "its SQL", "as run", "ratio", "least", "aim", "SQLs", "size"),
    *("CPU", "of its SQL", "as run", "ratio", "least", "of least", "load"),
)


def page_rows(browser: Browser, queries: Queries, paths: Sequence[str], *, times: int) -> Iterator[str]:
    """Yield a row for each page, the first one for a page without a statement, and how many met the aim."""
    empty_ms = empty_cpu_ms = 0.0
    met = out_of_reach = 0
    for path in (_EMPTY, *paths):
        costs = costs_of(browser, queries, path, times=times)
        (first_ms, cpu_ms), (query_ms, query_cpu_ms) = costs.page, costs.by_driver
        as_run_ms, as_run_cpu_ms = costs.as_run
        ratios, cpu_ratios = ("", "", ""), ("", "", "")
        if costs.statements:
            ratio, least = first_ms / query_ms, (empty_ms + as_run_ms) / query_ms
            met += ratio <= AIM_RATIO
            out_of_reach += least > AIM_RATIO
            ratios = f"{ratio:.1f}x", f"{least:.1f}x", _verdict(ratio)
            least_cpu_ms = empty_cpu_ms + as_run_cpu_ms
            cpu_ratios = (
                *(f"{value_ms / query_cpu_ms:.1f}x" for value_ms in (cpu_ms, least_cpu_ms)),
                f"{cpu_ms / least_cpu_ms:.1f}x",
            )
        else:
            empty_ms, empty_cpu_ms = first_ms, cpu_ms
        values = (
            *(f"{value_ms:.1f} ms" for value_ms in (first_ms, query_ms, as_run_ms)),
            *(*ratios, str(costs.statements), f"{costs.size / 1000:.0f} kB"),
            *(f"{value_ms:.1f} ms" for value_ms in (cpu_ms, query_cpu_ms, as_run_cpu_ms)),
            *(*cpu_ratios, f"{os.getloadavg()[0]:.1f}"),
        )
        yield _row(path, values)
    yield (
        f"{met} of {len(paths)} pages have their first byte within {AIM_RATIO:g}x of their queries;"
        f" of {out_of_reach}, HTTP and SQLAlchemy alone take longer than that"
    )


def _row(name: str, values: Sequence[str]) -> str:
    return f"{name:<36}" + "".join(f"{value:>11}" for value in values)


def _verdict(ratio: float) -> str:
    return "MET" if ratio <= AIM_RATIO else "MISSED"


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
    parser.add_argument(
        "--with-jobs",
        type=int,
        default=20,
        help="so many newest matrices have their jobs, and the first one; pages of cells of others fail",
    )
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
        print(_row("page", _COLUMNS))
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


if __name__ == "__main__":
    main()
