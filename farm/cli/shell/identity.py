"""The name of the caller, and requests in that name."""

import getpass
import os
import re
from typing import TYPE_CHECKING, TypeVar

from farm.cli.shell.output import print_notice
from farm.core.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic import ValidationError

    from farm.wire.documents.devices import DeviceChange, OperatorRequest
    from farm.wire.documents.hosts import HostChange

_MAX_SHOWN = 80
_MAX_NAME = 64
_TAG_RULE = (
    "a tag",
    "tags are up to 64 letters, digits, `.`, `_`, `-`, the first a letter or digit; 32 at once",
)
#: Name and rule of each field of a request, for error messages.
RULE_BY_FIELD = {
    "by": ("your name (FARM_USER)", "set FARM_USER to a name of up to 64 characters without blanks"),
    "reason": ("a reason", "a reason has 1 to 500 characters"),
    "label": (
        "a label",
        "labels are up to 64 letters, digits, `.`, `_`, `-` and blanks, with a letter or digit at both ends",
    ),
    "add": _TAG_RULE,
    "remove": _TAG_RULE,
    "max_runs": ("the runs of a host", "from 1 to 10000, or --none"),
    "for_s": ("the seconds of a reservation", "a reservation lasts from 1s to 14d"),
}

A = TypeVar("A", bound="OperatorRequest")


def require_identity() -> str:
    """Return FARM_USER, else the name of the current user. An access token overrides it."""
    return os.environ.get("FARM_USER") or getpass.getuser()


def find_identity() -> str | None:
    """Return the name of the caller; None if it is unknown or not a valid name."""
    from farm.wire.documents.devices import PERSON

    try:
        name = require_identity()
    except (KeyError, OSError):
        return None
    return name if re.fullmatch(PERSON, name) and len(name) <= _MAX_NAME else None


def operator_request(kind: type[A], **fields: object) -> A:
    """Return a request in the name of the caller.

    Raises:
        InvalidInput: a value is not valid.
    """
    from pydantic import ValidationError

    try:
        return kind.model_validate({"by": require_identity(), **fields})
    except ValidationError as error:
        raise _invalid_field(error) from error


def print_change(change: "DeviceChange | HostChange") -> None:
    """Print what a request has changed."""
    print_notice(f"{change.message}." if change.changed else f"Nothing changed: {change.message}.")


def _invalid_field(error: "ValidationError") -> InvalidInput:
    first = error.errors(include_url=False)[0]
    if not first["loc"]:
        return InvalidInput(first["msg"].removeprefix("Value error, "), hint="give each value once")
    field, rule = RULE_BY_FIELD[str(first["loc"][0])]
    value = repr(first["input"])
    value = value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}..."
    return InvalidInput(f"{field} cannot be {value}", hint=rule)
