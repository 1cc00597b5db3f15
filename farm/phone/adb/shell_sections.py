"""Several commands in one shell call: a line before each output separates them."""

from collections.abc import Mapping

from farm.phone.adb.decoding import lines

_MARK = "@@benchfarm@@ "


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
