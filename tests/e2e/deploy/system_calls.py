"""Run a command under the `SystemCallFilter=` of a unit, as systemd does: its lines, `--`, the command."""

import ctypes
import os
import subprocess
import sys
from errno import EPERM
from functools import cache

_LIBRARY = "libseccomp.so.2"
#: Of seccomp.h.
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def allowed_calls(words: list[str]) -> set[str]:
    """Return the system calls that a filter leaves, in the order of its lines; `~` takes away."""
    allowed: set[str] = set()
    for line in words:
        named = {call for word in line.removeprefix("~").split() for call in _calls(word)}
        allowed = allowed - named if line.startswith("~") else allowed | named
    # systemd adds them to each list of what is allowed.
    return allowed | _calls("@default")


@cache
def _calls(word: str) -> frozenset[str]:
    if not word.startswith("@"):
        return frozenset({word})
    command = ["systemd-analyze", "syscall-filter", word]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    names = (line.strip() for line in listed)
    return frozenset(call for name in names if name and name[0] != "#" for call in _calls(name))


def apply(calls: set[str]) -> None:
    """Let this process, and all that it starts, make these calls only; others fail with EPERM."""
    library = ctypes.CDLL(_LIBRARY)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_rule_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    context = library.seccomp_init(_ERRNO | EPERM)
    for call in calls:
        # Negative for calls of other architectures.
        number = library.seccomp_syscall_resolve_name(call.encode())
        if number >= 0 and library.seccomp_rule_add(context, _ALLOW, number, 0) != 0:
            sys.exit(f"{call}: no rule can be made")
    if library.seccomp_load(context) != 0:
        sys.exit("the kernel takes no filter")


if __name__ == "__main__":
    at = sys.argv.index("--")
    apply(allowed_calls(sys.argv[1:at]))
    os.execvp(sys.argv[at + 1], sys.argv[at + 1 :])
