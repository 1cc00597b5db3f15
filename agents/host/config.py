"""The agent's settings: `FARM_AGENT_*` environment variables, settings saved at enrolment, or arguments."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from agents.host.data_dir import RESERVE_BYTES, find_file
from agents.host.usb_ports import device_names, power_command
from farm.core.base.address import NO_LOGIN, has_login, host_and_port
from farm.core.upkeep.charging import ChargeWindow, charge_window
from farm.wire.agents.protocol import Name

#: In the data folder, written at enrolment.
SAVED_SETTINGS_FILE = "settings.json"


def _address(text: str) -> str:
    if host_and_port(text)[1] == 0:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


Address = Annotated[str, AfterValidator(_address)]
_PARSER_BY_FIELD: dict[str, Callable[[str], Any]] = {
    "adb_connect": _names,
    "device_names": device_names,
    "charge_window": charge_window,
    "power_command": power_command,
}


class AgentConfig(BaseSettings):
    """The agent's local settings. Intervals and time-outs of the protocol are set by the farm."""

    model_config = SettingsConfigDict(
        env_prefix="FARM_AGENT_", frozen=True, extra="ignore", hide_input_in_errors=True
    )

    #: The farm's URL.
    farm_url: str = "http://127.0.0.1:8470"
    #: Send credential and results to a farm on another machine without encryption, as inside a VPN.
    plain_http: bool = False
    #: The name of this host in the farm.
    host: Name = Field(default_factory=socket.gethostname)
    #: The agent's folder: credential, journal, spool, cache, adb server. One agent each.
    data_dir: Path = Field(default_factory=lambda: Path.home() / ".local" / "share" / "farm-agent")
    #: Needed once, for enrolment; better in a file, because other processes can read an environment.
    join_token: SecretStr | None = None
    join_token_file: Path | None = None
    #: Devices on adb over TCP, kept connected.
    adb_connect: Annotated[tuple[Address, ...], NoDecode] = ()
    #: Off only where all devices are virtual or on TCP: the server starts 3 s sooner.
    adb_usb: bool = True
    #: A private key that devices already allow, besides adb's own.
    adb_key: Path | None = None
    #: The address of the operator's adb server, to be used instead of one of our own.
    adb_server: Address | None = None
    #: The size limit of the host's artifact cache; least recently used files are removed first.
    cache_limit_bytes: Annotated[int, Field(gt=0)] = 20 * 1024**3
    #: The size limit of each device's cache, enforced before a run that needs space.
    device_cache_limit_bytes: Annotated[int, Field(gt=0)] = 8 * 1024**3
    #: Names of devices by port or address, as `1-4.2=left`, for devices without unique serial numbers.
    device_names: Annotated[dict[str, Name], NoDecode] = Field(default_factory=dict)
    #: The number of devices to which files are pushed at the same time; None: no limit.
    max_pushes: Annotated[int, Field(gt=0)] | None = None
    #: Keep batteries between two levels, such as `40-80`; None: charging is not controlled.
    charge_window: Annotated[ChargeWindow | None, NoDecode] = None
    #: Switches the power of a device's port: a command with {serial}, {usb_path} and {action}, `on` or `off`.
    power_command: Annotated[tuple[str, ...] | None, NoDecode] = None
    #: Reboot devices that milder steps do not recover, while no run uses them.
    reboot: bool = False
    #: Multiplies every wait of the recovery ladder.
    recovery_timeout_factor: Annotated[float, Field(gt=0, le=100)] = 1.0
    #: Have the farm provision new devices: their settings are changed without confirmation.
    provision_devices: bool = False
    #: The kernel log, which reports full USB controllers; None: the usual sources.
    kernel_log: Path | None = None
    #: The file for the agent's own log, rotated at 10 MiB with five older ones; None: stderr.
    log_file: Path | None = None
    #: Time that a USB controller counts as full after the last message about it.
    usb_full_s: Annotated[float, Field(gt=0)] = 3600.0
    #: Space on the data folder's disk reserved for evidence; with less the host takes no new work.
    reserve_bytes: Annotated[int, Field(gt=0)] = RESERVE_BYTES

    @field_validator("adb_connect", "device_names", "charge_window", "power_command", mode="before")
    @classmethod
    def _parse_text(cls, value: Any, field: ValidationInfo) -> Any:
        return _PARSER_BY_FIELD[str(field.field_name)](value) if isinstance(value, str) else value

    @field_validator("data_dir", "adb_key", "kernel_log", "log_file")
    @classmethod
    def _is_absolute(cls, value: Path | None) -> Path | None:
        # adb, for example, changes its current folder before it opens its key.
        return None if value is None else value.absolute()

    @field_validator("farm_url")
    @classmethod
    def _is_http(cls, value: str) -> str:
        if has_login(value):
            raise ValueError(f"{NO_LOGIN}: agents join by a token")
        if not value.startswith(("http://", "https://")):
            raise ValueError(f"{value!r} is not an http:// or https:// address")
        return value.rstrip("/")

    def with_virtual_devices(self, addresses: tuple[str, ...]) -> Self:
        """Return the settings with virtual devices added.

        Devices on USB stay the operator's choice: only FARM_AGENT_ADB_USB adds them.
        """
        usb = self.adb_usb and not addresses if "adb_usb" not in self.model_fields_set else self.adb_usb
        return self.model_copy(update={"adb_connect": (*self.adb_connect, *addresses), "adb_usb": usb})

    def join_token_value(self) -> SecretStr | None:
        """Return the join token from the environment or its file; None without either."""
        if self.join_token is not None:
            return self.join_token
        if self.join_token_file is None or not self.join_token_file.exists():
            return None
        return SecretStr(self.join_token_file.read_text(encoding="utf-8").strip())


class SavedSettings(BaseModel):
    """The settings that `farm agent join` saves for later runs."""

    model_config = ConfigDict(frozen=True)

    farm_url: str
    host: Name
    plain_http: bool = False


def find_saved_settings(data_dir: Path) -> SavedSettings | None:
    """Return the settings that `farm agent join` saved; None when missing or invalid.

    Raises:
        InvalidInput: it is another user's.
    """
    content = find_file(data_dir / SAVED_SETTINGS_FILE)
    try:
        return None if content is None else SavedSettings.model_validate_json(content)
    except ValidationError:
        return None


def agent_config(**arguments: Any) -> AgentConfig:
    """Return the effective settings: arguments, then FARM_AGENT_*, then saved settings, then defaults.

    Raises:
        ValidationError: one of them cannot be.
        InvalidInput: the data folder is another user's.
    """
    config = AgentConfig(**arguments)
    saved = find_saved_settings(config.data_dir)
    if saved is None:
        return config
    unset = {name: value for name, value in saved if name not in config.model_fields_set}
    return AgentConfig(**{**unset, **arguments})
