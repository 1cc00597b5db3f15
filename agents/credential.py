"""The host's credential: earned once with a join token, kept in the data folder."""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from agents.config import AgentConfig
from agents.durable import write_durably
from agents.farm_api import FarmApi
from agents.folder import find_file
from farm.core.errors import AuthError
from farm.core.ids import HostId
from farm.wire.agent import Enrollment, EnrollmentAnswer

CREDENTIAL = "credential.json"
_HINT = (
    "`farm token create` on the farm's machine makes a join token; `farm agent join URL` here takes it, "
    "or FARM_AGENT_JOIN_TOKEN_FILE"
)


class Credential(BaseModel):
    """Who this host is to its farm."""

    model_config = ConfigDict(frozen=True)

    host_id: HostId
    secret: SecretStr


async def enroll(config: AgentConfig, api: FarmApi) -> Credential:
    """Trade the join token for a credential and keep that.

    Raises:
        AuthError: there is no token, or the farm does not take it.
        FarmTrouble: the farm does not answer.
    """
    token = _join_token(config)
    try:
        answer = await api.enroll(Enrollment(host=config.host, join_token=token))
    except AuthError as error:
        raise AuthError(f"the farm did not take the join token: {error.message}", hint=_HINT) from error
    return _kept(config.data_dir, answer)


def check_way_in(config: AgentConfig) -> None:
    """Raises AuthError where there is neither credential nor join token, before anything is started."""
    if find_credential(config.data_dir) is None:
        _join_token(config)


def find_credential(data_dir: Path) -> Credential | None:
    """The credential of an earlier enrolment.

    Raises:
        InvalidInput: there is one, of another user.
    """
    kept = find_file(data_dir / CREDENTIAL)
    try:
        return None if kept is None else Credential.model_validate_json(kept)
    except ValidationError:
        return None


def _join_token(config: AgentConfig) -> SecretStr:
    token = config.join_token_value()
    if token is None:
        raise AuthError(f"{config.host} is not enrolled and has no join token", hint=_HINT)
    return token


def _kept(data_dir: Path, answer: EnrollmentAnswer) -> Credential:
    fields = {"host_id": answer.host_id, "secret": answer.credential}
    write_durably(data_dir / CREDENTIAL, json.dumps(fields).encode(), mode=0o600)
    return Credential(host_id=answer.host_id, secret=SecretStr(answer.credential))
