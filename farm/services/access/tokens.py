"""Access tokens of people and scripts: made, listed, revoked, and asked for who has one."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.engine import Connection

from farm.core.errors import AuthError, Conflict, IdempotencyKeyReused, InvalidInput, NotFound
from farm.core.operations.role import Caller, Role
from farm.services.access.enrollment import NOT_THE_SAME_HINT
from farm.store.hosts import hosts
from farm.store.operations import access_tokens
from farm.store.operations.access_tokens import AccessToken
from farm.wire.documents.access import AccessRequest, AccessState, AccessTokenView, NewAccessTokenView
from farm.wire.tokens import TokenKind, derive_secret, hash_of, new_secret, token_id_of

ASK_AN_ADMIN = (
    "an admin of this farm makes a new one: farm token create --role ROLE --name NAME --out FILE; "
    "`farm login URL --token-file FILE` keeps it"
)


def issue_access_token(
    connection: Connection, request: AccessRequest, *, now: datetime, actor: str
) -> NewAccessTokenView:
    """A token that proves a name and a role; shown this one time, stored as its hash.

    One that the caller drew is made once, however often it is asked for.

    Raises:
        InvalidInput: what the caller drew is no secret.
        IdempotencyKeyReused: it is the token of another request.
    """
    token = _draw_token(request)
    kept = access_tokens.find_token(connection, hash_of(token))
    if kept is None:
        # Who draws many can find two of one name, and neither could be revoked by it.
        if access_tokens.find_access_token(connection, token_id_of(token)) is not None:
            raise IdempotencyKeyReused(
                f"there is an access token {token_id_of(token)} already", hint=NOT_THE_SAME_HINT
            )
        kept = _add_token(connection, request, hash_of(token), now=now, actor=actor)
    elif not _is_same_request(kept, request, actor):
        raise IdempotencyKeyReused(
            f"access token {kept.token_id} was made by another request", hint=NOT_THE_SAME_HINT
        )
    return NewAccessTokenView(**_fields(kept, now), token=token)


def _draw_token(request: AccessRequest) -> str:
    kind = TokenKind.USER
    return new_secret(kind) if request.token is None else derive_secret(kind, request.token)


def _add_token(
    connection: Connection, request: AccessRequest, token_hash: str, *, now: datetime, actor: str
) -> AccessToken:
    return access_tokens.add_access_token(
        connection,
        token_hash=token_hash,
        name=request.name,
        role=request.role,
        expires_at=None if request.valid_s is None else now + timedelta(seconds=request.valid_s),
        now=now,
        actor=actor,
    )


def _is_same_request(kept: AccessToken, request: AccessRequest, actor: str) -> bool:
    valid_for = None if kept.expires_at is None else kept.expires_at - kept.created_at
    asked_for = None if request.valid_s is None else timedelta(seconds=request.valid_s)
    same = (kept.name, kept.role, kept.created_by) == (request.name, request.role, actor)
    return same and valid_for == asked_for


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
    is_revoked = access_tokens.revoke_access_token(connection, token_id, now=now, actor=actor)
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
        return Caller(name=token.name, role=token.role, is_authenticated=True)
    host_id = hosts.find_host_by_credential(connection, token_hash)
    if host_id is None:
        raise AuthError("the access token is unknown, too old or revoked", hint=ASK_AN_ADMIN)
    return Caller(name=host_id, role=Role.AGENT, is_authenticated=True)


def check_an_admin_can_call(connection: Connection, *, now: datetime) -> None:
    """Refuse to serve others before there is anybody who could look after who may.

    Raises:
        InvalidInput: no admin has a valid token.
    """
    if not access_tokens.has_valid_token(connection, Role.ADMIN, now=now):
        raise InvalidInput(
            "nobody could call this farm: everybody who calls it needs an access token, and no admin has one",
            hint="make one: farm token create --role admin --name NAME --out FILE --data FOLDER, with the"
            " data folder of this farm",
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
