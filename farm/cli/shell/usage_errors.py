"""Usage errors as farm errors: a message and a hint."""

from collections.abc import Mapping
from typing import Any

import typer

from farm.core.errors import InvalidInput

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
        return InvalidInput(f"{_name(param)}{_problem_text(error)}", hint=hint)
    if option := getattr(error, "option_name", None):
        meant = ", ".join(getattr(error, "possibilities", None) or ())
        hint = f"did you mean {meant}?" if meant else f"{help_of} lists the options"
        return InvalidInput(f"there is no option {option}" if _is_unknown(error) else message, hint=hint)
    commands = getattr(error.ctx and error.ctx.command, "commands", {})
    listing = _command_list(error.ctx.command_path, commands) if 0 < len(commands) <= _COMMANDS_SHOWN else ""
    return InvalidInput(message, hint=listing or f"{help_of} shows the usage")


def _is_unknown(error: Any) -> bool:
    return hasattr(error, "possibilities")


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
