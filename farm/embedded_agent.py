"""The agent inside `farm up`: it enrolls and talks HTTP like any other; its phones are admitted at once."""

import os
from pathlib import Path

from pydantic import ValidationError

from agents.config import AgentConfig
from farm.api.context import Context
from farm.clock import Clock
from farm.config import FarmConfig, invalid_setting
from farm.services.identity import create_join_token

_JOIN_FILE = "join-token"


def agent_config(config: FarmConfig, url: str) -> AgentConfig:
    """The settings of the embedded agent: `FARM_AGENT_*`, but for its farm and its folder.

    Raises:
        InvalidInput: a FARM_AGENT_ variable has a value that cannot be.
    """
    folder = config.data_dir / "agent"
    try:
        return AgentConfig(farm_url=url, data_dir=folder, join_token_file=folder / _JOIN_FILE)
    except ValidationError as error:
        raise invalid_setting(error, "FARM_AGENT_") from error


def with_phones(own: AgentConfig, addresses: tuple[str, ...]) -> AgentConfig:
    """Have the agent look after virtual phones, too.

    Phones on USB stay the operator's choice: FARM_AGENT_ADB_USB says so where only virtual ones are used.
    """
    usb = own.adb_usb and not addresses if "adb_usb" not in own.model_fields_set else own.adb_usb
    return own.model_copy(update={"adb_connect": (*own.adb_connect, *addresses), "adb_usb": usb})


def give_join_token(own: AgentConfig, context: Context, clock: Clock) -> None:
    """Put what the agent needs to enroll into its folder."""
    own.data_dir.mkdir(exist_ok=True)
    token = context.database.write(create_join_token, auto_admit=True, now=clock.now())
    _write_private(own.data_dir / _JOIN_FILE, token)


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
