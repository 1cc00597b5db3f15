"""Environments of runtimes and tools: pinned packages in a folder each, created when a build needs them."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from farm.core.base.units import size_text
from farm.core.errors import Conflict, NotFound, VariantInvalid
from farm.variants.environments.locks import lock_file, wait_for_lock
from farm.variants.environments.pins import ENVIRONMENT_PINS, NEEDED_BYTES

#: Written last: a folder without it is what an interrupted creation left.
_COMPLETE = "complete"
#: What pip prints where it reaches no package index.
_UNREACHABLE = ("name resolution", "new connection", "Max retries", "timed out", "unreachable", "refused")

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A folder of the environments. `state`: `ready`, `incomplete`, or `outdated` where pins have changed."""

    name: str
    state: str
    size_bytes: int
    path: str


def run_command(words: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command with the user's settings of pip, and none of Python's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        words,
        env=kept,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def environments_dir() -> Path:
    """Return the folder of all environments (XDG base directories)."""
    home = os.environ.get("XDG_CACHE_HOME") or f"{os.environ.get('HOME', '/nonexistent')}/.cache"
    return Path(home) / "benchfarm" / "environments"


def environment_name(runtime: str) -> str:
    """Return the name of a runtime's environment: other pins and another Python make another one."""
    ingredients = json.dumps([ENVIRONMENT_PINS[runtime], sys.version_info[:2]])
    return f"{runtime}-{hashlib.sha256(ingredients.encode()).hexdigest()[:8]}"


@contextmanager
def environment_of(
    runtime: str,
    root: Path,
    say: Callable[[str], None],
    *,
    run: Run = run_command,
    free_bytes: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
) -> Iterator[Path]:
    """Yield the Python of a runtime's environment, and keep it from removal; create it where it is missing.

    Raises:
        InvalidInput: its folder cannot be written.
        VariantInvalid: it cannot be created.
    """
    folder = root / environment_name(runtime)

    def on_wait() -> None:
        say("waiting for another build that has its environment")

    with lock_file(folder) as lock:
        wait_for_lock(lock, fcntl.LOCK_SH, on_wait)
        while not _is_complete(folder):
            wait_for_lock(lock, fcntl.LOCK_EX, on_wait)
            if not _is_complete(folder):
                _check_space(runtime, root, free_bytes(root))
                _create(runtime, folder, say, run)
            wait_for_lock(lock, fcntl.LOCK_SH, on_wait)
        yield _python(folder)


def list_environments(root: Path) -> list[Environment]:
    """Return the environments that are there, by name."""
    if not root.is_dir():
        return []
    current = {environment_name(runtime) for runtime in ENVIRONMENT_PINS}
    return [
        Environment(
            name=folder.name, state=_state(folder, current), size_bytes=_size_of(folder), path=str(folder)
        )
        for folder in sorted(root.iterdir())
        if folder.is_dir()
    ]


def remove_environment(name: str, root: Path) -> None:
    """Delete an environment.

    Raises:
        NotFound: there is none of this name.
        Conflict: a build uses it, or creates it.
    """
    if name not in {each.name for each in list_environments(root)}:
        raise NotFound(f"there is no environment {name!r}", hint="`farm env list` lists them")
    folder = root / name
    with lock_file(folder) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Conflict(f"a build uses the environment {name}", hint="wait until it has ended") from error
        # First: what is left of an interrupted removal is incomplete.
        (folder / _COMPLETE).unlink(missing_ok=True)
        shutil.rmtree(folder)


def _create(runtime: str, folder: Path, say: Callable[[str], None], run: Run) -> None:
    if folder.exists():
        say("removing what an interrupted creation left")
        shutil.rmtree(folder)
    say("creating its environment")
    made = run([sys.executable, "-m", "venv", str(folder)])
    if made.returncode != 0:
        raise _error(
            runtime, made, "on Debian and Ubuntu, `apt install python3-venv` installs what is needed"
        )
    for step in ENVIRONMENT_PINS[runtime]:
        say(f"installing {', '.join(word.partition('==')[0] for word in step if '==' in word)}")
        installed = run([*_pip(folder), "install", "--only-binary=:all:", *map(_as_here, step)])
        if installed.returncode != 0:
            raise _error(runtime, installed, _install_hint(installed.stderr))
    (folder / _COMPLETE).touch()


def _pip(folder: Path) -> list[str]:
    return [str(_python(folder)), "-I", "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]


def _as_here(requirement: str) -> str:
    """Return the requirement of the very build that is installed here: for torch a CPU build stays one."""
    name, _, pinned = requirement.partition("==")
    try:
        here = version(name) if pinned else ""
    except PackageNotFoundError:
        return requirement
    return f"{name}=={here}" if here.startswith(f"{pinned}+") else requirement


def _error(runtime: str, ended: "subprocess.CompletedProcess[str]", hint: str) -> VariantInvalid:
    lines = [line.strip() for line in (ended.stderr or ended.stdout or "").splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    why = (errors or lines or [f"exit code {ended.returncode}"])[-1]
    return VariantInvalid(f"the environment of {runtime} cannot be created: {why[:300]}", hint=hint)


def _install_hint(stderr: str) -> str:
    if "No space left on device" in stderr:
        return "free some space, or set XDG_CACHE_HOME or TMPDIR to a folder of another disk"
    if any(word in stderr for word in _UNREACHABLE):
        return "pip reached no package index: check the network, and pip's settings by `pip config list`"
    if "torch" in stderr:
        return "pip installs the build of torch that is installed here: PIP_EXTRA_INDEX_URL says where it is"
    return "`farm env list` shows where it is; the next build tries again"


def _check_space(runtime: str, root: Path, free: int) -> None:
    needed = NEEDED_BYTES[runtime]
    if free < needed:
        raise VariantInvalid(
            f"the environment of {runtime} needs {size_text(needed)}, and {root} has {size_text(free)} free",
            hint="`farm env list` lists what could be removed; XDG_CACHE_HOME sets another folder",
        )


def _is_complete(folder: Path) -> bool:
    return (folder / _COMPLETE).is_file()


def _state(folder: Path, current: set[str]) -> str:
    if not _is_complete(folder):
        return "incomplete"
    return "ready" if folder.name in current else "outdated"


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
