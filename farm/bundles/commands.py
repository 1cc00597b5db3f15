"""Commands of a build: what they are called when they fail, and tools that have to be here."""

import shutil
from collections.abc import Callable, Sequence
from subprocess import CompletedProcess

from farm.core.errors import InvalidInput

Run = Callable[[Sequence[str]], "CompletedProcess[str]"]
Say = Callable[[str], None]

_MAX_SHOWN = 300


def run_step(run: Run, words: Sequence[str], *, failure: str, hint: str) -> str:
    """Run a command; return its standard output.

    Raises:
        InvalidInput: it failed; the message ends with the line that says why.
    """
    done = run(words)
    if done.returncode != 0:
        raise InvalidInput(f"{failure}: {reason(done)}", hint=hint)
    return done.stdout


def reason(done: "CompletedProcess[str]") -> str:
    """Return the line of a failed command's output that says why: the first error, else the last line."""
    lines = [line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line.lower() or line.startswith("E: ")]
    return (errors or lines[-1:] or [f"exit code {done.returncode}"])[0][:_MAX_SHOWN]


def require_tool(name: str, hint: str, *, find: Callable[[str], str | None] = shutil.which) -> None:
    """Check that a program is on the path.

    Raises:
        InvalidInput: it is not.
    """
    if find(name) is None:
        raise InvalidInput(f"there is no {name} on this machine", hint=hint)
