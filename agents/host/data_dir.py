"""The agent's data folder: created for its owner only; permission errors become errors of the tree."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from farm.core.errors import InvalidInput


def make_data_dir(data_dir: Path) -> None:
    """Create the folder if it is missing.

    Raises:
        InvalidInput: this user cannot.
    """
    with translate_folder_errors(data_dir):
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)


def find_file(path: Path) -> bytes | None:
    """Return the content of a file in the folder; None when it is missing.

    Raises:
        InvalidInput: this user may not read it. That is not the same as missing: the agent has joined, say.
    """
    with translate_folder_errors(path.parent):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None


@contextmanager
def translate_folder_errors(data_dir: Path) -> Iterator[None]:
    """Translate OS errors of the data folder into InvalidInput."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(
            f"the agent's data folder {data_dir} cannot be used: {error.strerror} ({error.filename})",
            hint="do this as the user that the agent runs as (sudo -u), or name another folder with "
            "--data-dir or FARM_AGENT_DATA_DIR",
        ) from error
