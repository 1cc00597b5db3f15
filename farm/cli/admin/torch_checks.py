"""Whether torch can be imported, asked of a process of its own while other things are looked at."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from farm.core.operations.diagnostic import Diagnostic, ok, warning

#: An import takes 3 to 6 s of CPU time; a machine that has less to spare is not waited for.
_DEADLINE_S = 20.0

Process = subprocess.Popen[str]


@contextmanager
def import_process(module: str = "farm.variants.networks") -> Iterator[Process]:
    """Have a process import a module; it is gone after the block."""
    # A build for another CPU ends by a signal, and torch takes its time to load.
    command = [sys.executable, "-c", f"import {module}"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def diagnose_torch(process: Process, *, deadline_s: float = _DEADLINE_S) -> Diagnostic:
    """Whether this machine can build variants; nothing else needs torch."""
    try:
        _, said = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        hint = "look again when this machine has less to do: farm doctor --farm"
        return warning("torch", f"its import had not ended after {deadline_s:g} s", hint)
    return check_torch(None if process.returncode == 0 else _failure_reason(said, process.returncode))


def check_torch(error: str | None) -> Diagnostic:
    """Whether what its import said lets variants be built."""
    if error is None:
        return ok("torch", "it imports: `farm variants build` can work here")
    hint = "`make install` installs it; files that were built elsewhere are measured without it"
    return warning("torch", f"it does not import ({error}): `farm variants build` cannot work here", hint)


def _failure_reason(said: str, exit_code: int) -> str:
    lines = said.strip().splitlines()
    return lines[-1] if lines else f"exit code {exit_code}"
