"""Outputs of our own shell commands: sections, digests of files, and the exit record of the supervisor."""

import re
from collections.abc import Mapping

from farm.core.base.ids import Digest
from farm.core.runs.evidence import ExitRecord
from farm.phone.adb.decoding import decimal_number, lines, whole_number

_MARK = "@@benchfarm@@ "
_DIGEST_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")
#: The kernel shows CPU time in steps of 10 ms (USER_HZ), whatever its own tick is.
_STEPS_PER_S = 100


def section_command(commands: Mapping[str, str]) -> str:
    """Return one command line that runs all commands; a failed or missing one leaves an empty section.

    Names are plain words. Messages on stderr are dropped.
    """
    return "; ".join(
        # The blank line ends an output that has no line end of its own.
        f"echo; echo '{_MARK}{name}'; {{ {command}; }} 2>/dev/null"
        for name, command in commands.items()
    )


def section_head(name: str) -> str:
    """Return the line before a section's output."""
    return f"\n{_MARK}{name}\n"


def output_by_section(text: str) -> dict[str, str]:
    """Return the output of each command without blank lines around it; sections that never came are missing.

    A last line without a line end stays without one: the command was stopped.
    """
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines(text):
        if line.startswith(_MARK):
            current = sections.setdefault(line.removeprefix(_MARK), [])
        else:
            current.append(line)
    return {name: _trim(section) for name, section in sections.items()}


def _trim(section: list[str]) -> str:
    output = "\n".join(section).strip("\n")
    is_ended = section[-1:] == [""]
    return f"{output}\n" if output and is_ended else output


def digest_by_path(text: str) -> dict[str, Digest]:
    """Return the digest of each file; other lines (errors, an echo) are dropped."""
    matches = (_DIGEST_LINE.fullmatch(line) for line in lines(text))
    return {match[2]: Digest(match[1]) for match in matches if match}


def exit_record(text: str) -> ExitRecord | None:
    """Parse the record; None when it is missing or incomplete."""
    values = dict(line.split("=", 1) for line in lines(text) if "=" in line)
    code = whole_number(values.get("code", ""))
    started_s, ended_s = (
        decimal_number(values.get("started_s", "")),
        decimal_number(values.get("ended_s", "")),
    )
    if code is None or started_s is None or ended_s is None:
        return None
    return ExitRecord(
        code=code,
        timed_out=values.get("timed_out") == "1",
        duration_s=round(ended_s - started_s, 2),
        cpu_s=_cpu_s(values.get("cpu_steps", "")),
    )


def _cpu_s(steps: str) -> float | None:
    """Parse the CPU time; None where the supervisor is older, or could not read it."""
    number = whole_number(steps)
    return None if number is None or number < 0 else number / _STEPS_PER_S
