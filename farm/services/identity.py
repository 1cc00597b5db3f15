"""Who is calling: join tokens for new hosts, credentials for known ones. Only hashes are stored."""

import hashlib
import secrets
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.errors import AuthError, InvalidInput
from farm.core.ids import HostId
from farm.store import hosts
from farm.wire.agent import Enrollment, EnrollmentAnswer
from farm.wire.base import WIRE_VERSIONS_SERVED

JOIN_TOKEN_VALID_FOR = timedelta(hours=24)


def create_join_token(connection: Connection, *, auto_admit: bool, now: datetime) -> str:
    """A token that lets one agent enroll once, within a day; shown once, stored as its hash.

    With `auto_admit` the host's phones join the pool without an operator.
    """
    token = secrets.token_urlsafe(32)
    hosts.add_join_token(
        connection, token_hash=_hash(token), auto_admit=auto_admit, now=now, valid_for=JOIN_TOKEN_VALID_FOR
    )
    return token


def enroll(connection: Connection, enrollment: Enrollment, *, now: datetime) -> EnrollmentAnswer:
    """Turn a join token into a host credential.

    Raises:
        AuthError: the token is unknown, used up or too old.
        InvalidInput: the agent's wire version is not served.
    """
    check_wire_version(enrollment.wire_version)
    host_id = HostId(enrollment.host)
    credential = secrets.token_urlsafe(32)
    # The token's row refers to the host, so the host is there first; a bad token rolls it back.
    hosts.put_host(connection, host_id=host_id, credential_hash=_hash(credential), auto_admit=False, now=now)
    auto_admit = hosts.use_join_token(
        connection, token_hash=_hash(enrollment.join_token.get_secret_value()), host_id=host_id, now=now
    )
    if auto_admit is None:
        raise AuthError("the join token is unknown, used up or too old", hint="ask for a new join token")
    hosts.put_host(
        connection, host_id=host_id, credential_hash=_hash(credential), auto_admit=auto_admit, now=now
    )
    return EnrollmentAnswer(host_id=host_id, credential=credential)


def authenticate(connection: Connection, credential: str) -> HostId:
    """The host that holds a credential.

    Looked up by its hash, so nothing of a credential can be learned from how long the answer takes.

    Raises:
        AuthError: nobody holds it.
    """
    host_id = hosts.find_host_by_credential(connection, _hash(credential))
    if host_id is None:
        raise AuthError("no host has this credential")
    return host_id


def check_wire_version(version: int) -> None:
    """Refuse an agent this farm cannot understand.

    Raises:
        InvalidInput: naming the versions that are served.
    """
    if version not in WIRE_VERSIONS_SERVED:
        served = ", ".join(map(str, WIRE_VERSIONS_SERVED))
        raise InvalidInput(
            f"wire version {version} is not served; this farm serves {served}",
            hint="run agent and farm of the same release, or of neighbouring ones",
        )


def _hash(secret: str) -> str:
    # The secrets are 256 random bits of ours: a plain hash cannot be guessed back.
    return hashlib.sha256(secret.encode()).hexdigest()
