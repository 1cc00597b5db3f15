"""The runs of a virtual device, from its journal; and those that were alive at the same time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agents.virtual.processes import RunEvent, open_runs, read_events


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpan:
    """The time from the first to the last scan at which a process of the run was alive."""

    fence: int
    first_seen_ns: int
    last_seen_ns: int
    serial: str
    boot_id: str


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
