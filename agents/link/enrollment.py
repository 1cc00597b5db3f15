"""Enrolment: exchange of a join token for a credential, saved with the settings of later runs."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import structlog
from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from agents.farm_api import FarmApi, farm_client
from agents.host.atomic_file import TEMPORARY_SUFFIX, remove_durably, write_file_durably
from agents.host.config import SAVED_SETTINGS_FILE, AgentConfig, SavedSettings, find_saved_settings
from agents.host.data_dir import find_file, host_lock
from agents.outbox.attempt_journal import AttemptJournal
from agents.outbox.spool import Spool
from farm.core.base.ids import HostId
from farm.core.errors import AuthError, FarmUnreachable, HostDiskFull
from farm.wire.agents.protocol import Enrollment

log = structlog.get_logger(__name__)

CREDENTIAL_FILE = "credential.json"
#: Enough for what the first start of an agent writes: its credential, and the key of its adb server.
_SMALL_BYTES = 64 * 1024
#: Between two tries to save the credential.
_SPACE_S = 1.0
_HINT = (
    "`farm token create` on the farm's machine makes a join token; `farm agent join URL` here takes it, "
    "or FARM_AGENT_JOIN_TOKEN_FILE"
)


class Credential(BaseModel):
    """The identity of this host to its farm."""

    model_config = ConfigDict(frozen=True)

    host_id: HostId
    secret: SecretStr


async def enroll(config: AgentConfig, api: FarmApi) -> Credential:
    """Exchange the join token for a credential and save it.

    Raises:
        AuthError: there is no token, or the farm does not take it.
        FarmFault: the farm does not answer.
        HostDiskFull: there is no space for the credential; the token was not used.
    """
    token = _join_token(config)
    # Before the token is spent: a credential that cannot be saved is lost.
    check_space(config.data_dir)
    try:
        answer = await api.enroll(Enrollment(host=config.host, join_token=token))
    except AuthError as error:
        raise AuthError(f"the farm rejected the join token: {error.message}", hint=_HINT) from error
    fields = {"host_id": answer.host_id, "secret": answer.credential}
    content = json.dumps(fields).encode()
    while True:
        try:
            write_file_durably(config.data_dir / CREDENTIAL_FILE, content, mode=0o600)
            break
        except HostDiskFull as error:
            # Others took the space since: the token is spent.
            log.warning("credential_not_saved", reason=error.message, hint=error.hint)
            await asyncio.sleep(_SPACE_S)
    return Credential(host_id=answer.host_id, secret=SecretStr(answer.credential))


def check_space(data_dir: Path) -> None:
    """Raise HostDiskFull if the data folder cannot take a small file."""
    probe = data_dir / f"space{TEMPORARY_SUFFIX}"
    write_file_durably(probe, bytes(_SMALL_BYTES))
    remove_durably(probe)


def check_can_enroll(config: AgentConfig) -> None:
    """Raise AuthError where there is neither credential nor join token, before anything is started."""
    if find_credential(config.data_dir) is None:
        _join_token(config)


def find_credential(data_dir: Path) -> Credential | None:
    """Return the credential of an earlier enrolment; None without one.

    Raises:
        InvalidInput: there is one, of another user.
    """
    content = find_file(data_dir / CREDENTIAL_FILE)
    try:
        return None if content is None else Credential.model_validate_json(content)
    except ValidationError:
        return None


def _join_token(config: AgentConfig) -> SecretStr:
    token = config.join_token_value()
    if token is None:
        raise AuthError(f"{config.host} is not enrolled and has no join token", hint=_HINT)
    return token


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrollmentResult:
    """The result of joining a farm."""

    host_id: HostId
    farm_url: str
    #: The previous farm and name of this folder.
    replaced: SavedSettings | None
    #: Attempts of the previous enrolment, which will never be reported.
    archived_attempts: int


async def join(config: AgentConfig) -> EnrollmentResult:
    """Enroll this host; save credential, farm and name in the data folder, readable by its owner only.

    Raises:
        AgentRunningError: an agent works in the data folder, and would go on with the old credential.
        AuthError: the farm does not take the token, or there is none.
        Conflict: an agent of that name is at work elsewhere.
        FarmUnreachable: no farm answers there.
        HostDiskFull: there is no space in the data folder.
        InvalidInput: this user cannot use the data folder.
    """
    with host_lock(config.data_dir):
        replaced = find_saved_settings(config.data_dir)
        before = find_credential(config.data_dir)
        async with farm_client(config.farm_url, plain_http=config.plain_http) as http:
            api = FarmApi(http)
            # Only to its own farm: it proves that we are the host with that name.
            if before is not None and replaced is not None and replaced.farm_url == config.farm_url:
                api.use_credential(before.secret)
            try:
                credential = await enroll(config, api)
            except FarmUnreachable as error:
                raise FarmUnreachable(
                    f"no farm answers agents at {config.farm_url}: {error.message}",
                    hint="`farm up --agents-on` on the farm's machine says where; can this one reach that "
                    "address?",
                ) from error
        saved = SavedSettings(farm_url=config.farm_url, host=credential.host_id, plain_http=config.plain_http)
        write_file_durably(
            config.data_dir / SAVED_SETTINGS_FILE, saved.model_dump_json().encode(), mode=0o600
        )
        journal, spool = AttemptJournal(config.data_dir / "attempts"), Spool(config.data_dir / "spool")
        return EnrollmentResult(
            host_id=credential.host_id,
            farm_url=config.farm_url,
            replaced=replaced,
            archived_attempts=archive_previous_enrollment(journal, spool),
        )


def archive_previous_enrollment(journal: AttemptJournal, spool: Spool) -> int:
    """Archive the attempts of a previous enrolment; return their number.

    Attempt ids mean something else to another farm. Evidence is kept as a refused report.
    """
    waiting, records = spool.pending(), journal.records()
    for attempt_id in waiting:
        spool.refuse(attempt_id)
    for record in records:
        journal.remove(record.attempt_id)
    return len({*waiting, *(record.attempt_id for record in records)})
