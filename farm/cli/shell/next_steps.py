"""What to type next, in commands that work as they stand."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from farm.cli.shell.address import DEFAULT_DATA_DIR
from farm.core.base.ids import MatrixId


def farm_command() -> str:
    """How this very `farm` is called from here: by name where the PATH finds it, else by path."""
    script = Path(sys.executable).with_name("farm")
    found = shutil.which("farm")
    if found and Path(found).absolute() == script:
        return "farm"
    return _relative_path(script)


def demo_commands(folder: Path, matrix_id: MatrixId, *, keeps_farm_running: bool) -> str:
    """The commands that look at what the demo left in its data folder."""
    farm = farm_command()
    lines = (
        [] if keeps_farm_running else [(f"{farm} up --virtual 2", "start the farm again; leave it running")]
    )
    lines += [
        (f"{farm} speedups", "this table, from the database"),
        (f"{farm} matrix show {matrix_id}", "every cell, and what went wrong"),
        (f"{farm} devices", "the phones"),
        (f"{farm} matrix submit {_example_matrix()} --watch", "once more"),
    ]
    return "\n".join(["", "Next:", *_export(folder), *_aligned(lines)])


def farm_commands(folder: Path) -> str:
    """The commands for another terminal, while the farm runs in this one."""
    farm = farm_command()
    lines = [
        (f"{farm} devices", "the phones, and why one gets no work"),
        (f"{farm} variants build mobilenet_v2 --precision float32,int8-core --format torchscript,lite", ""),
        (f"{farm} matrix submit {_example_matrix()} --watch", ""),
    ]
    return "\n".join(["In another terminal:", *_export(folder), *_aligned(lines)])


def watch_again_text(matrix_id: MatrixId) -> str:
    """For a person who leaves a matrix to the farm."""
    farm = farm_command()
    lines = [(f"{farm} matrix watch {matrix_id}", "watch it again"), *_cancel(matrix_id)]
    return "\n".join([f"Detached: matrix {matrix_id} goes on.", *_aligned(lines)])


def watch_text(matrix_id: MatrixId) -> str:
    """For a person who did not want to wait."""
    lines = [
        (f"{farm_command()} matrix watch {matrix_id}", "its progress, then the table"),
        *_cancel(matrix_id),
    ]
    return "\n".join(_aligned(lines))


def _cancel(matrix_id: MatrixId) -> list[tuple[str, str]]:
    return [(f"{farm_command()} matrix cancel {matrix_id}", "end it")]


def demo_detach_text(folder: Path, matrix_id: MatrixId, *, keeps_farm_running: bool) -> str:
    """For a person who leaves the demo's matrix; a farm that the demo started is stopped with it."""
    if keeps_farm_running:
        return watch_again_text(matrix_id)
    farm = farm_command()
    lines = [
        (f"{farm} up --virtual 2", "start the farm again; leave it running"),
        (f"{farm} matrix watch {matrix_id}", "in another terminal"),
    ]
    said = f"Stopping the demo's farm, and matrix {matrix_id} with it. Nothing is lost; it goes on with:"
    return "\n".join([said, *_export(folder), *_aligned(lines)])


def _aligned(lines: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(command) for command, why in lines if why)
    return [f"  {command:{width}}  # {why}" if why else f"  {command}" for command, why in lines]


def _example_matrix() -> str:
    """The example matrix of the checkout this runs from, as seen from here."""
    return _relative_path(Path(__file__).parents[3] / "examples" / "demo.yaml")


def _relative_path(path: Path) -> str:
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _export(folder: Path) -> list[str]:
    """Tell the commands where the data folder is, when they would look elsewhere."""
    if folder.absolute() == Path(os.environ.get("FARM_DATA_DIR") or DEFAULT_DATA_DIR).absolute():
        return []
    return [f"  export FARM_DATA_DIR={shlex.quote(str(folder.absolute()))}"]
