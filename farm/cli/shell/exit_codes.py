"""Error messages and exit codes of failed commands."""

import errno
import os
from typing import assert_never

from farm.cli.shell.output import print_notice
from farm.core.errors import Blame, FarmError, HostDiskFull, InvalidInput

_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def report_error(error: FarmError) -> int:
    """Print the error and its hint; return the exit code for its blame."""
    print_notice(f"error: {error.message}")
    print_notice(f"hint: {error.hint}")
    return exit_code(error.blame)


def exit_code(blame: Blame) -> int:
    """Return the exit code for a blame. Code 1 is for bugs of the farm; 2 is also used for wrong options."""
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
