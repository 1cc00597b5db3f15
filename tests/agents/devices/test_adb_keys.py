"""Phones that ask for a key: the operator's is shown to them, and one that a lab shares over its hosts."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agents.adb.client import AdbClient
from agents.adb.server import bundled_adb, own_address
from agents.host.config import AgentConfig
from agents.virtual.connection import FILE
from agents.virtual.pool import VirtualDeviceHandle
from farm.core.devices.device import Presence
from farm.wire.agents.protocol import DeviceReport
from tests.support.agents.fake_farm import FakeFarm, living

pytestmark = pytest.mark.anyio


def new_key(path: Path) -> Path:
    """A private key, its public half beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([bundled_adb(), "keygen", path], capture_output=True, check=True)
    return path


def reports(played: FakeFarm) -> Iterator[DeviceReport]:
    return (device for said in played.exchanges for device in said.devices)


@pytest.fixture
def key(tmp_path: Path, phone: VirtualDeviceHandle) -> Path:
    """The only key that the phone takes."""
    key = new_key(tmp_path / "lab" / "adbkey")
    (phone.state / FILE).write_bytes(key.with_suffix(".pub").read_bytes())
    return key


async def test_a_key_that_a_lab_shares_opens_its_phones(
    config: AgentConfig, played: FakeFarm, key: Path
) -> None:
    async with living(config.model_copy(update={"adb_key": key})):
        await played.until(lambda: any(each.presence is Presence.ONLINE for each in reports(played)))


async def test_the_operators_own_key_opens_phones_that_know_it(
    config: AgentConfig, played: FakeFarm, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home" / ".android").mkdir(parents=True)
    for half in (key, key.with_suffix(".pub")):
        half.rename(tmp_path / "home" / ".android" / half.name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    # The server of TCP phones alone keeps a key of its own.
    async with living(config.model_copy(update={"adb_usb": True})):
        await played.until(lambda: any(each.presence is Presence.ONLINE for each in reports(played)))


@pytest.mark.fault(6)
async def test_a_phone_that_knows_none_of_the_keys_stays_unauthorized_and_is_told_of_once(
    config: AgentConfig, played: FakeFarm, key: Path, phone: VirtualDeviceHandle, tmp_path: Path
) -> None:
    other = config.model_copy(update={"adb_key": new_key(tmp_path / "other" / "adbkey")})
    with capture_logs() as logs:
        async with living(other):
            await played.until(lambda: len(played.exchanges) > 2)
            server = AdbClient(own_address(config.data_dir / "adb"))
            assert await server.devices() == {phone.address: "unauthorized"}
    assert not list(reports(played))
    (told,) = [each for each in logs if each["event"] == "device_not_connected"]
    assert (told["log_level"], told["address"]) == ("warning", phone.address)
    assert "authenticate" in told["reason"]
