"""Files that a tool writes in a diagnostic pass, and the times of operators that profiles among them have.

They come back as base64 behind what the tool printed.
"""

import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Better, Metric

#: The pass of its own: older tools refuse or only warn of the flags that name the files.
RESULT_FILES = "result_files"
_BEGIN, _END = "benchfarm_file", "benchfarm_file_end"
_BLOCK = re.compile(
    rf"^{_BEGIN} ([\w.-]{{1,64}})\r?\n([A-Za-z0-9+/=\r\n]*)^{_END}\r?$", re.ASCII | re.MULTILINE
)


def with_result_files(command: Sequence[str], files: Sequence[str]) -> tuple[str, ...]:
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


def result_files(evidence: Evidence) -> Mapping[str, bytes]:
    """Return the files of the pass by name; none of a pass that failed, and none that is cut off."""
    text = next(
        (
            tool_pass.stdout
            for tool_pass in evidence.passes
            if tool_pass.name == RESULT_FILES and tool_pass.exit is not None and tool_pass.exit.code == 0
        ),
        "",
    )
    files = {}
    for name, encoded in _BLOCK.findall(text):
        try:
            files[name] = binascii.a2b_base64("".join(encoded.split()), strict_mode=True)
        except binascii.Error:
            continue
    return files


#: Of a profile; the farm keeps up to a few MB of what a pass puts out.
MOST_PROFILE_BYTES = 16 * 1024 * 1024
LONGEST_OPERATOR = 60
#: Of those that took most time, and of those that are named in a proof.
_MOST_OPERATORS, _OPERATORS_SHOWN = 12, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTime:
    """The time of all nodes of one operator in one inference."""

    operator: str
    #: How many nodes there are, or how often they are executed.
    count: int
    #: All of them together.
    ms: float


def printable_operator(text: str) -> str:
    """Return the name of an operator as a profile has it, as text that a page can show."""
    return "".join(letter for letter in text[:LONGEST_OPERATOR] if letter.isprintable())


def slowest_operators(operators: Iterable[OperatorTime]) -> list[OperatorTime]:
    """Return operators by the time that they took, the most first."""
    return sorted(operators, key=lambda each: (-each.ms, each.operator))


def operators_text(count_by_operator: Mapping[str, int]) -> str:
    """Return those that are there most often: `Conv x52, Add x10, Clip x7, ...`."""
    shown = sorted(count_by_operator.items(), key=lambda item: (-item[1], item[0]))
    words = [f"{operator} x{count}" for operator, count in shown[:_OPERATORS_SHOWN]]
    return ", ".join([*words, "..."] if len(shown) > _OPERATORS_SHOWN else words)


def operator_metrics(operators: Iterable[OperatorTime]) -> list[Metric]:
    """Return the times of those operators that took most of it: `op Conv x52`."""
    slowest = slowest_operators(operators)[:_MOST_OPERATORS]
    ms_by_name = {f"op {each.operator} x{each.count}": each.ms for each in slowest}
    return [Metric(name=name, value=ms, unit="ms", better=Better.LOWER) for name, ms in ms_by_name.items()]
