"""Access tokens of people and scripts: made, listed, revoked, and asked for who has one."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.engine import Connection

from farm.core.errors import AuthError, Conflict, InvalidInput, NotFound
from farm.core.role import Caller, Role
from farm.services.secret import SecretKind, hash_of, new_secret
from farm.store import access_tokens, hosts
from farm.store.access_tokens import AccessToken
from farm.wire.access_views import AccessRequest, AccessState, AccessTokenView, NewAccessTokenView

ASK_AN_ADMIN = (
    "an admin of this farm makes a new one: farm token create --role ROLE --name NAME --out FILE; "
    "`farm login URL --token-file FILE` keeps it"
)


def issue_access_token(
    connection: Connection, request: AccessRequest, *, now: datetime, actor: str
) -> NewAccessTokenView:
    """A token that proves a name and a role; shown this one time, stored as its hash."""
    token = new_secret(SecretKind.USER)
    kept = access_tokens.add_access_token(
        connection,
        token_hash=hash_of(token),
        name=request.name,
        role=request.role,
        expires_at=None if request.valid_s is None else now + timedelta(seconds=request.valid_s),
        now=now,
        actor=actor,
    )
    return NewAccessTokenView(**_fields(kept, now), token=token)


def list_access_views(connection: Connection, *, now: datetime) -> list[AccessTokenView]:
    """Every token there was, newest first."""
    return [_view(each, now) for each in access_tokens.list_access_tokens(connection)]


def revoke_access_token(
    connection: Connection, token_id: str, *, now: datetime, actor: str
) -> AccessTokenView:
    """Let nobody in with a token any more: the next call with it is refused.

    Raises:
        NotFound: there is no such token.
        Conflict: it was revoked, or is too old already.
    """
    is_revoked = access_tokens.end_access_token(connection, token_id, now=now, actor=actor)
    found = access_tokens.find_access_token(connection, token_id)
    if found is None:
        raise NotFound(f"there is no access token {token_id}", hint="`farm token list` names them")
    if not is_revoked:
        raise Conflict(
            f"access token {token_id} is {_state(found, now)} already", hint="nobody gets in with it"
        )
    return _view(found, now)


def authenticate_caller(connection: Connection, credential: str, *, now: datetime) -> Caller:
    """Who has a secret: a person or script, or a host's agent, which may do nothing that people do.

    Constant in time by design: a secret is looked up by its hash, and nobody can choose what a hash begins
    with, so nothing of one can be learned from how long the answer takes.

    Raises:
        AuthError: nobody has it, or it is too old, or was revoked.
    """
    token_hash = hash_of(credential)
    token = access_tokens.find_valid_token(connection, token_hash, now=now)
    if token is not None:
        return Caller(name=token.name, role=token.role, is_proven=True)
    host_id = hosts.find_host_by_credential(connection, token_hash)
    if host_id is None:
        raise AuthError("the access token is unknown, too old or revoked", hint=ASK_AN_ADMIN)
    return Caller(name=host_id, role=Role.AGENT, is_proven=True)


def check_an_admin_can_call(connection: Connection, *, now: datetime) -> None:
    """Refuse to serve others before there is anybody who could look after who may.

    Raises:
        InvalidInput: no admin has a valid token.
    """
    if not access_tokens.has_valid_token(connection, Role.ADMIN, now=now):
        raise InvalidInput(
            "nobody could call this farm: everybody who calls it needs an access token, and no admin has one",
            hint="make one, with the same --data: farm token create --role admin --name NAME --out FILE",
        )


def _view(token: AccessToken, now: datetime) -> AccessTokenView:
    return AccessTokenView(**_fields(token, now))


def _fields(token: AccessToken, now: datetime) -> dict[str, Any]:
    return {**asdict(token), "state": _state(token, now)}


def _state(token: AccessToken, now: datetime) -> AccessState:
    if token.revoked_at is not None:
        return AccessState.REVOKED
    is_over = token.expires_at is not None and token.expires_at <= now
    return AccessState.EXPIRED if is_over else AccessState.OPEN
