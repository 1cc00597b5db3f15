"""Check in a separate process that torch can be imported, while other checks run."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from farm.core.operations.diagnostic import Diagnostic, ok, warning

#: An import takes 3 to 6 s of CPU time; a busier machine is not waited for.
_DEADLINE_S = 20.0

Process = subprocess.Popen[str]


@contextmanager
def import_process(module: str = "farm.variants.networks") -> Iterator[Process]:
    """Import a module in a process, which is ended with the block."""
    # In a process, as a torch build for another CPU ends by a signal, and loading takes seconds.
    command = [sys.executable, "-c", f"import {module}"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def diagnose_torch(process: Process, *, deadline_s: float = _DEADLINE_S) -> Diagnostic:
    """Check that this machine can build variants; nothing else needs torch."""
    try:
        _, stderr = process.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        hint = "repeat it when this machine is less busy: farm doctor --farm"
        return warning("torch", f"the import had not ended after {deadline_s:g} s", hint)
    return check_torch(None if process.returncode == 0 else _failure_reason(stderr, process.returncode))


def check_torch(error: str | None) -> Diagnostic:
    """Return the diagnostic for the error of an import; None means success."""
    if error is None:
        return ok("torch", "can be imported: `farm variant build` works here")
    hint = "`make install` installs it; measuring files that were built elsewhere does not need it"
    return warning("torch", f"cannot be imported ({error}): `farm variant build` does not work here", hint)


def _failure_reason(stderr: str, exit_code: int) -> str:
    lines = stderr.strip().splitlines()
    return lines[-1] if lines else f"exit code {exit_code}"
