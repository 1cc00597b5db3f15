"""Lines of output and of the device's log, behind the columns of any log viewer."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from farm.harness.base.output_lines import without_colours
from farm.harness.failures.pattern_prefilter import find_prefilter

#: Longer lines are cut where they are quoted.
_QUOTED_CHARS = 300
_LEVEL = "[VDIWEFAS]"
_TIME = r"(?:\d{4}-)?\d\d-\d\d\s+\d\d:\d\d:\d\d\.\d{3,9}(?:\s+[+-]\d{4})?"
_USER = r"(?:[a-zA-Z0-9][\w.]*:?\s+)?"
_THREAD = r":\s*(?:0x)?[0-9a-f]{1,16}"
#: The fields before the tag: Android Studio's old and new columns; threadtime, also with the user before the
#: process and seconds for the time; brief and time; process and thread.
_PID = re.compile(
    rf"^\s*(?:{_TIME}\s+(?P<studio>\d{{1,9}})-\d{{1,9}}[ /]"
    rf"|(?:{_TIME}|\d{{1,11}}\.\d{{3,9}})\s+{_USER}(?P<threadtime>\d{{1,9}})\s+\d{{1,9}}\s+{_LEVEL}\s"
    rf"|(?:{_TIME}:?\s+)?{_LEVEL}/[^()\n]{{0,99}}\(\s*(?P<brief>\d{{1,9}})\):"
    rf"|{_LEVEL}\(\s*(?P<process>\d{{1,9}})(?:{_THREAD})?\) )"
)
#: logcat's `long` has a line before each text: `[ 08-13 17:35:52.069  1234: 1250 I/tflite ]`.
_HEAD = re.compile(rf"^\s*\[ {_TIME}\s+{_USER}(\d{{1,9}}){_THREAD} {_LEVEL}/.{{0,99}}\]\s*$")
#: logd folds repeated lines: the line before stands for so many more.
_FOLDED = re.compile(r"\bidentical (\d{1,6}) lines?\b")
_MOST_FOLDED = 100_000
#: Fewer lines are searched directly, without a prefilter.
_MANY_LINES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line, with the process that wrote it where the line names it."""

    text: str
    pid: int | None = None
    #: Number of lines it represents, where the log folded the repetitions.
    times: int = 1

    @property
    def quoted(self) -> str:
        """Return the line as a proof quotes it."""
        return " ".join(self.text.split())[:_QUOTED_CHARS]


def log_lines(text: str) -> list[LogLine]:
    """Return every line that is not blank, in order, without line ends and byte order marks."""
    log: list[LogLine] = []
    last_by_pid: dict[int | None, int] = {}
    for line, pid in _lines_with_pid(text):
        folded = _FOLDED.search(line) if "chatty" in line else None
        if folded is None or (index := last_by_pid.get(pid)) is None:
            last_by_pid[pid] = len(log)
            log.append(LogLine(text=line.rstrip(), pid=pid))
        else:
            times = min(log[index].times + int(folded[1]), _MOST_FOLDED)
            log[index] = replace(log[index], times=times)
    return log


def own_lines(log: str, pid: int | None) -> str:
    """Remove the lines of other processes from a log; return it unchanged where the process is unknown.

    Lines that the log folded stay folded: a few of them may stand for millions.
    """
    if pid is None:
        return log
    return "\n".join(line for line, writer in _lines_with_pid(log) if writer in (pid, None))


def matching_lines(
    lines: Sequence[LogLine], pattern: re.Pattern[str]
) -> Iterator[tuple[LogLine, re.Match[str]]]:
    """Yield the lines in which the pattern matches, with the matches."""
    if len(lines) >= _MANY_LINES and not _may_be_in(lines, pattern):
        return
    for line in lines:
        if (match := pattern.search(line.text)) is not None:
            yield line, match


def _may_be_in(lines: Sequence[LogLine], pattern: re.Pattern[str]) -> bool:
    """Return whether a log can match at all: searching all lines of megabytes takes some patterns seconds."""
    prefilter = find_prefilter(pattern)
    return prefilter is None or bool(prefilter.candidate_indexes("\n".join(line.text for line in lines)))


def _lines(text: str) -> Iterator[str]:
    plain = without_colours(text.replace("\ufeff", "").replace("\0", "").replace("\r", "\n"))
    return (line for line in plain.split("\n") if line.strip())


def _lines_with_pid(text: str) -> Iterator[tuple[str, int | None]]:
    """Yield each line with the process that wrote it."""
    above: int | None = None
    for line in _lines(text):
        if "[" in line and (head := _HEAD.match(line)) is not None:
            above = int(head[1])
            continue
        pid = _pid(line)
        yield line, above if pid is None else pid


def _pid(line: str) -> int | None:
    match = _PID.match(line)
    return int(match[match.lastgroup]) if match is not None and match.lastgroup is not None else None
