"""The init of a virtual phone: the parent of all that lost their own on it, as process 1 on Android.

On a phone, what adb started descends from adbd, and what outlived it has process 1 as its parent. A virtual
phone shares its machine with others, so a process of its own takes that part. Its child is the phone, which
is its adbd. It lasts as long as anything on the phone does: a phone that is started again finds it.
"""

import ctypes
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from agents.host.process import start_ticks, stat_fields

#: Tells commands on the phone which processes are its init, each as PID:TICKS, where TICKS is its start.
INIT_VARIABLE = "BENCHFARM_INIT"
INIT_FILE = "init"
#: Linux: include/uapi/linux/prctl.h.
_PR_SET_CHILD_SUBREAPER = 36


def start_init(state: Path) -> int | None:
    """Become the init of the phone in a folder, and start the phone as its child.

    Return None in that child, with the inits that live in its environment. In the init, return the exit code
    of the child once everything on the phone has ended.

    Raises:
        OSError: this kernel gives no process the orphans of others.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    state.mkdir(parents=True, exist_ok=True)
    earlier = [word for word in _recorded(state) if _is_alive(word)]
    words = " ".join([*earlier, f"{os.getpid()}:{start_ticks(os.getpid())}"])
    draft = state / f"{INIT_FILE}.new"
    draft.write_text(words)
    draft.replace(state / INIT_FILE)
    device = os.fork()
    if device == 0:
        os.environ[INIT_VARIABLE] = words
        return None
    return _collect(device)


def _collect(device: int) -> int:
    """Wait until there is no child any more; return the exit code of `device`."""

    def forward(number: int, _: object) -> None:
        with suppress(ProcessLookupError):
            os.kill(device, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, forward)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    code = 0
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return code
        if pid == device:
            # Its number may become another process's.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            code = os.waitstatus_to_exitcode(status)


def below_init(environment: Mapping[str, str]) -> Iterator[int]:
    """Yield what lives on the phone below its inits, this process and its inits not among them."""
    inits = {
        int(word.partition(":")[0]) for word in environment.get(INIT_VARIABLE, "").split() if _is_alive(word)
    }
    parent_by_pid = dict(_parents())
    for pid in parent_by_pid:
        ancestor = pid
        while ancestor in parent_by_pid and ancestor not in inits:
            ancestor = parent_by_pid[ancestor]
        if ancestor in inits and pid not in inits and pid != os.getpid():
            yield pid


def _parents() -> Iterator[tuple[int, int]]:
    for name in os.listdir("/proc"):  # noqa: PTH208 - ten times as quick
        fields = stat_fields(int(name)) if name.isdigit() else []
        if fields and fields[0] not in "ZX":
            yield int(name), int(fields[1])


def _recorded(state: Path) -> list[str]:
    try:
        return (state / INIT_FILE).read_text().split()
    except OSError:
        return []


def _is_alive(word: str) -> bool:
    pid, _, ticks = word.partition(":")
    return pid.isdigit() and ticks.isdigit() and start_ticks(int(pid)) == int(ticks)
