"""A program that wants to outlive its run and to write into the next one's files.

    python escapee.py NAME FILE RUNS

It leaves its session, its folder and its parents, refuses to be ended politely, takes NAME, says in FILE
which process it is, and from then on appends to the output of each further run in the folder RUNS. It ends
when FILE is removed, or after a minute.
"""

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from shlex import join

#: What a process's name may be: 15 bytes. This one reads like the end of a name and the fields after it.
NAME = ") S 1 1 1 (\\ x"
#: Linux: include/uapi/linux/prctl.h.
_PR_SET_NAME = 15
FORGED = "forged\n"


def escape_command(file: Path, runs: Path) -> str:
    """Return a shell command that starts it without the run's environment, and waits until it is away."""
    words = ["env", "-i", sys.executable, "-I", "-S", __file__, NAME, str(file), str(runs)]
    return f"setsid {join(words)} & until [ -s {join([str(file)])} ]; do sleep 0.02; done"


def _detach() -> None:
    for _ in range(2):
        if os.fork():
            os._exit(0)
        with suppress(PermissionError):
            os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)


def main(name: str, file: Path, runs: Path) -> None:
    """Escape, and write into what comes."""
    known = set(runs.iterdir())
    _detach()
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)
    file.write_text(str(os.getpid()))
    end_s = time.monotonic() + 60
    while file.exists() and time.monotonic() < end_s:
        for output in runs.glob("*/stdout"):
            if output.parent not in known:
                with suppress(OSError), output.open("a") as sink:
                    sink.write(FORGED)
        time.sleep(0.01)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
