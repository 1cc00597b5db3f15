"""The agent inside `farm up`: it enrolls and talks HTTP like any other; its phones are admitted at once."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import structlog
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from agents.adb.server import select_server
from agents.daemon import run_agent
from agents.host.atomic_file import make_folder, remove_durably, translate_disk_errors
from agents.host.config import AgentConfig
from agents.link.enrollment import CREDENTIAL_FILE, check_space, find_credential
from agents.link.exchange_loop import CredentialRefused
from agents.outbox.attempt_journal import AttemptJournal
from farm.api.context import Context
from farm.clock import Clock
from farm.config import FarmConfig, invalid_setting
from farm.core.base.ids import DeviceId
from farm.core.errors import AuthError, FarmError
from farm.core.jobs.attempt import AttemptState
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import authenticate, create_join_token

_log = structlog.get_logger(__name__)

_JOIN_FILE = "join-token"
#: Between two tries to start on a full disk.
_RETRY_S = 5.0


def agent_config(config: FarmConfig, url: str) -> AgentConfig:
    """Return the settings of the embedded agent: `FARM_AGENT_*`, except its farm and its folder.

    Raises:
        InvalidInput: a FARM_AGENT_ variable has an invalid value, or the path of the data folder is too long.
    """
    folder = config.data_dir / "agent"
    try:
        # An address of this machine, whatever its name: nothing leaves it.
        own = AgentConfig(farm_url=url, data_dir=folder, join_token_file=folder / _JOIN_FILE, plain_http=True)
    except ValidationError as error:
        raise invalid_setting(error, "FARM_AGENT_") from error
    # What it refuses is refused before anything is started.
    select_server(own)
    return own


async def run_embedded_agent(own: AgentConfig, context: Context, clock: Clock) -> None:
    """Run the agent until cancelled; raises like `run_agent`, but for a refused credential.

    On a full disk it waits for space, and the farm serves what it can. Once an operator has retired its
    host, the farm goes on without it; the next start enrolls it again.
    """
    token_file = own.data_dir / _JOIN_FILE
    while True:
        try:
            _prepare_enrollment(token_file, context, clock)
            break
        except FarmError as error:
            if not error.transient:
                raise
            folder = str(own.data_dir)
            _log.warning("embedded_agent_waits", folder=folder, reason=error.message, hint=error.hint)
        await asyncio.sleep(_RETRY_S)

    def remove_token() -> None:
        with suppress(OSError):
            token_file.unlink(missing_ok=True)

    try:
        await run_agent(own, clock, ready=remove_token)
    except CredentialRefused as error:
        _log.warning("embedded_agent_ended", reason=error.message, hint="it joins again when the farm starts")
        await asyncio.Event().wait()


def _prepare_enrollment(token_file: Path, context: Context, clock: Clock) -> None:
    """Make a token for an agent that the farm does not know, because a folder was created again.

    Raises:
        FarmBusy: the database cannot be written for now.
        HostDiskFull: there is no space for the token.
    """
    folder = token_file.parent
    make_folder(folder)
    with translate_disk_errors(token_file):
        token_file.unlink(missing_ok=True)
    if not context.database.read(_is_enrolled, folder):
        # Before a token is made: each one that cannot be written would stay in the database.
        check_space(folder)
        remove_durably(folder / CREDENTIAL_FILE)
        token = context.database.write(bind_tx(create_join_token, now=clock.now()), auto_admit=True)
        with translate_disk_errors(token_file):
            _write_private(token_file, token)


def devices_left_running(own: AgentConfig) -> list[DeviceId]:
    """Return the devices on which a run continues after the agent has ended."""
    entries = AttemptJournal(own.data_dir / "attempts").records()
    return [entry.device_id for entry in entries if entry.phase is AttemptState.MEASURING]


def _is_enrolled(connection: Connection, folder: Path) -> bool:
    credential = find_credential(folder)
    if credential is None:
        return False
    try:
        authenticate(connection, credential.secret.get_secret_value())
    except AuthError:
        return False
    return True


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
