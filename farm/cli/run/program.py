"""Register a program of the user as a generic harness, and check its name."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from farm.cli.files.program_upload import add_program, matrix_name
from farm.cli.shell.output import print_notice
from farm.client.farm_client import FarmClient
from farm.core.errors import InvalidInput, NotFound
from farm.core.operations.role import Role, is_permitted
from farm.core.programs.abi import ANY_ABI
from farm.core.programs.bundle import ARGUMENTS_WORD, PLAIN_COMMAND, PROGRAM_WORD
from farm.core.programs.harness_name import base_name, own_name
from farm.wire.documents.files.harness_definition import harness_definition

#: Contains the whole command line, so that other arguments make another series.
ARGUMENTS_FLAG = "arguments"

#: The shell that every device has, mostly at another path than scripts name.
_SHELL = re.compile(rb"#!\s*(?:/[\w/.-]*/)?(?:env\s+)?(?:sh|mksh)\s*$")


def register_program(
    farm: FarmClient, program: Path, name: str | None, *, time: str | None, metrics: Sequence[str]
) -> str:
    """Register a program, and return the name of its harness.

    Raises:
        InvalidInput: the program cannot be run, its name is used by another harness, or the patterns for its
            output are not valid.
    """
    name = name or _usual_name(farm, program)
    data = definition(base_name(name), time=time, metrics=metrics)
    checked = harness_definition(data).model_dump(mode="json")
    _check_name(farm, name)
    first = _first_line(program)
    others = [view.abi for view in farm.programs() if view.name == name and view.in_use]
    binary_abis = [abi for abi in others if abi != ANY_ABI]
    if first.startswith(b"#!") and binary_abis:
        # Devices of its ABI would prefer the binary.
        raise InvalidInput(
            f"{', '.join(binary_abis)} devices would run the binary registered as `{name}` before this"
            " script",
            hint="give the script another name with --harness",
        )
    command = ("sh", PROGRAM_WORD, ARGUMENTS_WORD) if _SHELL.match(first) else PLAIN_COMMAND
    view = add_program(farm, name, program, command=command, definition=checked)
    for note in view.notes:
        print_notice(f"warning: {note.message}\nhint: {note.hint}")
    for abi in others:
        if abi != view.program.abi:
            devices = "devices of other ABIs" if abi == ANY_ABI else f"{abi} devices"
            print_notice(f"note: {devices} run the program that was registered as `{name}` for them before")
    return name


def definition(name: str, *, time: str | None = None, metrics: Sequence[str] = ()) -> dict[str, Any]:
    """Return the definition of the program; without `time` the whole process is timed."""
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
    """Return whether a word is the end of a pattern instead of a unit."""
    return "(" in word or ")" in word


def _place(text: str) -> dict[str, str]:
    """Return a JSON path or a pattern; no regular expression matches after `$.` or `$[`."""
    place = text.strip()
    return {"json" if place.startswith(("$.", "$[")) else "pattern": place}


def _usual_name(farm: FarmClient, program: Path) -> str:
    """Return the file's name, in the caller's own name space where shared names are for operators."""
    name, caller = _name_of(program), farm.caller()
    if is_permitted(caller.role, Role.OPERATOR):
        return name
    return own_name(caller.name, name) or name


def _name_of(program: Path) -> str:
    if name := matrix_name(program.name):
        return name
    raise InvalidInput(f"{program.name!r} gives no name", hint="name it with --harness NAME")


def _first_line(program: Path) -> bytes:
    try:
        with program.open("rb") as file:
            return file.readline(256).rstrip(b"\r\n")
    except OSError as error:
        raise InvalidInput(f"{program}: {error.strerror}", hint="name a binary or a script") from error


def _check_name(farm: FarmClient, name: str) -> None:
    try:
        registered = farm.harness(name).definition
    except NotFound:
        return
    if registered is None or set(registered.get("flags", {})) != {ARGUMENTS_FLAG}:
        kind = "built-in harness" if registered is None else "harness with its own definition"
        hint = (
            f"give yours another name with --harness, or run that one: farm run --harness {shlex.quote(name)}"
        )
        raise InvalidInput(f"`{name}` is a {kind}", hint=hint)
