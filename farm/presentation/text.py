"""Text formatting that several commands share, and durations that users write."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from farm.core.base.ids import AttemptId
from farm.core.base.units import duration_text, elapsed_text, ratio_text
from farm.core.errors import InvalidInput
from farm.core.operations.event import Event
from farm.core.runs.measurement import Outcome

_SECONDS_BY_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
_DURATION = re.compile(r"([0-9]{1,9})([smhdwy])")
EMPTY_CELL = "-"
_ANY_ATTEMPT = "attempt show ID"
#: A heading and its text. An empty heading continues the field above; without a text the field is left out.
Field = tuple[str, str | None]
_DAYS_FROM_S = 2 * 86400

_OUTCOME_ORDER = {str(outcome): place for place, outcome in enumerate(Outcome)}


def merged_fields(fields: Iterable[Field]) -> list[tuple[str, list[str]]]:
    """Return each heading once with its texts: those that follow without a heading, and its repetitions."""
    merged: list[tuple[str, list[str]]] = []
    for heading, value in fields:
        if value is None:
            continue
        if merged and heading in ("", merged[-1][0]):
            merged[-1][1].append(value)
        else:
            merged.append((heading, [value]))
    return merged


def counts_text(count_by_word: Mapping[str, int]) -> str:
    """Return `38 succeeded, 2 failed`: outcomes in their order, then other words."""
    words = sorted(count_by_word, key=lambda word: (_OUTCOME_ORDER.get(word, len(_OUTCOME_ORDER)), word))
    return ", ".join(f"{count_by_word[word]} {word}" for word in words if count_by_word[word]) or EMPTY_CELL


def plural(count: int, noun: str) -> str:
    """Return `1 cell` or `2 cells`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def range_text(least: object, most: object) -> str:
    """Return `5`, or `5 to 40`."""
    return f"{least}" if least == most else f"{least} to {most}"


def round_text(round: int, block: int, repeat: int) -> str:
    """Return `round 3`, or `round 3, block 2, repeat 1`; the first of each is left out."""
    return ", ".join(filter(None, [f"round {round}", block_text(block, repeat)]))


def block_text(block: int, repeat: int) -> str:
    """Return `block 2, repeat 1`; the first of each is left out."""
    return ", ".join([f"block {block}"] * bool(block) + [f"repeat {repeat}"] * bool(repeat))


def plural_range(least: int, most: int, noun: str) -> str:
    """Return `1 round`, or `5 to 40 rounds`."""
    return plural(least, noun) if least == most else f"{range_text(least, most)} {noun}s"


def elapsed_range(least_s: float, most_s: float) -> str:
    """Return `2 min 5 s`, or `2 min 5 s to 16 min`."""
    return range_text(elapsed_text(least_s), elapsed_text(most_s))


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


def speedup_text(speedup: float | None, low: float | None, high: float | None) -> str:
    """Return `0.98x, 0.95x to 1.01x`, or `0.98x, no interval`."""
    ratio = EMPTY_CELL if speedup is None else ratio_text(speedup)
    if low is None or high is None:
        return f"{ratio}, no interval"
    return f"{ratio}, {ratio_text(low)} to {ratio_text(high)}"


def interval_text(low: float | None, high: float | None) -> str:
    """Return the interval of a speedup as columns show it: `0.95 to 1.01`; `-` without one."""
    if low is None or high is None:
        return EMPTY_CELL
    return " to ".join(ratio_text(bound).removesuffix("x") for bound in (low, high))


def duration_or_nothing(ns: float | None) -> str:
    """Return a duration in its best unit; `-` if it is unknown."""
    return EMPTY_CELL if ns is None else duration_text(ns)


def with_attempt(text: str, attempt_id: AttemptId | None) -> str:
    """Return what to do about a problem with the number of an attempt; such hints are written for any."""
    return text if attempt_id is None else text.replace(_ANY_ATTEMPT, f"attempt show {attempt_id}")


