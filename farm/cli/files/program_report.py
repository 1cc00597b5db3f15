"""Registered programs as the commands show them."""

from collections.abc import Iterator

from farm.cli.shell.output import out, print_json, print_notice
from farm.cli.shell.tables import Listing, name, number, prose
from farm.core.base.units import size_text
from farm.core.programs.abi import ANY_ABI
from farm.presentation.text import local_time_text, plural
from farm.wire.documents.files.programs import ProgramView, RegisteredProgramView

#: The registered programs.
program_table = Listing[ProgramView](
    name("harness", lambda view: view.name),
    name("abi", lambda view: view.abi),
    prose("program", lambda view: _files_text(view)),
    prose("use", lambda view: use_text(view)),
    number("size", lambda view: size_text(view.size_bytes)),
    number("digest", lambda view: view.digest[:12]),
)


def show_registered(view: RegisteredProgramView, *, as_json: bool) -> None:
    """Print a registration: the program, and what changed, with warnings."""
    if as_json:
        print_json(view)
    else:
        out().print(program_table([view.program]))
    for line in registered_lines(view):
        print_notice(line)


def registered_lines(view: RegisteredProgramView) -> Iterator[str]:
    """Return what a registration changed, with its warnings."""
    program = view.program
    devices = "devices without a registered binary" if program.abi == ANY_ABI else f"{program.abi} devices"
    suffix = " (registered before)" if view.was_registered else ""
    yield f"New matrices of {program.name} run {program.digest[:12]} on {devices}{suffix}."
    if view.replaces is not None:
        yield f"It replaces {view.replaces.digest[:12]} of {local_time_text(view.replaces.chosen_at)}."
    for note in view.notes:
        yield f"warning: {note.message}"
        yield f"hint: {note.hint}"


def use_text(view: ProgramView) -> str:
    """Return since when new matrices run a program, or that they do not."""
    use = f"since {local_time_text(view.chosen_at)}" if view.in_use else "replaced"
    return f"{use}, expired" if view.expired else use


def _files_text(view: ProgramView) -> str:
    others = len(view.files) - 1
    return f"{view.entry} and {plural(others, 'file')}" if others else view.entry
