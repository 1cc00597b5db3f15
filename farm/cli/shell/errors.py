"""Errors of commands: a message, a hint and an exit code."""

import errno
import os
import re
from collections.abc import Mapping
from typing import Any

import typer

from farm.cli.shell.output import print_notice
from farm.core.base.spec_errors import closest_name
from farm.core.errors import EXIT_CODES, FarmError, FarmUnreachable, HostDiskFull, InvalidInput

_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def report_error(error: FarmError) -> int:
    """Print the error and its hint; return the exit code for its blame, or that of a farm out of reach."""
    print_notice(f"error: {error.message}")
    print_notice(f"hint: {error.hint}")
    return EXIT_CODES["unreachable"] if isinstance(error, FarmUnreachable) else error.blame.exit_code


def translate_system_error(error: OSError) -> FarmError | None:
    """Translate a missing permission or a full disk into a farm error; None for other system errors."""
    reason = (error.strerror or "").lower()
    if error.errno in _NOT_ALLOWED and error.filename is not None:
        return InvalidInput(
            f"{os.fsdecode(error.filename)}: {reason}",
            hint="run the command as a user with permission, or use another path",
        )
    if error.errno in _NO_SPACE:
        path = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return HostDiskFull(f"{path}{reason}", hint="free some disk space where this command writes to")
    return None


#: The base class of typer's usage errors. BadParameter is the only one that typer exports; whether they are
#: of a vendored or the installed click depends on typer's version.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

#: A hint lists the commands of a group up to this number; for more it names the help.
_COMMANDS_SHOWN = 9


def usage_error(error: Any) -> InvalidInput | None:
    """Return a usage error as a farm error; None if the help was shown instead."""
    message = error.format_message().strip().rstrip(".")
    if not message:
        return None
    message = message[0].lower() + message[1:]
    help_of = f"`{error.ctx.command_path if error.ctx else 'farm'} -h`"
    param = getattr(error, "param", None)
    if param is not None:
        hint = (getattr(param, "help", None) or "").rstrip(".") or f"{help_of} describes it"
        problem = _problem_text(error)
        return InvalidInput(f"{_name(param)}{problem}", hint=_choice_hint(problem) or hint)
    if option := getattr(error, "option_name", None):
        possible = {name.lstrip("-"): name for name in getattr(error, "possibilities", None) or ()}
        meant = closest_name(option.lstrip("-"), possible)
        hint = f"did you mean {possible[meant]}?" if meant else f"{help_of} lists the options"
        return InvalidInput(
            f"there is no option {option}" if hasattr(error, "possibilities") else message, hint=hint
        )
    commands = getattr(error.ctx and error.ctx.command, "commands", {})
    listing = _command_list(error.ctx.command_path, commands) if 0 < len(commands) <= _COMMANDS_SHOWN else ""
    return InvalidInput(message, hint=listing or f"{help_of} shows the usage")


def _choice_hint(message: str) -> str | None:
    """Return the choice that is like the one that was typed; None without one."""
    typed, is_choice, choices = message.partition(" is not one of ")
    quoted = re.compile(r"'([^']*)'")
    meant = closest_name(quoted.findall(typed)[-1], quoted.findall(choices)) if is_choice else None
    return f"did you mean {meant}?" if meant else None


def _name(param: Any) -> str:
    """Return `--rounds`, or the name of an argument in the help."""
    if param.param_type_name == "option":
        return str(max(param.opts, key=len))
    return _metavar(param)


def _metavar(param: Any) -> str:
    return str(param.metavar or param.name.upper()).strip("[]")


def _problem_text(error: Any) -> str:
    if hasattr(error, "param_type"):
        return " is missing"
    cause = error.__cause__
    errors = cause.errors() if hasattr(cause, "errors") else ()
    return f": {_value_error_text(errors[0]) if errors else error.message}"


def _value_error_text(error: Mapping[str, Any]) -> str:
    """Return the message of a pydantic error in words for users."""
    given, limits = error["input"], error.get("ctx", {})
    match error["type"]:
        case "int_parsing" | "int_parsing_size" | "int_from_float" | "int_type":
            return f"{given!r} is not a whole number"
        case "greater_than_equal":
            return f"{given} is less than {limits['ge']}"
        case "less_than_equal":
            return f"{given} is more than {limits['le']}"
        case "less_than":
            return f"{given} is not less than {limits['lt']}"
        case _:
            return str(limits.get("error", error["msg"])).rstrip(".")


def _command_list(path: str, commands: Mapping[str, Any]) -> str:
    """Return `farm explain cell ID, farm explain job ID`."""
    return ", ".join(" ".join([path, name, *_required_words(command)]) for name, command in commands.items())


def _required_words(command: Any) -> list[str]:
    return [
        _metavar(param) for param in command.params if param.param_type_name == "argument" and param.required
    ]
