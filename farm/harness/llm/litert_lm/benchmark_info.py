"""The `BenchmarkInfo` that LiteRT-LM prints of each iteration (runtime/engine/io_types.cc)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,12})?"
#: Without an end at the front, the text of a run's medians begins alike: `Aggregated BenchmarkInfo (`.
_BEGINNING = re.compile(r"(?:^|[\]:] )BenchmarkInfo:$")
_MEDIANS = re.compile(r"Aggregated BenchmarkInfo \(")
_PHASE = re.compile(rf"^- ((?:Init )?[A-Z][\w ]{{1,40}}): ({_NUMBER}) ms$")
#: Durations are Abseil's: `1m2.5s`, `98.282891ms`, `0`.
_TURN = re.compile(
    r"^(Prefill|Decode) Turn ([0-9]{1,6}): Processed ([0-9]{1,9}) tokens in ([0-9.hmsun]{1,40}) duration\.$"
)
_DURATION = re.compile(rf"({_NUMBER})(ns|us|ms|s|m|h)")
_NS_BY_UNIT: Mapping[str, float] = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
_LONGEST_NS = 10**15
#: Versions since 2026 time the whole; the parts may overlap there. Its parts have had this prefix since.
_TOTAL, _PREFIX = "Total", "Init "
#: They are of each iteration, and no part of loading.
_NOT_LOADING = ("Session", "Conversation")


class MalformedInfo(ValueError):
    """The output does not hold what the tool prints of an iteration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A prompt that was processed, or a text that was generated.

    Raises:
        MalformedInfo: it has no tokens, or took no time, or more than eleven days.
    """

    tokens: int
    duration_ns: float

    def __post_init__(self) -> None:
        if self.tokens <= 0 or not 0 < self.duration_ns <= _LONGEST_NS:
            raise MalformedInfo(f"a turn is {self.tokens} tokens in {self.duration_ns / 1e9:g} s")

    @property
    def tokens_per_s(self) -> float:
        """Return the rate of the turn."""
        return self.tokens * 1e9 / self.duration_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkInfo:
    """One iteration: a prompt and the text after it."""

    #: By name, without `Init `, in milliseconds.
    phases_ms: Mapping[str, float] = field(default_factory=dict)
    prefill: Turn
    decode: Turn

    @property
    def load_ms(self) -> float | None:
        """Return the time until the engine could take a prompt; None where no phase is printed."""
        if _TOTAL in self.phases_ms:
            return self.phases_ms[_TOTAL]
        parts = [ms for name, ms in self.phases_ms.items() if name not in _NOT_LOADING]
        return sum(parts) if parts else None

    @property
    def first_token_ns(self) -> float:
        """Return the time to the first token as the tool defines it: the prompt, and a mean token.

        It prints the same in steps of 10 ms.
        """
        return self.prefill.duration_ns + self.decode.duration_ns / self.decode.tokens


def benchmark_infos(lines: Iterable[str]) -> list[BenchmarkInfo]:
    """Return the iterations in the lines of an output, without the prefixes of loggers; medians are left out.

    Raises:
        MalformedInfo: an iteration has not one turn of each kind, or one that took no time.
    """
    blocks: list[list[str]] = []
    inside = False
    for line in lines:
        if _MEDIANS.search(line):
            inside = False
        elif _BEGINNING.search(line):
            inside = True
            blocks.append([])
        elif inside:
            blocks[-1].append(line.strip())
    return [_info(block) for block in blocks]


def _info(lines: Sequence[str]) -> BenchmarkInfo:
    phases: dict[str, float] = {}
    turns: dict[str, list[Turn]] = {"prefill": [], "decode": []}
    for line in lines:
        if (match := _PHASE.match(line)) is not None:
            phases.setdefault(match[1], float(match[2]))
        elif (match := _TURN.match(line)) is not None:
            turns[match[1].lower()].append(Turn(tokens=int(match[3]), duration_ns=duration_of(match[4])))
    return info_of_turns(phases, turns)


def info_of_turns(phases_ms: Mapping[str, float], turns: Mapping[str, Sequence[Turn]]) -> BenchmarkInfo:
    """Return an iteration of its phases, by their printed names, and its turns by `prefill` and `decode`.

    Raises:
        MalformedInfo: it has not one turn of each kind.
    """
    for kind, of_kind in turns.items():
        if len(of_kind) != 1:
            raise MalformedInfo(f"an iteration has {len(of_kind)} {kind} turns, and not one")
    phases = {name.removeprefix(_PREFIX): ms for name, ms in phases_ms.items()}
    return BenchmarkInfo(phases_ms=phases, prefill=turns["prefill"][0], decode=turns["decode"][0])


def duration_of(text: str) -> float:
    """Return the nanoseconds of a duration as Abseil writes it; 0 for anything else."""
    parts = list(_DURATION.finditer(text))
    if "".join(part[0] for part in parts) != text:
        return 0.0
    return sum(float(part[1]) * _NS_BY_UNIT[part[2]] for part in parts)
