"""A program of the user's own as a generic harness: its definition, and what keeps its name honest."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farm.cli.files.program_upload import add_program
from farm.cli.shell.output import print_notice
from farm.core.errors import InvalidInput, NotFound
from farm.core.programs.bundle import ARGUMENTS_WORD, PLAIN_COMMAND, PROGRAM_WORD
from farm.core.programs.selection import ANY_ABI
from farm.wire.documents.files.harness_definition import harness_definition

if TYPE_CHECKING:
    from farm.client.farm_client import FarmClient

#: Holds the whole command line, so that a program with other arguments has a history of its own.
ARGUMENTS_FLAG = "arguments"

_NO_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 64
#: The shell that every phone has; most keep it elsewhere than scripts say.
_SHELL = re.compile(rb"#!\s*(?:/[\w/.-]*/)?(?:env\s+)?(?:sh|mksh)\s*$")


def register_program(
    farm: "FarmClient", program: Path, name: str | None, *, time: str | None, metrics: Sequence[str]
) -> str:
    """Register a program, and give back the name of its harness.

    Raises:
        InvalidInput: the program cannot be run, its name is taken by something else, or what reads its output
            cannot be.
    """
    name = name or _name_of(program)
    data = definition(name, time=time, metrics=metrics)
    checked = harness_definition(data).model_dump(mode="json")
    _check_name(farm, name)
    first = _first_line(program)
    others = [each.abi for each in farm.programs() if each.name == name and each.in_use]
    if first.startswith(b"#!"):
        _check_script(name, [abi for abi in others if abi != ANY_ABI])
    command = ("sh", PROGRAM_WORD, ARGUMENTS_WORD) if _SHELL.match(first) else PLAIN_COMMAND
    view = add_program(farm, name, program, command=command, definition=checked)
    for note in view.notes:
        print_notice(f"warning: {note.message}\nhint: {note.hint}")
    for abi in others:
        if abi != view.program.abi:
            phones = "phones of other ABIs" if abi == ANY_ABI else f"phones of {abi}"
            print_notice(f"note: {phones} run what was registered as `{name}` for them before")
    return name


def definition(name: str, *, time: str | None = None, metrics: Sequence[str] = ()) -> dict[str, Any]:
    """What is said of the program: without `time` the whole process is timed."""
    data: dict[str, Any] = {
        "name": name,
        "arguments": [f"${{{ARGUMENTS_FLAG}}}"],
        "flags": {ARGUMENTS_FLAG: {"default": "", "split": True, "help": "the command line"}},
        "metrics": dict(map(_metric, metrics)),
        "stream": "both",
    }
    if time is None:
        return data
    return {**data, "samples": _time(time), "clock_covers": f"what {name} itself times and prints"}


def _time(text: str) -> dict[str, str]:
    place, _, unit = text.strip().rpartition(" ")
    if not place or _is_place(unit):
        hint = "write it like --time 'took ([0-9.]+) ms' or --time '$.runs[*].time ms'"
        raise InvalidInput(f"--time {text!r} has no unit, or no place", hint=hint)
    return {**_place(place), "unit": unit}


def _metric(text: str) -> tuple[str, dict[str, str]]:
    name, equals, rest = text.partition("=")
    words = rest.strip().rsplit(" ", 2)
    if not equals or len(words) < 3 or _is_place(words[1]):
        hint = "write it like --metric 'memory=peak ([0-9.]+) MB lower': NAME=REGEX UNIT lower|higher"
        raise InvalidInput(f"--metric {text!r} is not complete", hint=hint)
    place, unit, better = words
    return name.strip(), {**_place(place), "unit": unit, "better": better}


def _is_place(word: str) -> bool:
    """Whether a word that should be a unit is the end of a place, whose unit was left out."""
    return "(" in word or ")" in word


def _place(text: str) -> dict[str, str]:
    """No regular expression matches anything behind a `$` that `.` or `[` follows."""
    place = text.strip()
    return {"json" if place.startswith(("$.", "$[")) else "pattern": place}


def _name_of(program: Path) -> str:
    name = _NO_NAME.sub("_", program.name).lstrip("._-")[:_LONGEST_NAME]
    if not name:
        raise InvalidInput(f"{program.name!r} gives no name", hint="say one: --harness NAME")
    return name


def _first_line(program: Path) -> bytes:
    try:
        with program.open("rb") as file:
            return file.readline(256).rstrip(b"\r\n")
    except OSError as error:
        raise InvalidInput(f"{program}: {error.strerror}", hint="name a binary or a script") from error


def _check_name(farm: "FarmClient", name: str) -> None:
    try:
        known = farm.harness(name).definition
    except NotFound:
        return
    if known is None or set(known.get("flags", {})) != {ARGUMENTS_FLAG}:
        whose = "of the farm's own" if known is None else "with a definition of its own"
        hint = (
            f"give yours another name with --harness, or run that one: farm run --harness {shlex.quote(name)}"
        )
        raise InvalidInput(f"`{name}` is a harness {whose}", hint=hint)


def _check_script(name: str, abis: Sequence[str]) -> None:
    """Phones take a binary of their ABI before a script."""
    if abis:
        raise InvalidInput(
            f"phones of {', '.join(abis)} would run the binary registered as `{name}` before this script",
            hint="give the script another name with --harness",
        )
