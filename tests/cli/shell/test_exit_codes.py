"""What the machine keeps a command from is told as every error is; what may be a bug keeps its traceback."""

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from farm.cli.shell.errors import report_error, translate_system_error
from farm.core.errors import HostDiskFull
from tests.support.session.tiers import quick_first

_VERSION = [sys.executable, "-m", "farm.cli.shell.main", "--version"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/srv/farm"), "/srv/farm: permission denied"),
        (OSError(errno.EROFS, "Read-only file system", b"/srv/farm"), "/srv/farm: read-only file system"),
        (OSError(errno.ENOSPC, "No space left on device"), "no space left on device"),
        (OSError(errno.ENOSPC, "No space left on device", "a.zip"), "a.zip: no space left on device"),
    ],
)
def test_a_place_that_cannot_be_used_is_named_with_why(error: OSError, said: str) -> None:
    translated = translate_system_error(error)
    assert translated is not None
    assert translated.message == said


@pytest.mark.parametrize(
    "error", [FileNotFoundError(errno.ENOENT, "No such file", "x"), OSError("what?"), ConnectionResetError()]
)
def test_what_may_be_a_bug_is_none_of_these(error: OSError) -> None:
    assert translate_system_error(error) is None


def run_with(stdout: int | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _VERSION, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=120
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_output_that_has_no_room_is_told_in_a_sentence() -> None:
    with Path("/dev/full").open("wb") as full:
        done = run_with(full.fileno())
    assert (done.returncode, done.stderr) == (
        5,
        "error: no space left on device\nhint: free some disk space where this command writes to\n",
    )


class FullDisk(io.StringIO):
    """A stream to a file on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_message_that_has_no_room_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", FullDisk())
        assert report_error(HostDiskFull("no space left on device")) == 5


@pytest.mark.parametrize("words", quick_first(["--version", "admin config", "admin config --json"]))
def test_who_closed_stdout_hears_nothing(tmp_path: Path, words: str) -> None:
    script = f"{sys.executable} -m farm.cli.shell.main {words} >&-"
    environment = {**os.environ, "FARM_DATA_DIR": str(tmp_path)}
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=False, timeout=120, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
