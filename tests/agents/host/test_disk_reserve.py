"""Evidence on a disk that is full: a file system of a few megabytes, in a namespace of the test's own."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import agents

_MOUNTED = 'mount -t tmpfs -o size=4m tmpfs "$0" && exec "$@"'


def on_a_small_disk(folder: Path, script: str) -> Any:
    """What a script prints as JSON that runs where `sys.argv[1]` is a disk of 4 MiB."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare(1)")
    inside = ["sh", "-c", _MOUNTED, str(folder), sys.executable, "-c", script, str(folder)]
    root = Path(agents.__file__).parent.parent
    ran = subprocess.run(
        ["unshare", "-rm", *inside], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    if "unshare" in ran.stderr or "mount" in ran.stderr:
        pytest.skip(f"this machine allows no mounts of a user's own: {ran.stderr.strip()}")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


SPOOL = """
import json, sys
from pathlib import Path
from agents.outbox.spool import Spool
from farm.clock import SystemClock
from farm.core.errors import HostDiskFull
from farm.core.base.ids import AttemptId
MIB, folder, now = 2**20, Path(sys.argv[1]), SystemClock().now()
spool = Spool(folder, reserve_bytes=MIB)
def fill(path):
    try:
        with path.open("wb", buffering=0) as sink:
            while sink.write(bytes(4096)):
                pass
    except OSError:
        pass
"""


@pytest.mark.fault(29)
@pytest.mark.invariant("I12")
def test_the_current_result_is_kept_in_the_reserve_when_the_disk_is_full(tmp_path: Path) -> None:
    first, full, kept, later, refused, well = on_a_small_disk(
        tmp_path,
        SPOOL
        + """
said = [spool.shortage()]
fill(folder / "of others")
said.append(spool.shortage())
spool.put(AttemptId(1), bytes(MIB // 2))
said.append(len(Spool(folder, reserve_bytes=MIB).find(AttemptId(1))))
said.append(spool.shortage())
try:
    spool.put(AttemptId(2), bytes(MIB))
except HostDiskFull as error:
    said.append([error.code, spool.pending()])
(folder / "of others").unlink()
said.append(spool.shortage())
print(json.dumps(said))
""",
    )
    assert first is None
    assert full == later == f"the agent's disk has less than 1.05 MB free for evidence in {tmp_path}"
    assert kept == 2**19
    assert refused == ["host.disk_full", [1]]
    assert well is None


@pytest.mark.fault(29)
def test_answered_reports_make_room_before_the_reserve_does(tmp_path: Path) -> None:
    before, after, reserve_bytes = on_a_small_disk(
        tmp_path,
        SPOOL
        + """
spool.shortage()
for number in (1, 2):
    spool.put(AttemptId(number), bytes(MIB))
    spool.acknowledge(AttemptId(number))
before = spool.acknowledged()
spool.put(AttemptId(3), bytes(MIB * 3 // 2))
print(json.dumps([before, spool.acknowledged(), (folder / "reserve").stat().st_size]))
""",
    )
    assert (before, after) == ([1, 2], [2])
    assert reserve_bytes == 2**20


@pytest.mark.fault(29)
def test_a_file_that_did_not_fit_leaves_no_part_of_itself(tmp_path: Path) -> None:
    left = on_a_small_disk(
        tmp_path,
        SPOOL
        + """
try:
    spool.put(AttemptId(1), bytes(8 * MIB))
except HostDiskFull:
    print(json.dumps(sorted(path.name for path in folder.iterdir())))
""",
    )
    assert left == ["acknowledged", "refused"]
