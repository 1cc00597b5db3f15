"""The journal of a virtual phone: when each run was alive, on a monotonic clock.

A run is any process with BENCHFARM_RUN=FENCE in the environment it was started with. The file has one JSON
object a line: `phone` (the phone started), `seen` (a process of a run is alive at `at_ns`), `gone` (it was
alive at `last_seen_ns`, and is not now). Times are CLOCK_BOOTTIME in nanoseconds, comparable within one
`boot_id`. The resolution is one scan, `agents.virtual.device.TICK_S`: spans are shortened by up to that at
either end, never extended, so that a detected overlap is a real one.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agents.virtual.processes.log_rotation import rotated_path

FILE = "journal.jsonl"
#: Two parts of this size are kept at most: some 10000 runs of one process each.
LIMIT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpan:
    """The time from the first to the last scan at which a process of the run was alive."""

    fence: int
    first_seen_ns: int
    last_seen_ns: int
    serial: str
    boot_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """One line of the journal."""

    event: str
    at_ns: int
    serial: str
    boot_id: str
    fence: int = -1
    pid: int = -1
    #: When the process started, in clock ticks since boot: with the pid it names a process.
    ticks: int = -1
    last_seen_ns: int = -1


def read_events(path: Path) -> Iterator[RunEvent]:
    """Yield every readable line, rotated or not; one that was truncated by a kill is skipped."""
    # The later part first: a rotation in between is then read twice, which changes nothing, and
    # never missed.
    later = _lines(path)
    for line in _lines(rotated_path(path)) + later:
        try:
            yield RunEvent(**json.loads(line))
        except (ValueError, TypeError):
            continue


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return []


def open_runs(path: Path) -> dict[tuple[int, int], RunEvent]:
    """Return the `seen` of every process without a `gone`, by pid and ticks; of the last boot only."""
    started: dict[tuple[int, int], RunEvent] = {}
    for entry in read_events(path):
        if entry.event == "phone":
            started = {key: event for key, event in started.items() if event.boot_id == entry.boot_id}
        elif entry.event == "seen":
            started[entry.pid, entry.ticks] = entry
        else:
            started.pop((entry.pid, entry.ticks), None)
    return started


def run_spans(path: Path) -> list[RunSpan]:
    """Return every run of a journal, by first scan; one without an end lasts to the last line."""
    span_by_run: dict[tuple[str, int], RunSpan] = {}
    last_ns_by_boot: dict[str, int] = {}
    for entry in read_events(path):
        last_ns_by_boot[entry.boot_id] = entry.at_ns
        if entry.event != "phone":
            key = entry.boot_id, entry.fence
            span_by_run[key] = _extend_span(span_by_run.get(key), entry)
    for event in open_runs(path).values():
        key = event.boot_id, event.fence
        end = max(span_by_run[key].last_seen_ns, last_ns_by_boot[event.boot_id])
        span_by_run[key] = replace(span_by_run[key], last_seen_ns=end)
    return sorted(span_by_run.values(), key=lambda span: (span.boot_id, span.first_seen_ns))


def _extend_span(span: RunSpan | None, entry: RunEvent) -> RunSpan:
    alive_ns = entry.at_ns if entry.event == "seen" else entry.last_seen_ns
    if span is None:
        return RunSpan(
            fence=entry.fence,
            first_seen_ns=alive_ns,
            last_seen_ns=alive_ns,
            serial=entry.serial,
            boot_id=entry.boot_id,
        )
    return replace(span, last_seen_ns=max(span.last_seen_ns, alive_ns))


def overlapping_runs(spans: Iterable[RunSpan]) -> list[tuple[RunSpan, RunSpan]]:
    """Return pairs of runs that were alive at the same time; each with the longest one before it."""
    overlaps: list[tuple[RunSpan, RunSpan]] = []
    ordered: Sequence[RunSpan] = sorted(spans, key=lambda span: (span.boot_id, span.first_seen_ns))
    longest: RunSpan | None = None
    for span in ordered:
        if longest is None or span.boot_id != longest.boot_id:
            longest = span
            continue
        if span.first_seen_ns <= longest.last_seen_ns:
            overlaps.append((longest, span))
        longest = max(longest, span, key=lambda run: run.last_seen_ns)
    return overlaps
