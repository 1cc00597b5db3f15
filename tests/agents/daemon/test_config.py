"""The agent's settings and its lock."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from agents.host.config import AgentConfig
from agents.host.data_dir import AgentRunningError, host_lock
from farm.config import invalid_setting


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FARM_URL", "HOST", "DATA_DIR", "JOIN_TOKEN", "JOIN_TOKEN_FILE", "ADB_CONNECT", "ADB_USB"):
        monkeypatch.delenv(f"FARM_AGENT_{name}", raising=False)


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_AGENT_FARM_URL", "http://farm.lab:8470/")
    monkeypatch.setenv("FARM_AGENT_ADB_CONNECT", "10.0.0.2:5555, 10.0.0.3:5555")
    monkeypatch.setenv("FARM_AGENT_ADB_USB", "0")
    config = AgentConfig()
    assert config.farm_url == "http://farm.lab:8470"
    assert config.adb_connect == ("10.0.0.2:5555", "10.0.0.3:5555")
    assert config.adb_usb is False


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        AgentConfig().host = "other"  # type: ignore[misc]


@pytest.mark.parametrize("address", ["phone", "phone:", ":5555", "phone:70000", "phone:x"])
def test_an_address_of_a_phone_is_host_and_port(address: str) -> None:
    with pytest.raises(ValidationError, match="HOST:PORT"):
        AgentConfig(adb_connect=(address,))


def test_a_farm_has_a_web_address() -> None:
    with pytest.raises(ValidationError, match="http://"):
        AgentConfig(farm_url="farm.lab:8470")


@pytest.mark.parametrize("address", ["https://ann:hunter2@farm.lab", "ann:hunter2@farm.lab:8470"])
def test_an_address_with_a_password_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(ValidationError, match="no name and no password") as refused:
        AgentConfig(farm_url=address)
    setting = invalid_setting(refused.value, "FARM_AGENT_")
    assert "FARM_AGENT_FARM_URL" in setting.message
    for told in (str(refused.value), setting.message, setting.hint):
        assert "hunter2" not in told


def test_a_join_token_is_read_from_its_file_and_shown_nowhere(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("very-secret\n")
    config = AgentConfig(join_token_file=token_file)
    token = config.join_token_value()
    assert token is not None
    assert token.get_secret_value() == "very-secret"
    assert "very-secret" not in repr(token)
    assert AgentConfig(join_token_file=tmp_path / "absent").join_token_value() is None


def test_a_second_agent_in_the_same_folder_is_told_who_is_there(tmp_path: Path) -> None:
    with host_lock(tmp_path), pytest.raises(AgentRunningError, match=r"pid \d+"), host_lock(tmp_path):
        pass


def test_the_lock_is_free_after_the_agent(tmp_path: Path) -> None:
    with host_lock(tmp_path):
        pass
    with host_lock(tmp_path):
        pass
