"""The commands to run next, printed so that they can be copied."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from farm.cli.shell.address import DEFAULT_DATA_DIR
from farm.core.base.ids import MatrixId


def farm_command() -> str:
    """Return the command that runs this `farm`: its name if the PATH has it, else its path."""
    script = Path(sys.executable).with_name("farm")
    on_path = shutil.which("farm")
    if on_path and Path(on_path).absolute() == script:
        return "farm"
    return _relative_path(script)


def demo_commands(folder: Path, matrix_id: MatrixId, *, keeps_farm_running: bool) -> str:
    """Return the commands that show the results of the demo."""
    farm = farm_command()
    restart = [(f"{farm} up --virtual 2", "start the farm again; leave it running")]
    lines = [
        *([] if keeps_farm_running else restart),
        (f"{farm} speedups", "this table, from the database"),
        (f"{farm} matrix show {matrix_id}", "every cell, and what failed"),
        (f"{farm} device list", "the devices"),
        (f"{farm} matrix submit {_example_matrix()} --watch", "run it again"),
    ]
    return "\n".join(["", "Next:", *_export(folder), *_aligned(lines)])


def farm_commands(folder: Path) -> str:
    """Return the commands for another terminal, while the farm runs in this one."""
    farm = farm_command()
    lines = [
        (f"{farm} device list", "the devices, and why one gets no work"),
        (f"{farm} variant build mobilenet_v2 --precision float32,int8-core --format torchscript,lite", ""),
        (f"{farm} matrix submit {_example_matrix()} --watch", ""),
    ]
    head = "Open that address in a browser, or type in another terminal:"
    return "\n".join([head, *_export(folder), *_aligned(lines)])


def watch_again_text(matrix_id: MatrixId) -> str:
    """Return the message after detaching from a matrix."""
    farm = farm_command()
    lines = [(f"{farm} matrix watch {matrix_id}", "watch it again"), *_cancel(matrix_id)]
    return "\n".join([f"Detached: matrix {matrix_id} continues.", *_aligned(lines)])


def watch_text(matrix_id: MatrixId) -> str:
    """Return the commands for a matrix that is not watched."""
    watch = f"{farm_command()} matrix watch {matrix_id}"
    return "\n".join(_aligned([(watch, "its progress, then the table"), *_cancel(matrix_id)]))


def _cancel(matrix_id: MatrixId) -> list[tuple[str, str]]:
    return [(f"{farm_command()} matrix cancel {matrix_id}", "cancel it")]


def demo_detach_text(folder: Path, matrix_id: MatrixId, *, keeps_farm_running: bool) -> str:
    """Return the message after detaching from the demo, which stops a farm that it started."""
    if keeps_farm_running:
        return watch_again_text(matrix_id)
    farm = farm_command()
    lines = [
        (f"{farm} up --virtual 2", "start the farm again; leave it running"),
        (f"{farm} matrix watch {matrix_id}", "in another terminal"),
    ]
    message = f"Stopping the demo's farm and matrix {matrix_id}. Nothing is lost; continue it with:"
    return "\n".join([message, *_export(folder), *_aligned(lines)])


def _aligned(lines: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(command) for command, why in lines if why)
    return [f"  {command:{width}}  # {why}" if why else f"  {command}" for command, why in lines]


def _example_matrix() -> str:
    """Return the path of the example matrix, relative to the current folder."""
    return _relative_path(Path(__file__).parents[3] / "examples" / "demo.yaml")


def _relative_path(path: Path) -> str:
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _export(folder: Path) -> list[str]:
    """Return the export of FARM_DATA_DIR, unless the commands find the data folder without it."""
    if folder.absolute() == Path(os.environ.get("FARM_DATA_DIR") or DEFAULT_DATA_DIR).absolute():
        return []
    return [f"  export FARM_DATA_DIR={shlex.quote(str(folder.absolute()))}"]