def failure_text(message: str | None, code: str | None) -> str:
    """Return `the program crashed [run.crashed]`."""
    return " ".join(part for part in (message, f"[{code}]" if code else None) if part)


def local_time_text(at: datetime | None) -> str:
    """Return a time in the local time zone."""
    return EMPTY_CELL if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M")


def distinct_time_texts(*times: datetime) -> list[str]:
    """Return times in the local time zone, with seconds where two would read the same."""
    texts = [local_time_text(at) for at in times]
    if len({*texts}) == len(texts):
        return texts
    return [at.astimezone().strftime("%Y-%m-%d %H:%M:%S") for at in times]


def age_text(at: datetime, now: datetime) -> str:
    """Return how long ago a time is, from two days on in days."""
    seconds = max(0.0, (now - at).total_seconds())
    return elapsed_text(seconds) if seconds < _DAYS_FROM_S else f"{seconds / 86400:.0f} days"


def time_left_text(
    eta_s: float | None, without: Sequence[str] = (), *, max_eta_s: float | None = None
) -> str:
    """Return `about 2 min 5 s left without phone-2`, where phone-2 is waiting.

    Of a matrix that grows, `about 2 min to 16 min left`.
    """
    if eta_s is None:
        return "time left unknown"
    names = without[0] if len(without) == 1 else plural(len(without), "device")
    time_text = elapsed_range(eta_s, eta_s if max_eta_s is None else max_eta_s)
    return f"about {time_text} left" + (f" without {names}" if without else "")


def matrix_state_text(state: str, *, jobs: int, not_queued: int) -> str:
    """Return `running`, or `running, expanding: 40 % of its jobs are queued`."""
    queued = 100 * (jobs - not_queued) // max(jobs, 1)
    return f"{state}, expanding: {queued} % of its jobs are queued" if not_queued else state


def join_or_dash(parts: Iterable[str]) -> str:
    """Return the parts as one text; `-` if there are none."""
    return "; ".join(parts) or EMPTY_CELL


def transition_text(event: Event) -> str:
    """Return the states before and after, to follow the kind of an event; empty where the kind names them."""
    before, after = event.from_state, event.to_state
    if before is not None and after is not None:
        return f": {before} → {after}"
    return f": {after}" if after is not None and not event.kind.endswith(f"_{after}") else ""


def past_moment(text: str | None, *, option: str) -> datetime | None:
    """Return a time of the past, written as a date, a time, or a duration before now; None without a text.

    Args:
        text: `2026-03-01`, `2026-03-01T12:30`, in the local time zone where it names none; or `30d`.
        option: that it was given to, for errors.

    Raises:
        InvalidInput: it is none of these, or lies in the future.
    """
    if text is None:
        return None
    now = datetime.now().astimezone()
    if _DURATION.fullmatch(text.strip()):
        span = seconds(text)
        first = datetime(1970, 1, 2).astimezone()
        return max(first, now - timedelta(seconds=min(span, now.timestamp() - 86400)))
    try:
        moment = datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{option} {text!r} is neither a date nor a duration",
            hint="write it like 2026-03-01, 2026-03-01T12:30, 12h, 30d or 1y",
        ) from None
    if moment > now:
        raise InvalidInput(f"{option} {text} lies in the future", hint="give a time that has passed")
    if moment.year < 1970:
        raise InvalidInput(f"{option} {text} lies before 1970", hint="give a later date")
    return moment


def past_seconds(text: str | None, *, option: str) -> int | None:
    """Return how many seconds ago a time was, as `past_moment` reads it; None without a text."""
    moment = past_moment(text, option=option)
    return None if moment is None else math.ceil((datetime.now().astimezone() - moment).total_seconds())


def seconds(text: str) -> int:
    """Return the seconds of a duration.

    Raises:
        InvalidInput: the text is not a whole number with a unit.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(f"{text!r} is not a duration", hint="write it like 90s, 30m, 2h or 7d")
    return int(match[1]) * _SECONDS_BY_UNIT[match[2]]
