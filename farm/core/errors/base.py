"""Base class of the error tree: blame, a stable code, and a hint."""

from enum import StrEnum
from typing import ClassVar


class Blame(StrEnum):
    """Whose doing it was; retry, health, HTTP status and exit code follow from it."""

    #: The person who asked: the request itself is wrong.
    USER = "user"
    #: The model file, or the harness running it.
    VARIANT = "variant"
    #: The phone.
    DEVICE = "device"
    #: The host the device is attached to, or the agent on it.
    HOST = "host"
    #: The farm.
    FARM = "farm"


class FarmError(Exception):
    """Anything that goes wrong in a way we have a name for.

    `code` is stable and documented; `hint` says what to do next, for a person.
    """

    code: ClassVar[str] = "farm.error"
    blame: ClassVar[Blame] = Blame.FARM
    transient: ClassVar[bool] = False
    default_hint: ClassVar[str] = "look at the farm's log, then report this"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint
