"""How a command that fails ends: a sentence, a hint, and an exit code that says whose doing it was."""

from typing import assert_never

from farm.cli.output import talk
from farm.core.errors import Blame, FarmError


def report(error: FarmError) -> int:
    """Say what went wrong and what to do about it; the exit code says whose doing it was."""
    talk(f"error: {error.message}")
    talk(f"hint: {error.hint}")
    return exit_code(error.blame)


def exit_code(blame: Blame) -> int:
    """1 is left to bugs of ours, and 2 is also what a wrong option exits with."""
    match blame:
        case Blame.USER:
            return 2
        case Blame.VARIANT:
            return 3
        case Blame.DEVICE:
            return 4
        case Blame.HOST:
            return 5
        case Blame.FARM:
            return 6
        case _:
            assert_never(blame)
