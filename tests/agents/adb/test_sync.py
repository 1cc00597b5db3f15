"""Files to and from a virtual phone, through a real adb server."""

import asyncio
import hashlib
import stat
from pathlib import Path

import pytest

from agents.adb.client import AdbDevice
from agents.virtual.faults import Faults, set_faults
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.errors import DeviceProtocol, HostError, PushFailed

pytestmark = pytest.mark.anyio
DEADLINE_S = 120.0
CONTENT = hashlib.shake_256(b"content").digest(3 * 1024 * 1024 + 17)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Bytes that end within a chunk, after several."""
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    return path


async def test_a_pushed_file_is_whole_has_its_mode_and_reads_back(
    device: AdbDevice, tmp_path: Path, source: Path
) -> None:
    remote = str(tmp_path / "new folder" / "a file")

    sent = await device.push(source, remote, mode=0o750, deadline_s=DEADLINE_S)

    assert sent == len(CONTENT)
    found = await asyncio.to_thread(Path(remote).stat)
    assert stat.S_ISREG(found.st_mode)
    assert (found.st_mode & 0o777, found.st_size) == (0o750, sent)
    assert await device.read(remote, limit_bytes=sent, deadline_s=DEADLINE_S) == CONTENT


async def test_an_empty_file_can_be_pushed(device: AdbDevice, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()

    assert await device.push(tmp_path / "empty", f"{tmp_path}/remote", mode=0o644, deadline_s=DEADLINE_S) == 0
    assert await device.read(f"{tmp_path}/remote", limit_bytes=10, deadline_s=DEADLINE_S) == b""


async def test_reading_stops_at_the_limit(device: AdbDevice, source: Path) -> None:
    head = await device.read(str(source), limit_bytes=100_000, deadline_s=DEADLINE_S)

    assert head == CONTENT[:100_000]


async def test_a_missing_file_cannot_be_read(device: AdbDevice, tmp_path: Path) -> None:
    with pytest.raises(DeviceProtocol, match="No such file"):
        await device.read(f"{tmp_path}/nothing", limit_bytes=10, deadline_s=DEADLINE_S)


async def test_a_refused_push_says_why(device: AdbDevice, tmp_path: Path, source: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(PushFailed, match="File exists"):
        await device.push(source, f"{tmp_path}/file/below", mode=0o644, deadline_s=DEADLINE_S)


async def test_a_local_file_that_is_not_there_is_not_the_phones_fault(
    device: AdbDevice, tmp_path: Path
) -> None:
    with pytest.raises(HostError):
        await device.push(tmp_path / "nothing", f"{tmp_path}/x", mode=0o644, deadline_s=DEADLINE_S)


async def test_a_full_disk_refuses_the_push_and_leaves_nothing(
    own_device: AdbDevice, phone: VirtualDeviceHandle, tmp_path: Path, source: Path
) -> None:
    set_faults(phone.state, Faults(disk_full=True))

    with pytest.raises(PushFailed, match="No space left on device"):
        await own_device.push(source, f"{tmp_path}/remote", mode=0o644, deadline_s=DEADLINE_S)

    assert not (tmp_path / "remote").exists()


async def test_a_corrupted_push_looks_fine_but_for_its_digest_and_happens_once(
    own_device: AdbDevice, phone: VirtualDeviceHandle, tmp_path: Path, source: Path
) -> None:
    set_faults(phone.state, Faults(corrupt_pushes=1))
    digests = []
    for name in ("first", "second"):
        await own_device.push(source, f"{tmp_path}/{name}", mode=0o644, deadline_s=DEADLINE_S)
        result = await own_device.shell(f"sha256sum {tmp_path}/{name}", deadline_s=DEADLINE_S)
        digests.append(result.stdout.split()[0].decode())

    expected = hashlib.sha256(CONTENT).hexdigest()
    assert digests[0] != expected
    assert digests[1] == expected


async def test_pushes_at_once_do_not_mix(device: AdbDevice, tmp_path: Path, source: Path) -> None:
    remotes = [f"{tmp_path}/remote-{number}" for number in range(5)]
    calls = (device.push(source, remote, mode=0o644, deadline_s=DEADLINE_S) for remote in remotes)

    await asyncio.gather(*calls)

    reads = (device.read(remote, limit_bytes=len(CONTENT), deadline_s=DEADLINE_S) for remote in remotes)
    assert set(await asyncio.gather(*reads)) == {CONTENT}
