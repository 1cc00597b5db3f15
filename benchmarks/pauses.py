"""How long a request of a farm waits for the interpreter: garbage collection, and threads that compute.

Two parts, each with the settings of the interpreter as they are by default and with those of a farm's process
(`farm/pauses.py`), in one run:

- the CPU time of a full garbage collection, during which no request is answered; with the farm's settings,
  after it answered some requests;
- the time of GET /api/v1/devices over HTTP, from a process of its own, while no, one or two threads of the
  farm compute. The intervals at which threads give way take turns, so that load of the machine meets both.

    .venv/bin/python benchmarks/pauses.py [--quick]
"""

import argparse
import gc
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import httpx
from machine import machine_facts

sys.path.insert(0, str(Path(__file__).parents[1]))
from farm.pauses import SWITCH_INTERVAL_S, shorten_pauses
from tests.support.farm.http_farm import http_farm

_ROUNDS, _REQUESTS, _COLLECTIONS = 6, 40, 9
_QUICK_ROUNDS, _QUICK_REQUESTS = 1, 5
#: What a farm answers after its start, and keeps something of.
_ANSWERS = ("/", "/devices", "/matrices", "/api/v1/devices", "/api/v1/storage", "/openapi.json")


def main() -> None:
    """Print machine and table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="few requests: only shows that it works")
    quick = parser.parse_args().quick
    rounds, requests = (_QUICK_ROUNDS, _QUICK_REQUESTS) if quick else (_ROUNDS, _REQUESTS)
    facts = machine_facts()
    default_s = sys.getswitchinterval()
    # A fork would copy the farm.
    spawn = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as folder,
        http_farm(Path(folder)) as farm,
        ProcessPoolExecutor(1, mp_context=spawn) as client,
    ):
        farm.http.get("/api/v1/devices").raise_for_status()
        before_s = collection_s()
        shorten_pauses()
        for path in _ANSWERS:
            farm.http.get(path).raise_for_status()
        after_s = collection_s()
        by_threads = {
            threads: waits_s(client, farm.url, threads, (default_s, SWITCH_INTERVAL_S), rounds, requests)
            for threads in (0, 1, 2)
        }
    _say(facts)
    _say(f"{'':34}{'default':>12}{'farm':>12}{'default / farm':>18}")
    _row("full collection, CPU", before_s, after_s)
    for threads, (by_default, by_farm) in by_threads.items():
        _row(f"GET beside {threads} threads, median", median(by_default), median(by_farm))
        _row(f"GET beside {threads} threads, longest", max(by_default), max(by_farm))


def collection_s() -> float:
    """Return the CPU seconds of a full collection: the median of some."""
    gc.collect()
    taken_s = []
    for _ in range(_COLLECTIONS):
        began_s = time.thread_time()
        gc.collect()
        taken_s.append(time.thread_time() - began_s)
    return median(taken_s)


def waits_s(
    client: Executor, url: str, threads: int, intervals_s: tuple[float, float], rounds: int, requests: int
) -> tuple[list[float], list[float]]:
    """Return the seconds of each request, by each of two switch intervals, which take turns."""
    waits: tuple[list[float], list[float]] = [], []
    with computing(threads):
        for _ in range(rounds):
            for interval_s, into in zip(intervals_s, waits, strict=True):
                sys.setswitchinterval(interval_s)
                into += client.submit(ask, url, requests).result()
    return waits


def ask(url: str, requests: int) -> list[float]:
    """Return the seconds of each of so many requests, one after the other."""
    waits = []
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
        # The connection, and what the first request of a kind loads, count in none.
        http.get("/api/v1/devices").raise_for_status()
        for _ in range(requests):
            began_s = time.perf_counter()
            http.get("/api/v1/devices").raise_for_status()
            waits.append(time.perf_counter() - began_s)
    return waits


@contextmanager
def computing(threads: int) -> Iterator[None]:
    """Have so many threads compute in Python while the block runs."""
    is_done = threading.Event()

    def compute() -> None:
        while not is_done.is_set():
            sum(number * number for number in range(1000))

    running = [threading.Thread(target=compute) for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        is_done.set()
        for thread in running:
            thread.join()


def _row(name: str, by_default_s: float, by_farm_s: float) -> None:
    figures = f"{by_default_s * 1000:9.2f} ms{by_farm_s * 1000:9.2f} ms"
    _say(f"{name:34}{figures}{by_default_s / by_farm_s:18.1f}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
