"""The name of the caller, and requests in that name."""

import getpass
import os
import re
from typing import TYPE_CHECKING, TypeVar

from farm.cli.shell.output import print_notice

if TYPE_CHECKING:
    from farm.wire.documents.devices import DeviceChange, OperatorRequest
    from farm.wire.documents.hosts import HostChange

_MAX_NAME = 64

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

    from farm.wire.request_errors import invalid_field

    try:
        return kind.model_validate({"by": require_identity(), **fields})
    except ValidationError as error:
        raise invalid_field(error) from error


def print_change(change: "DeviceChange | HostChange") -> None:
    """Print what a request has changed."""
    print_notice(f"{change.message}." if change.changed else f"Nothing changed: {change.message}.")
