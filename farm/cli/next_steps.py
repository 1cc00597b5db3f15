"""What to type next, in commands that work as they stand."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from farm.cli.address import DEFAULT_DATA_DIR
from farm.core.ids import MatrixId


def farm_command() -> str:
    """How this very `farm` is called from here: by name where the PATH finds it, else by path."""
    script = Path(sys.executable).with_name("farm")
    found = shutil.which("farm")
    if found and Path(found).absolute() == script:
        return "farm"
    path = script if not script.is_relative_to(Path.cwd()) else script.relative_to(Path.cwd())
    return shlex.quote(str(path))


def after_demo(folder: Path, matrix_id: MatrixId, *, farm_goes_on: bool) -> str:
    """The commands that look at what the demo left in its data folder."""
    farm = farm_command()
    lines = [] if farm_goes_on else [(f"{farm} up --virtual 2", "start the farm again; leave it running")]
    lines += [
        (f"{farm} speedups", "this table, from the database"),
        (f"{farm} matrix show {matrix_id}", "every cell, and what went wrong"),
        (f"{farm} devices", "the phones"),
        (f"{farm} matrix submit examples/demo.yaml --watch", "once more"),
    ]
    return "\n".join(["", "Next:", *_export(folder), *_aligned(lines)])


def after_up(folder: Path) -> str:
    """The commands for another terminal, while the farm runs in this one."""
    farm = farm_command()
    lines = [
        (f"{farm} devices", "the phones, and why one gets no work"),
        (f"{farm} variants build mobilenet_v2", "a model file to measure"),
        (f"{farm} matrix submit examples/demo.yaml --watch", "a matrix of your own looks like this one"),
    ]
    return "\n".join(["In another terminal:", *_export(folder), *_aligned(lines)])


def _aligned(lines: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(command) for command, _ in lines)
    return [f"  {command:{width}}  # {why}" for command, why in lines]


def _export(folder: Path) -> list[str]:
    """Tell the commands where the data folder is, when they would look elsewhere."""
    if folder.absolute() == Path(os.environ.get("FARM_DATA_DIR") or DEFAULT_DATA_DIR).absolute():
        return []
    return [f"  export FARM_DATA_DIR={shlex.quote(str(folder.absolute()))}"]
