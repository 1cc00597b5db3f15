"""Short pieces of text that several tables say the same way."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from farm.core.base.units import duration_text, elapsed_text
from farm.core.runs.measurement import Outcome

EMPTY_CELL = "-"

_OUTCOME_ORDER = {str(outcome): place for place, outcome in enumerate(Outcome)}


def counts_text(count_by_word: Mapping[str, int]) -> str:
    """`38 succeeded, 2 failed`; outcomes in their own order, other words behind them."""
    known = sorted(count_by_word, key=lambda word: (_OUTCOME_ORDER.get(word, len(_OUTCOME_ORDER)), word))
    return ", ".join(f"{count_by_word[word]} {word}" for word in known if count_by_word[word]) or EMPTY_CELL


def plural(count: int, noun: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def device_kind(device_model: str | None, soc: str | None, *, virtual: bool) -> str:
    """What kind of phone it is; that it is virtual is always said: its times are those of the host's CPU."""
    known = [part for part in (device_model, soc) if part]
    named = ", ".join(dict.fromkeys(known)) or "unknown phone"
    return f"virtual phone: {named}" if virtual and not named.startswith("virtual") else named


def change_text(before_ns: float | None, after_ns: float | None) -> str:
    """`43.1 → 18.7 ms`, with both units where they differ."""
    before, after = duration_or_nothing(before_ns), duration_or_nothing(after_ns)
    number, _, unit = before.partition(" ")
    same_unit = unit and after.endswith(f" {unit}")
    return f"{number if same_unit else before} → {after}"


def duration_or_nothing(ns: float | None) -> str:
    """A duration in its best unit; `-` where it is not known."""
    return EMPTY_CELL if ns is None else duration_text(ns)


def local_time_text(at: datetime | None) -> str:
    """A time in the reader's own time zone."""
    return EMPTY_CELL if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M")


def time_left_text(eta_s: float | None, without: Sequence[str] = ()) -> str:
    """`about 2 min 5 s left without phone-2`, which waits."""
    if eta_s is None:
        return "time left not known yet"
    names = without[0] if len(without) == 1 else plural(len(without), "device")
    return f"about {elapsed_text(eta_s)} left" + (f" without {names}" if without else "")


def matrix_state_text(state: str, *, jobs: int, not_queued: int) -> str:
    """`running`, or `running, unfolding: 40 % of its jobs are queued`."""
    queued = 100 * (jobs - not_queued) // max(jobs, 1)
    return f"{state}, unfolding: {queued} % of its jobs are queued" if not_queued else state


def join_or_dash(parts: Iterable[str]) -> str:
    """Parts as one text; `-` where there are none."""
    return "; ".join(parts) or EMPTY_CELL
