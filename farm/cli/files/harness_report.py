"""Tables and reports of harnesses and their programs."""

import shlex
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farm.cli.shell.formatting import EMPTY_CELL, local_time_text, plural
from farm.cli.shell.tables import add_row, new_table
from farm.core.base.units import size_text
from farm.core.matrices.matrix import value_text
from farm.core.programs.bundle import PLAIN_COMMAND
from farm.core.programs.selection import ANY_ABI
from farm.wire.documents.files.programs import (
    AdapterView,
    FlagView,
    HarnessView,
    ProgramView,
    RegisteredProgramView,
)


def program_table(programs: Sequence[ProgramView]) -> Table:
    """Return a table of registered programs, with those in use marked."""
    table = new_table(names=("harness", "abi"), words=("program", "use"), numbers=("size", "digest"))
    for view in programs:
        numbers = (size_text(view.size_bytes), view.digest[:12])
        add_row(table, view.name, view.abi, _files(view), _use(view), *numbers)
    return table


def adapter_table(adapters: Sequence[AdapterView]) -> Table:
    """Return a table of the built-in adapters."""
    table = new_table(names=("adapter",), words=("formats", "backends", "ABIs"), numbers=("parser",))
    for view in adapters:
        programs = ", ".join(view.abis) or EMPTY_CELL
        words = (", ".join(view.formats), ", ".join(view.backends), programs)
        add_row(table, view.name, *words, str(view.parser_version))
    return table


def _files(view: ProgramView) -> str:
    others = len(view.files) - 1
    return f"{view.entry} and {plural(others, 'file')}" if others else view.entry


def harness_report(view: HarnessView) -> RenderableType:
    """Return the report of a harness."""
    kind = "generic" if view.definition is not None else "built-in adapter"
    model = "runs a model" if view.needs_model else "runs no model"
    formats = f", formats {', '.join(view.formats)}" if view.formats else ""
    facts = (
        f"{view.name}: {kind}, {model}{formats}, parser version {view.parser_version}",
        f"backends: {', '.join(view.backends)}",
        f"the clock covers: {view.clock_covers}",
    )
    parts: list[RenderableType] = [Text(fact) for fact in facts]
    if view.flags:
        parts += [Text(), _flag_table(view.flags)]
    if not view.programs:
        parts += [Text(), Text("no program is registered: `farm harness add` registers one")]
    for program in reversed(view.programs):
        parts += [Text(), Text("\n").join(map(Text, _program_lines(program)))]
    return Group(*parts)


def registered_lines(view: RegisteredProgramView) -> Iterator[str]:
    """Return what a registration changed, with its warnings."""
    program = view.program
    devices = "devices without a registered binary" if program.abi == ANY_ABI else f"{program.abi} devices"
    suffix = " (registered before)" if view.known else ""
    yield f"New matrices of {program.name} run {program.digest[:12]} on {devices}{suffix}."
    if view.replaces is not None:
        yield f"It replaces {view.replaces.digest[:12]} of {local_time_text(view.replaces.chosen_at)}."
    for note in view.notes:
        yield f"warning: {note.message}"
        yield f"hint: {note.hint}"


def _use(view: ProgramView) -> str:
    use = f"since {local_time_text(view.chosen_at)}" if view.in_use else "replaced"
    return f"{use}, expired" if view.expired else use


def _flag_table(flags: Sequence[FlagView]) -> Table:
    table = new_table(names=("flag", "default"), prose=("description",))
    for flag in flags:
        minimum = "" if flag.minimum is None else f" (at least {flag.minimum})"
        add_row(table, flag.name, value_text(flag.default) or EMPTY_CELL, f"{flag.help}{minimum}")
    return table


def _program_lines(view: ProgramView) -> Iterator[str]:
    yield f"{view.abi}: {view.digest}, {'in use ' if view.in_use else ''}{_use(view)}"
    for file in view.files:
        marks = [size_text(file.size_bytes), file.digest[:12]]
        marks += ["started"] if file.path == view.entry else ["executable"] if file.executable else []
        yield f"  {file.path}  {', '.join(marks)}"
    for name, value in view.env.items():
        yield f"  environment: {name}={value}"
    if view.command != PLAIN_COMMAND:
        # Placeholders are not quoted.
        yield f"  command: {' '.join(map(_quoted_word, view.command))}"
    if view.missing_flags:
        yield f"  missing flags: {', '.join(view.missing_flags)}"


def _quoted_word(word: str) -> str:
    return word if "${" in word else shlex.quote(word)
