"""Text formatting that several tables share."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from farm.core.base.units import duration_text, elapsed_text
from farm.core.runs.measurement import Outcome

EMPTY_CELL = "-"

_OUTCOME_ORDER = {str(outcome): place for place, outcome in enumerate(Outcome)}


def counts_text(count_by_word: Mapping[str, int]) -> str:
    """Return `38 succeeded, 2 failed`: outcomes in their order, then other words."""
    words = sorted(count_by_word, key=lambda word: (_OUTCOME_ORDER.get(word, len(_OUTCOME_ORDER)), word))
    return ", ".join(f"{count_by_word[word]} {word}" for word in words if count_by_word[word]) or EMPTY_CELL


def plural(count: int, noun: str) -> str:
    """Return `1 cell` or `2 cells`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def device_kind(device_model: str | None, soc: str | None, *, virtual: bool) -> str:
    """Return model and SoC of a device. Virtual devices are marked: their times are of the host's CPU."""
    parts = [part for part in (device_model, soc) if part]
    kind = ", ".join(dict.fromkeys(parts)) or "unknown device"
    return f"virtual device: {kind}" if virtual and not kind.startswith("virtual") else kind


def change_text(before_ns: float | None, after_ns: float | None) -> str:
    """Return `43.1 → 18.7 ms`, with both units if they differ."""
    before, after = duration_or_nothing(before_ns), duration_or_nothing(after_ns)
    number, _, unit = before.partition(" ")
    same_unit = unit and after.endswith(f" {unit}")
    return f"{number if same_unit else before} → {after}"


def duration_or_nothing(ns: float | None) -> str:
    """Return a duration in its best unit; `-` if it is unknown."""
    return EMPTY_CELL if ns is None else duration_text(ns)


def local_time_text(at: datetime | None) -> str:
    """Return a time in the local time zone."""
    return EMPTY_CELL if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M")


def time_left_text(eta_s: float | None, without: Sequence[str] = ()) -> str:
    """Return `about 2 min 5 s left without phone-2`, where phone-2 is waiting."""
    if eta_s is None:
        return "time left unknown"
    names = without[0] if len(without) == 1 else plural(len(without), "device")
    return f"about {elapsed_text(eta_s)} left" + (f" without {names}" if without else "")


def matrix_state_text(state: str, *, jobs: int, not_queued: int) -> str:
    """Return `running`, or `running, expanding: 40 % of its jobs are queued`."""
    queued = 100 * (jobs - not_queued) // max(jobs, 1)
    return f"{state}, expanding: {queued} % of its jobs are queued" if not_queued else state


def join_or_dash(parts: Iterable[str]) -> str:
    """Return the parts as one text; `-` if there are none."""
    return "; ".join(parts) or EMPTY_CELL
