"""Output of speed_benchmark_torch and its relatives, parsed into exact numbers.

The versions of `binaries/speed_benchmark_torch.cc` in pytorch differ in their last line. Up to about v1.5 it
says `Milliseconds per iter`, and the observer lines carry whole milliseconds although they say `"unit":
"us"`; later both are microseconds. iOS's TestApp prints milliseconds over two lines.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum

#: C++ streams print 6 significant digits, and an exponent from 1e6 on; never `inf` where a run happened.
_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?"

_OBSERVED = re.compile(
    r'PyTorchObserver\s*\{\s*"type":\s*"NET",[^{}\n]*"metric":\s*"latency",\s*"value":\s*"?'
    rf'({_NUMBER})"?\s*\}}'
)
#: Caffe2's nets say `runs`, and iOS's log prefixes its second line, too; its first may be two.
_LAST = re.compile(
    rf"Main runs? finished\.\s{{1,9}}(Microseconds|Milliseconds) per iter: ?({_NUMBER})"
    rf"\.?\s+(?:[^\]\n]{{0,100}}\[\d+:\d+\] )?Iters per second:[ \t:]*{_NUMBER}"
)
#: Longer than any run; values below it fit into 64 bits.
_LONGEST_NS = 10**15
#: A dozen time slices of other processes under Linux's schedulers.
_PUT_ASIDE_NS = 50 * 1_000_000


class ObserverUnit(IntEnum):
    """The unit of observer lines, in nanoseconds."""

    MICROSECOND = 1_000
    MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLine:
    """The tool's own summary: the mean over its main loop, timed around the whole loop."""

    unit: ObserverUnit
    mean_ns: float
    text: str


def last_lines(stdout: str) -> list[LastLine]:
    """Return every complete summary in `stdout`; one run prints exactly one."""
    return [_last_line(match) for match in _LAST.finditer(stdout)]


def observer_values_ns(stdout: str, unit: ObserverUnit) -> list[int]:
    """Return the value of every complete observer line, in the order printed, in nanoseconds."""
    return [min(round(Decimal(text) * unit), _LONGEST_NS) for text in _OBSERVED.findall(stdout)]


def disagreement(samples_ns: Sequence[int], last: LastLine) -> str | None:
    """Return how the mean of all samples contradicts the last line; None when it does not.

    Samples are cut to whole units, and the last line's clock also covers the loop itself: one unit, 5 us and
    1 % are allowed between the two. A busy machine may interrupt the loop between iterations: 50 ms a run are
    allowed for that, up to half of the last line's time, which no confusion of units undercuts.
    """
    mean_ns = sum(samples_ns) / len(samples_ns)
    cut_ns = last.unit + 5 * ObserverUnit.MICROSECOND + last.mean_ns / 100
    put_aside_ns = min(_PUT_ASIDE_NS / len(samples_ns), last.mean_ns / 2)
    if -cut_ns <= last.mean_ns - mean_ns <= cut_ns + put_aside_ns:
        return None
    values = f"its {len(samples_ns)} values average {mean_ns / 1e3:.6g} us"
    return f"{values}, its last line says {last.mean_ns / 1e3:.6g} us"


def _last_line(match: re.Match[str]) -> LastLine:
    unit = ObserverUnit.MICROSECOND if match[1] == "Microseconds" else ObserverUnit.MILLISECOND
    text = " ".join(match[0].split())
    return LastLine(unit=unit, mean_ns=min(float(Decimal(match[2]) * unit), float(_LONGEST_NS)), text=text)
