"""Whom to blame for a failure, and the exit code that follows from it."""

from enum import StrEnum


class Blame(StrEnum):
    """The party at fault; retry, health, HTTP status and exit code follow from it."""

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

    @property
    def exit_code(self) -> int:
        """Return the exit code of a command. 1 is left to bugs; 2 is also used for wrong options."""
        return EXIT_CODES[self]


#: By blame, by answer of a gate, and where no farm answers: the only table of exit codes.
EXIT_CODES = {"user": 2, "variant": 3, "device": 4, "host": 5, "farm": 6}
EXIT_CODES |= {"passed": 0, "slower": 7, "undecided": 8, "not_measured": 9, "unreachable": 10}
