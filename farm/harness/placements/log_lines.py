"""Lines of output and of the phone's log, whatever a viewer has put before each."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from farm.harness.log_lines import without_colours

#: Longer lines are cut where they are quoted.
_QUOTED_CHARS = 300
#: threadtime, Android Studio's old and new columns, brief with the process: what stands before the tag.
_PID = re.compile(
    r"^\s*(?:(?:\d{4}-)?\d\d-\d\d\s+\d\d:\d\d:\d\d\.\d{3,6}\s+(?:[+-]\d{4}\s+)?"
    r"(?:(?P<studio>\d{1,9})-\d{1,9}[ /]|(?:[\w.]+\s+)?(?P<threadtime>\d{1,9})\s+\d{1,9}\s+[VDIWEFAS]\s)"
    r"|(?:(?:\d{4}-)?\d\d-\d\d\s+\d\d:\d\d:\d\d\.\d{3,6}\s+)?[VDIWEFAS]/[^()\n]{0,99}\(\s*(?P<brief>\d{1,9})\):)"
)
#: logd folds lines that are the same: the line before, so many times more.
_FOLDED = re.compile(r"\bidentical (\d{1,6}) lines?\b")
_MOST_FOLDED = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line, with the process that wrote it where the line says that."""

    text: str
    pid: int | None = None
    #: How many times it stands for, when the log folded those that followed.
    times: int = 1

    @property
    def quoted(self) -> str:
        """As a proof shows it."""
        return " ".join(self.text.split())[:_QUOTED_CHARS]


def log_lines(text: str) -> list[LogLine]:
    """Every line that holds something, in order; line ends and byte order marks of any system."""
    found: list[LogLine] = []
    last_by_pid: dict[int | None, int] = {}
    for line in _lines(text):
        pid = _pid(line)
        folded = _FOLDED.search(line) if "chatty" in line else None
        if folded is None or (place := last_by_pid.get(pid)) is None:
            last_by_pid[pid] = len(found)
            found.append(LogLine(text=line.rstrip(), pid=pid))
        else:
            times = min(found[place].times + int(folded[1]), _MOST_FOLDED)
            found[place] = replace(found[place], times=times)
    return found


def own_lines(log: str, pid: int | None) -> str:
    """A log without what other processes wrote; as it is where nobody knows whose it is.

    Lines that the log folded stay folded: a few of them may stand for millions.
    """
    if pid is None:
        return log
    return "\n".join(line for line in _lines(log) if _pid(line) in (pid, None))


def matching(lines: Sequence[LogLine], pattern: re.Pattern[str]) -> Iterator[tuple[LogLine, re.Match[str]]]:
    """The lines in which the pattern is found, with what it found."""
    for line in lines:
        if (match := pattern.search(line.text)) is not None:
            yield line, match


def _lines(text: str) -> Iterator[str]:
    plain = without_colours(text.replace("\ufeff", "").replace("\0", "").replace("\r", "\n"))
    return (line for line in plain.split("\n") if line.strip())


def _pid(line: str) -> int | None:
    match = _PID.match(line)
    return int(match[match.lastgroup]) if match is not None and match.lastgroup is not None else None
