"""The wall clock of a real process, which a test sets while the process runs."""

import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")


class WallClock:
    """A wall clock for processes that are started with `environment`."""

    def __init__(self, folder: Path, *, ahead_s: float = 0.0) -> None:
        folder.mkdir()
        self._offset = folder / "offset"
        self._offset.write_bytes(struct.pack("d", ahead_s))
        library = folder / "wall_clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "WALL_CLOCK_OFFSET": str(self._offset)}

    def set(self, ahead_s: float) -> None:
        """Set it ahead of this machine's, or behind it, at once."""
        with self._offset.open("r+b") as file:
            file.write(struct.pack("d", ahead_s))
