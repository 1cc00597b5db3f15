"""Files that a tool writes: they come back as base64 behind what it printed."""

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
