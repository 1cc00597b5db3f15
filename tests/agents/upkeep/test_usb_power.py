"""The operator's command for the power of a port."""

import sys
from pathlib import Path

import pytest

from agents.host.config import AgentConfig
from agents.host.usb_ports import UsbPort, power_command, switch_power
from farm.core.errors import HostError
from farm.core.upkeep.charging import ChargeWindow

pytestmark = pytest.mark.anyio
PORT = UsbPort(serial="A 1", usb_path="1-2.3")


async def test_a_command_gets_the_phone_word_by_word(tmp_path: Path) -> None:
    script = "import sys; open(sys.argv[1], 'w').write('|'.join(sys.argv[2:]))"
    words = (sys.executable, "-c", script, str(tmp_path / "said"), "{serial}", "{usb_path}", "--{action}")
    await switch_power(words, PORT, "off")
    assert (tmp_path / "said").read_text() == "A 1|1-2.3|--off"


async def test_a_command_that_fails_says_why() -> None:
    words = (sys.executable, "-c", "import sys; print('no such hub'); sys.exit(3)", "{action}")
    with pytest.raises(HostError, match="ended with 3: no such hub"):
        await switch_power(words, PORT, "on")


async def test_a_command_that_is_not_there_is_the_hosts_trouble() -> None:
    with pytest.raises(HostError, match="cannot be run"):
        await switch_power(("/nowhere/uhubctl", "{action}"), PORT, "on")


async def test_a_phone_whose_place_is_not_known_has_no_port_to_switch() -> None:
    with pytest.raises(HostError, match="does not report the USB port"):
        await switch_power(("true", "{usb_path}", "{action}"), UsbPort(serial="A1", usb_path=None), "on")


@pytest.mark.parametrize("text", ["", "uhubctl -l 1-2", "hub {x} {action}", "hub {action", "hub {} {action}"])
def test_a_command_that_cannot_work_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="action"):
        power_command(text)


def test_settings_name_window_and_command(tmp_path: Path) -> None:
    config = AgentConfig.model_validate(
        {"data_dir": tmp_path, "charge_window": "30-70", "power_command": "hub -p '{usb_path}' {action}"}
    )
    assert config.charge_window == ChargeWindow(low_pct=30, high_pct=70)
    assert config.power_command == ("hub", "-p", "{usb_path}", "{action}")
