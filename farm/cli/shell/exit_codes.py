"""How a command that fails ends: a sentence, a hint, and an exit code that says whose doing it was."""

import errno
import os
from typing import assert_never

from farm.cli.shell.output import print_notice
from farm.core.errors import Blame, FarmError, HostDiskFull, InvalidInput

_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def report_error(error: FarmError) -> int:
    """Say what went wrong and what to do about it; the exit code says whose doing it was."""
    print_notice(f"error: {error.message}")
    print_notice(f"hint: {error.hint}")
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


def translate_system_error(error: OSError) -> FarmError | None:
    """What the machine keeps a command from, as an error of the farm; None of what may be a bug of ours."""
    reason = (error.strerror or "").lower()
    if error.errno in _NOT_ALLOWED and error.filename is not None:
        return InvalidInput(
            f"{os.fsdecode(error.filename)}: {reason}",
            hint="run the command as somebody who may do that, or name another place",
        )
    if error.errno in _NO_SPACE:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return HostDiskFull(f"{where}{reason}", hint="make room where this command writes to")
    return None
