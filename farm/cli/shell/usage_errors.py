"""What was typed wrong, told as every other error is: a sentence, and a hint."""

from collections.abc import Mapping
from typing import Any

import typer

from farm.core.errors import InvalidInput

#: All of typer's errors of usage descend from it. This is the only one of them that typer exports, and which
#: click they belong to, its own or the installed one, depends on its version.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

#: A group with more commands than this has them listed by its help.
_COMMANDS_SHOWN = 9


def usage_error(error: Any) -> InvalidInput | None:
    """The error of the farm that an error of usage is; None when it was help that was shown."""
    message = error.format_message().strip().rstrip(".")
    if not message:
        return None
    message = message[0].lower() + message[1:]
    help_of = f"`{error.ctx.command_path if error.ctx else 'farm'} -h`"
    param = getattr(error, "param", None)
    if param is not None:
        hint = (getattr(param, "help", None) or "").rstrip(".") or f"{help_of} says what it is"
        return InvalidInput(f"{_name(param)}{_problem_text(error)}", hint=hint)
    if option := getattr(error, "option_name", None):
        meant = ", ".join(getattr(error, "possibilities", None) or ())
        hint = f"did you mean {meant}?" if meant else f"{help_of} lists what there is"
        return InvalidInput(f"there is no option {option}" if _is_unknown(error) else message, hint=hint)
    commands = getattr(error.ctx and error.ctx.command, "commands", {})
    known = _command_list(error.ctx.command_path, commands) if 0 < len(commands) <= _COMMANDS_SHOWN else ""
    return InvalidInput(message, hint=known or f"{help_of} shows how it is used")


def _is_unknown(error: Any) -> bool:
    return hasattr(error, "possibilities")


def _name(param: Any) -> str:
    """`--rounds`, or what the help calls an argument."""
    if param.param_type_name == "option":
        return str(max(param.opts, key=len))
    return _metavar(param)


def _metavar(param: Any) -> str:
    return str(param.metavar or param.name.upper()).strip("[]")


def _problem_text(error: Any) -> str:
    if hasattr(error, "param_type"):
        return " is missing"
    cause = error.__cause__
    found = cause.errors() if hasattr(cause, "errors") else ()
    return f": {_value_error_text(found[0]) if found else error.message}"


def _value_error_text(found: Mapping[str, Any]) -> str:
    """What a value is not, by the kind that pydantic gives: its own words are for programmers."""
    given, limits = found["input"], found.get("ctx", {})
    match found["type"]:
        case "int_parsing" | "int_parsing_size" | "int_from_float" | "int_type":
            return f"{given!r} is no whole number"
        case "greater_than_equal":
            return f"{given} is less than {limits['ge']}"
        case "less_than_equal":
            return f"{given} is more than {limits['le']}"
        case "less_than":
            return f"{given} is not less than {limits['lt']}"
        case _:
            return str(limits.get("error", found["msg"])).rstrip(".")


def _command_list(path: str, commands: Mapping[str, Any]) -> str:
    """`farm explain cell ID, farm explain job ID`."""
    return ", ".join(" ".join([path, name, *_required_words(command)]) for name, command in commands.items())


def _required_words(command: Any) -> list[str]:
    return [
        _metavar(param) for param in command.params if param.param_type_name == "argument" and param.required
    ]
