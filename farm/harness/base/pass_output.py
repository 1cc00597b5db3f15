"""What passes print beside their tool: files that it writes, as base64, and the time of each of its lines."""

import binascii
import re
from collections.abc import Mapping, Sequence

_BEGIN, _END = "benchfarm_file", "benchfarm_file_end"
_BLOCK = re.compile(
    rf"^{_BEGIN} ([\w.-]{{1,64}})\r?\n([A-Za-z0-9+/=\r\n]*)^{_END}\r?$", re.ASCII | re.MULTILINE
)

#: As it is printed: behind an empty line, since the tool may end within a line.
_PRINTED_BLOCK = re.compile(rf"\r?\n?{_BLOCK.pattern}\n?", re.ASCII | re.MULTILINE)


def with_printed_files(command: Sequence[str], files: Sequence[str]) -> tuple[str, ...]:
    """Return a command that runs another one, prints the files that it wrote, and ends as it ended.

    Args:
        command: in the placeholders of run plans.
        files: names of files in the folder of the run, of letters, digits, `_` and `.`; `*` stands for any
            part of a name. Of a file that is missing, and on a device without `base64`, nothing is printed.
    """
    script = (
        '"$$@"; code=$$?; '
        f"for file in {' '.join(files)}; do "
        f'[ -s "$$file" ] && printf "\\n{_BEGIN} %s\\n" "$$file" && base64 "$$file" && echo {_END}; '
        "done; exit $$code"
    )
    return ("sh", "-c", script, "sh", *command)


#: The line of the moment right before the tool is started.
_STARTED = "benchfarm_started"
_CLOCKED = re.compile(r"([0-9]{1,11})\.([0-9]{6})[0-9]{0,3} (.*)", re.ASCII)
#: mksh, Android's shell, has the variable; in others a process of its own tells the time.
_NOW = 'now() { now=$$EPOCHREALTIME; [ -n "$$now" ] || now=$$(date +%s.%N); }; '


def with_clocked_lines(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command that runs another one and prints each line of both its outputs behind its time.

    It ends with the other one's exit code.
    The time is that of the device's wall clock when its shell had read the line: up to about a millisecond
    after it was printed, some more where the shell is not mksh. A tool that keeps back what it prints has
    later times.
    """
    # The shell has the exit code of the last command of a pipe only, so the tool's comes by another stream.
    script = (
        f'{_NOW}exec 4>&1; now; echo "$$now {_STARTED}"; '
        'code=$$( { { "$$@" 2>&1 3>&- 4>&-; echo $$? >&3; } | '
        'while IFS= read -r line; do now; echo "$$now $$line"; done >&4; } 3>&1 ); exit $$code'
    )
    return ("sh", "-c", script, "sh", *command)


def clocked_ms(text: str, begin: re.Pattern[str] | None, end: re.Pattern[str]) -> float | None:
    """Return the milliseconds between two lines of a command with clocked lines.

    Args:
        text: what the command printed.
        begin: matches the first line; None for the start of the tool.
        end: matches the last line: the next one that it matches behind the first.

    Returns:
        None where one of them is missing, has no time, or the clock was set back between them.
    """
    began_us: int | None = None
    for match in _CLOCKED.finditer(text):
        us, line = int(match[1]) * 1_000_000 + int(match[2]), match[3]
        if began_us is None:
            if line == _STARTED if begin is None else begin.search(line):
                began_us = us
        elif end.search(line):
            return (us - began_us) / 1e3 if us > began_us else None
    return None


def printed_files(text: str) -> Mapping[str, bytes]:
    """Return the files in what a command printed, by name; none that is cut off."""
    files = {}
    for name, encoded in _BLOCK.findall(text):
        try:
            files[name] = binascii.a2b_base64("".join(encoded.split()), strict_mode=True)
        except binascii.Error:
            continue
    return files


def without_files(text: str) -> str:
    """Return what the tool itself printed before its files."""
    return _PRINTED_BLOCK.sub("", text)
