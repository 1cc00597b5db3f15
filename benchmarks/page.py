"""Pages over a long history: the time to the first byte against that of their own queries, and open tabs.

The farm is that of `history.py`: devices x matrices of equal cells. Each page is asked for over HTTP, in turn
with nothing else; then the statements of the request are run again, alone and with all their rows. The ratio
says what services, templates and HTTP add. Where Chromium is installed, it opens each page and tells when it
painted first. Then tabs are opened whose farm changes nothing, and their CPU time is read.

    .venv/bin/python benchmarks/page.py [--quick] [--devices N] [--cells N] [--matrices N]
"""

import argparse
import shutil
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
from playwright.sync_api import sync_playwright

from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.web.app import create_app_with_pages
from tests.support.farm.http_farm import served
from tests.support.farm.service_fixture import FarmRig

AIM_RATIO, AIM_CPU, AIM_PAINT_MS = 2.0, 0.02, 300.0
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

    def seconds(self) -> float:
        """Return the time that the statements take in turn."""
        statements = list(self._statements)
        raw = self._engine.raw_connection()
        try:
            cursor = raw.cursor()
            began_s = time.perf_counter()
            for statement, parameters in statements:
                cursor.execute(statement, parameters)
                if cursor.description is not None:
                    cursor.fetchall()
            return time.perf_counter() - began_s
        finally:
            raw.rollback()
            raw.close()

    def _note(self, _: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        self._statements.append((statement, parameters))


def page_rows(http: httpx.Client, queries: Queries, *, times: int) -> Iterator[str]:
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
            counts.append(len(queries))
            shares.append(queries.seconds())
        total_ms, query_ms = 1000 * median(totals[1:]), 1000 * median(shares[1:])
        ratio = total_ms / query_ms
        verdict = "MET" if ratio <= AIM_RATIO else "MISSED"
        yield (
            f"{path:<36}{total_ms:>9.1f} ms{query_ms:>9.1f} ms{counts[-1]:>8}{size / 1000:>9.0f} kB"
            f"{ratio:>7.1f}x  {verdict}"
        )


def first_paints(url: str, *, times: int) -> dict[str, float]:
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
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        tab = browser.new_page()
        for path in PAGES:
            seen = []
            for _ in range(times + 1):
                tab.goto(url + path, wait_until="load")
                seen.append(float(tab.evaluate(script)))
            paints[path] = median(seen[1:])
        browser.close()
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
        queries = Queries(app.state.context.database.engine)
        print(f"{'page':<36}{'first byte':>12}{'its SQL':>12}{'queries':>8}{'size':>12}{'ratio':>8}")
        for row in page_rows(http, queries, times=3 if options.quick else _TIMES):
            print(row, flush=True)
        for path, paint_ms in first_paints(url, times=3).items():
            verdict = "MET" if paint_ms <= AIM_PAINT_MS else "MISSED"
            print(f"{path:<36}{paint_ms:>9.0f} ms to the first paint  {verdict}", flush=True)
        tabs, seconds = (10, 3.0) if options.quick else (TABS, 30.0)
        share = tabs_share(url, tabs=tabs, seconds=seconds)
        verdict = "MET" if share <= AIM_CPU else "MISSED"
        print(f"\n{tabs} open tabs, nothing changes: {share:.2%} of a core (aim {AIM_CPU:.0%})  {verdict}")
    print(f"aim: the first byte of each page within {AIM_RATIO:g}x of its queries")


if __name__ == "__main__":
    main()
